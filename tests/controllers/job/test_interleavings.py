"""Whatever happens in whatever order, however late it is seen, and whenever the controller dies."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from app.controllers.job.slots import Slots
from app.controllers.ports import Failure
from app.wire.kinds import (
    COMMANDS,
    CONFIG_MAPS,
    JOBS,
    POD_GROUPS,
    PODS,
    SERVICES,
    Resource,
)
from app.wire.unstructured import name
from tests.controllers.fake_api import Request
from tests.controllers.job.rig import Rig, play, policy, task
from tests.scale import examples

_OUT_OF_SYNC = "volcano.sh/controller-out-of-sync"
_EVENTS = ["PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "Unknown", "*"]
_ACTIONS = [
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "AbortJob",
    "TerminateJob",
    "CompleteJob",
]
_COMMANDS = [*_ACTIONS, "ResumeJob", "ResumeJob", "Nonsense"]
_POD_STEPS = ["run", "run", "run", "succeed", "fail", "evict", "vanish", "crash loop", "refuse"]

_NEXT = {
    "": {"Pending", "Restarting", "Aborting", "Terminating", "Completing"},
    "Pending": {"Running", "Restarting", "Aborting", "Terminating", "Completing"},
    "Running": {
        "Pending",
        "Restarting",
        "Aborting",
        "Terminating",
        "Completing",
        "Completed",
        "Failed",
    },
    "Restarting": {"Pending", "Failed"},
    "Aborting": {"Aborted", "Restarting"},
    "Aborted": {"Restarting"},
    "Terminating": {"Terminated"},
    "Completing": {"Completed"},
}
_AT_REST = {"Aborted", "Completed", "Failed", "Terminated"}

_policies = st.lists(
    st.builds(
        policy,
        st.sampled_from(_EVENTS),
        st.sampled_from(_ACTIONS),
        timeout=st.sampled_from([None, None, "20s"]),
    ),
    max_size=2,
)
_tasks = st.builds(
    lambda replicas, least, rules: task(
        replicas=replicas, minAvailable=min(least, replicas), policies=rules
    ),
    st.integers(1, 3),
    st.integers(1, 3),
    _policies,
)
_specs = st.builds(
    lambda first, second, rules, retries, plugins: {
        "tasks": [{**first, "name": "a"}, *([{**second, "name": "b"}] if second else [])],
        "policies": rules,
        "maxRetry": retries,
        "plugins": plugins,
    },
    _tasks,
    st.none() | _tasks,
    _policies,
    st.integers(1, 3),
    st.sampled_from([{}, {"svc": []}]),
)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(0, 5), st.sampled_from(_POD_STEPS)),
        st.tuples(st.just("pod"), st.integers(0, 5), st.sampled_from(_POD_STEPS)),
        st.tuples(st.just("turns"), st.integers(1, 30), st.integers(0, 3)),
        st.tuples(st.just("rest"), st.just(0), st.just(0)),
        st.tuples(st.just("bury"), st.just(0), st.just(0)),
        st.tuples(st.just("kill"), st.just(0), st.just(0)),
        st.tuples(st.just("command"), st.just(0), st.sampled_from(_COMMANDS)),
        st.tuples(st.just("scale"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("group"), st.just(0), st.sampled_from(["Running", "Unknown"])),
        st.tuples(
            st.just("fault"),
            st.sampled_from([Failure.PASSING, Failure.CONFLICT]),
            st.sampled_from(["create", "patch", "delete"]),
        ),
        st.tuples(st.just("time"), st.sampled_from([1, 15, 40]), st.just(0)),
    ),
    max_size=25,
)
_SINGLE: dict[str, Any] = {"partitionPolicy": {"partitionSize": 1}}
_restarted = st.builds(
    lambda replicas, least, others, events, action: {
        "tasks": [
            task("a", replicas, minAvailable=min(least, replicas), **_SINGLE),
            *([task("b", others, minAvailable=0, **_SINGLE)] if others else []),
        ],
        "policies": [policy(events, action)],
        "maxRetry": 100,
        "plugins": {},
    },
    st.integers(1, 3),
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from(["PodEvicted", ["PodEvicted", "PodFailed"]]),
    st.sampled_from(["RestartPod", "RestartTask", "RestartPartition"]),
)
_evictions = st.lists(
    st.one_of(
        st.tuples(
            st.just("pod"),
            st.integers(0, 5),
            st.sampled_from(["run", "run", "run", "succeed", "evict", "evict", "vanish", "refuse"]),
        ),
        st.tuples(st.just("pod"), st.integers(0, 5), st.sampled_from(["run", "evict"])),
        st.tuples(st.just("turns"), st.integers(1, 30), st.integers(0, 3)),
        st.tuples(st.just("turns"), st.integers(1, 12), st.integers(0, 3)),
        st.tuples(st.just("rest"), st.just(0), st.just(0)),
        st.tuples(st.just("bury"), st.just(0), st.just(0)),
        st.tuples(st.just("lag"), st.sampled_from([PODS, JOBS, POD_GROUPS]), st.just(0)),
        st.tuples(st.just("end"), st.integers(0, 5), st.sampled_from(["fail", "expire"])),
        st.tuples(
            st.just("fault"),
            st.sampled_from([Failure.PASSING, Failure.CONFLICT]),
            st.sampled_from(["create", "patch", "delete"]),
        ),
        st.tuples(st.just("time"), st.sampled_from([1, 15, 40]), st.just(0)),
    ),
    min_size=12,
    max_size=30,
)


class _World:
    """Plays the steps, and looks after everything that must hold on the way."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.evictions = 0
        self.taken = 0
        """Evictions of pods that the controller had not begun to take away itself."""
        self.commands = 0
        self.generation = 1
        self._plan()
        self.wrong: list[str] = []
        rig.api.observers.append(self._observe)

    def _observe(self, request: Request) -> None:
        if request.verb == "create" and request.resource is PODS:
            phase = self.rig.phase()
            if phase not in {"Pending", "Running"}:
                self.wrong.append(f"{request.key} is made for a job that is {phase}")

    async def live(self, spec: dict[str, Any], steps: Sequence[tuple[str, Any, Any]]) -> None:
        """From the submission of the job until nothing is left to do."""
        self.rig.start()
        self.rig.submit(spec)
        for kind, first, second in steps:
            await getattr(self, f"_{kind}")(first, second)
            self._check()
        await self._come_to_rest()

    async def _pod(self, which: int, what: str) -> None:
        pods = [pod for pod in self.rig.pods() if self._is_alive(pod)]
        if not pods:
            return
        pod = pods[which % len(pods)]
        if what in {"evict", "vanish"}:
            self.evictions += 1
            self.taken += _OUT_OF_SYNC not in self.rig.pod(pod)["metadata"]["annotations"]
        if what == "crash loop":
            self.rig.run(pod, restarts=3)
        elif what == "refuse":
            self._refuse(pod)
        else:
            getattr(self.rig, what)(pod)

    def _refuse(self, pod: str) -> None:
        if not self.rig.pod(pod)["spec"].get("nodeName"):
            refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            self.rig.change(pod, {"status": {"conditions": [refused]}})
        self.generation += 1
        self._plan()

    def _plan(self) -> None:
        """Room for some of the pods; the others wait at the gate."""
        self.rig.slots.slots = Slots(self.generation, {"a": ("n",) * 2, "b": ("n",) * 2})

    def _is_alive(self, pod: str) -> bool:
        item = self.rig.pod(pod)
        ended = item["status"]["phase"] in {"Succeeded", "Failed"}
        return not ended and not item["metadata"].get("deletionTimestamp")

    async def _turns(self, turns: int, delivered: int) -> None:
        self.rig.api.deliver(delivered)
        for _ in range(turns):
            await asyncio.sleep(0)

    async def _rest(self, _: Any, __: Any) -> None:
        self.rig.api.lagging.clear()
        await self.rig.settle()

    async def _lag(self, kind: Resource, _: Any) -> None:
        """The watch of one kind falls behind the others, or comes up with them again."""
        self.rig.api.lagging ^= {kind}

    async def _end(self, which: int, how: str) -> None:
        """A pod that is going says that it has ended, or is about to be taken away."""
        pods = [self.rig.pod(pod) for pod in self.rig.pods()]
        going = [pod for pod in pods if pod["metadata"].get("deletionTimestamp")]
        if going:
            getattr(self.rig, how)(name(going[which % len(going)]))

    async def _bury(self, _: Any, __: Any) -> None:
        self.rig.bury()

    async def _kill(self, _: Any, __: Any) -> None:
        await self.rig.kill()
        self.rig.start()

    async def _command(self, _: Any, action: str) -> None:
        self.commands += 1
        self.rig.command(action, name=f"c{self.commands}")

    async def _scale(self, replicas: int, _: Any) -> None:
        tasks = self.rig.job()["spec"]["tasks"]
        least = min(replicas, tasks[0]["minAvailable"])
        first = {**tasks[0], "replicas": replicas, "minAvailable": least}
        self.rig.edit_job({"spec": {"tasks": [first, *tasks[1:]]}})

    async def _group(self, _: Any, phase: str) -> None:
        self.rig.admit(phase)

    async def _fault(self, failure: Failure, verb: str) -> None:
        after = failure is Failure.PASSING
        self.rig.api.fail(failure, lambda request: request.verb == verb, after=after)

    async def _time(self, seconds: float, _: Any) -> None:
        await asyncio.sleep(seconds)

    async def _come_to_rest(self) -> None:
        """Until nothing is left to do, first with the faults that are left and then without."""
        self.rig.api.lagging.clear()
        await self.rig.drain()
        self.rig.api.faults.clear()
        await self.rig.later(60)
        await self.rig.drain()

    def _check(self) -> None:
        """What holds at any time."""
        assert not self.wrong
        phases = ["", *self.rig.phases]
        for before, now in pairwise(phases):
            assert now in _NEXT.get(before, set()), phases
        for key in ("version", "retryCount"):
            seen = [status.get(key, 0) for status in self.rig.statuses]
            assert seen == sorted(seen), key
        if not self.evictions:
            messages = {status["state"].get("message", "") for status in self.rig.statuses}
            assert not any(message.startswith("PodEvicted") for message in messages), messages

    def check_rest(self) -> None:
        """What holds when nothing is left to do."""
        self._check()
        rig = self.rig
        phase, status = rig.phase(), rig.status()
        assert phase in {"Pending", "Running", *_AT_REST}
        pods = [rig.pod(pod) for pod in rig.pods()]
        counted = Counter(pod["status"]["phase"].lower() for pod in pods)
        assert {
            key: status.get(key, 0) for key in ("pending", "running", "succeeded", "failed")
        } == {key: counted[key] for key in ("pending", "running", "succeeded", "failed")}
        assert not status.get("terminating")
        tasks = rig.job()["spec"]["tasks"]
        of_task = {t["name"]: Counter[str]() for t in tasks}
        for pod in pods:
            of_task[pod["metadata"]["labels"]["volcano.sh/task-spec"]][pod["status"]["phase"]] += 1
        expected = {key: {"phase": dict(found)} for key, found in of_task.items() if found}
        assert status.get("taskStatusCount", {}) == expected
        assert status["conditions"][-1]["status"] == phase
        assert not rig.api.all(COMMANDS)
        assert (
            "annotations" not in rig.job()["metadata"] or not rig.job()["metadata"]["annotations"]
        )
        self._check_objects(phase, tasks)

    def _check_objects(self, phase: str, tasks: list[Any]) -> None:
        rig = self.rig
        has_plugin = bool(rig.job()["spec"]["plugins"])
        beside = len(rig.api.all(SERVICES)) + len(rig.api.all(CONFIG_MAPS))
        if phase in _AT_REST:
            assert not rig.api.all(POD_GROUPS)
            assert not beside
            assert not any(self._is_alive(pod) for pod in rig.pods())
            return
        assert len(rig.api.all(POD_GROUPS)) == 1
        assert beside == (2 if has_plugin else 0)
        wanted = {f"job-{t['name']}-{i}" for t in tasks for i in range(t["replicas"])}
        assert set(rig.pods()) == wanted


@examples(60, suppress_health_check=[HealthCheck.too_slow])
@given(spec=_specs, steps=_steps)
def test_the_job_and_its_pods_agree_whatever_happened(
    spec: dict[str, Any], steps: list[tuple[str, Any, Any]]
) -> None:
    async def scenario(rig: Rig) -> None:
        world = _World(rig)
        await world.live(spec, steps)
        world.check_rest()

    play(scenario)


@examples(75, suppress_health_check=[HealthCheck.too_slow])
@given(spec=_restarted, steps=_evictions)
def test_an_eviction_restarts_a_job_once_however_late_it_is_seen(
    spec: dict[str, Any], steps: list[tuple[str, Any, Any]]
) -> None:
    async def scenario(rig: Rig) -> None:
        world = _World(rig)
        await world.live(spec, [("rest", 0, 0), *steps])
        assert rig.status().get("retryCount", 0) <= world.evictions
        if world.taken and not any(kind == "fault" for kind, _, _ in steps):
            assert rig.status().get("retryCount", 0)

    play(scenario)
