"""Work that moves, for `pumice demo --page`: jobs that come, wait, run, end and are taken back.

Pure: which jobs to create and which to delete now is said; `app.main.demo_page` does it. The
streams are chosen so that each thing that a page shows happens all the time: a queue that borrows
what another one takes back by evictions, gangs that wait for each other's room or for the limit of
their queue, and now and then a gang that is larger than the cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from app.core.protection.run_time import RUN_TIME
from app.sandbox.nodes import GPU, NodeSpec
from app.wire.documents import Document

NODES: Final = NodeSpec(count=8, cpu="4", memory="16Gi", gpus=2, racks=2)
KEPT_S: Final = 30
"""How long a job is kept after its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Equal jobs, one after the other."""

    name: str
    queue: str
    every_s: float
    most: int
    """How many of its jobs may be there unfinished."""
    pods: int
    needs: int
    """Pods that it needs to run at all."""
    requests: Document
    runs_s: tuple[int, int]
    """How long its pods run, between these seconds."""
    given_up_s: int = 0
    """After so many seconds a job is deleted unfinished; 0: never."""


STREAMS: Final = (
    # Borrows what other queues leave; its pods beyond the second go when those want their own.
    Stream(
        name="crunch",
        queue="batch",
        every_s=9,
        most=4,
        pods=10,
        needs=2,
        requests={"cpu": "1", "memory": "1Gi"},
        runs_s=(40, 80),
    ),
    Stream(
        name="train",
        queue="research",
        every_s=14,
        most=4,
        pods=5,
        needs=5,
        requests={"cpu": "2", "memory": "4Gi", GPU: "1"},
        runs_s=(20, 40),
    ),
    Stream(
        name="report",
        queue="production",
        every_s=25,
        most=2,
        pods=4,
        needs=4,
        requests={"cpu": "2", "memory": "2Gi"},
        runs_s=(10, 20),
    ),
    # Two of them do not fit into the limit of their queue.
    Stream(
        name="import",
        queue="small",
        every_s=15,
        most=3,
        pods=2,
        needs=2,
        requests={"cpu": "1500m", "memory": "1Gi"},
        runs_s=(15, 30),
    ),
    Stream(
        name="too-large",
        queue="research",
        every_s=90,
        most=1,
        pods=20,
        needs=20,
        requests={"cpu": "2", "memory": "4Gi", GPU: "1"},
        runs_s=(20, 20),
        given_up_s=45,
    ),
)


def queues() -> list[Document]:
    """The queues of the streams."""
    return [
        _queue("batch", weight=1),
        _queue("research", weight=2),
        _queue("production", weight=2),
        _queue("small", weight=1, capability={"cpu": "4"}),
    ]


@dataclass(frozen=True, slots=True)
class Moves:
    """What to do now: documents of jobs to create, and names of jobs to delete."""

    create: Sequence[Document] = ()
    delete: Sequence[str] = ()


@dataclass(slots=True)
class MovingWork:
    """Says which jobs come and go; ``dice`` vary how long they run."""

    dice: Random
    streams: Sequence[Stream] = STREAMS
    _next_at: dict[str, float] = field(default_factory=dict)
    _made: dict[str, int] = field(default_factory=dict)
    _given_up_at: dict[str, float] = field(default_factory=dict)

    def moves(self, now: float, jobs: Sequence[Document]) -> Moves:
        """What to do at ``now`` (seconds, of any clock that only grows) with these ``jobs`` there.

        Jobs that have ended go by themselves, `KEPT_S` after their end.
        """
        unfinished = [job["metadata"]["name"] for job in jobs if not _has_ended(job)]
        create = []
        for stream in self.streams:
            there = sum(name.startswith(f"{stream.name}-") for name in unfinished)
            if now < self._next_at.get(stream.name, now) or there >= stream.most:
                continue
            self._next_at[stream.name] = now + stream.every_s
            create.append(self._job(stream, now))
        there_now = set(unfinished)
        late = [name for name, at in self._given_up_at.items() if now >= at]
        for name in late:
            del self._given_up_at[name]
        return Moves(create, [name for name in late if name in there_now])

    def _job(self, stream: Stream, now: float) -> Document:
        number = self._made[stream.name] = self._made.get(stream.name, 0) + 1
        name = f"{stream.name}-{number}"
        if stream.given_up_s:
            self._given_up_at[name] = now + stream.given_up_s
        seconds = self.dice.randint(*stream.runs_s)
        return _job(stream, name, seconds)


def _has_ended(job: Document) -> bool:
    state = (job.get("status") or {}).get("state") or {}
    return state.get("phase") in {"Completed", "Failed", "Terminated", "Aborted"}


def _queue(name: str, *, weight: int, capability: Document | None = None) -> Document:
    spec: Document = {"weight": weight, "reclaimable": True}
    if capability:
        spec["capability"] = capability
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def _job(stream: Stream, name: str, seconds: int) -> Document:
    container = {
        "name": "work",
        "image": "busybox",
        "command": ["sleep", str(seconds)],
        "resources": {"requests": stream.requests, "limits": stream.requests},
    }
    pod = {
        "terminationGracePeriodSeconds": 1,
        "restartPolicy": "Never",
        "containers": [container],
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {RUN_TIME: f"{seconds}s"},
        },
        "spec": {
            "minAvailable": stream.needs,
            "schedulerName": "volcano",
            "queue": stream.queue,
            "ttlSecondsAfterFinished": KEPT_S,
            "maxRetry": 3,
            "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
            "tasks": [{"name": "work", "replicas": stream.pods, "template": {"spec": pod}}],
        },
    }
