"""`pumice demo`: the outcome decides the exit code, and what went wrong is said."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.console import Console

from app.cli.certificates import check
from app.kube import errors
from app.kube.client import Body
from app.main import demo
from app.main.demo import GROUPS, JOBS, Check, Failed, Story
from app.main.sandbox import SandboxFailed
from app.sandbox.nodes import NodeSpec
from app.sandbox.story.certificate import Certificate
from app.sandbox.story.jobs import CONF, conf
from app.wire.documents import Document

STEPS = [
    "ok job-1 runs",
    "ok job-2 waits, with numbers",
    "ok job-2 runs when job-1 is gone",
    "ok the TensorFlow job runs whole",
    "ok the elastic job runs with all six",
    "ok one of them runs whole",
    "waits whole, with numbers",
    "follows",
    "ok crunching has the cluster",
    "ok report runs whole, in one go",
    "ok crunching keeps the other half",
    "who asks: a gang of 8 in queue urgent, which holds cpu 0 and deserves cpu 8",
    "from whom: queue batch, which holds cpu 16, deserves cpu 8 and keeps cpu 8",
    "who goes: 8 pods: 8 beyond the minimum of its job; 0 gangs end",
    "ok pumice check-eviction accepts it",
    "demo finished as it should",
    "pumice demo --page",
]


def written() -> Console:
    return Console(file=io.StringIO(), width=80, highlight=False)


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.sandbox
def test_the_whole_story_fits_80_columns_and_ends_with_zero(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("pumice")), "demo"]
    environment = {"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path), "COLUMNS": "80"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    place = 0
    for step in STEPS:
        place = done.stdout.index(step, place)
    assert "job-2 waits: queue test: cpu asked 2, free 1 of 2" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sandbox
def test_a_step_that_does_not_come_true_ends_it_with_one_and_is_named() -> None:
    """One CPU in all: the second job is let in by its queue, but there is no room."""
    console = written()
    assert demo.run(check=check, nodes=NodeSpec(count=1, cpu="1"), step_s=3, console=console) == 1
    told = text(console).splitlines()
    assert "  ok job-1 runs" in told
    assert told[-1] == "demo failed: not within 3 s: job-2 runs when job-1 is gone"


def group(name: str, *, phase: str, minimum: int = 1, why: str = "") -> Document:
    condition = {"type": "Reserved", "status": "False" if why else "True", "message": why}
    return {
        "metadata": {"name": name},
        "spec": {"minMember": minimum},
        "status": {"phase": phase, "conditions": [condition]},
    }


def pods(of: str, count: int, *, bound: int) -> list[Document]:
    return [
        {
            "metadata": {"name": f"{of}-{number}", "labels": {"volcano.sh/job-name": of}},
            "spec": {"nodeName": "n"} if number < bound else {},
            "status": {"phase": "Running" if number < bound else "Pending"},
        }
        for number in range(count)
    ]


@dataclass
class Shown:
    """An API server that shows what it is told to show, whatever is asked of it."""

    groups: list[Document] = field(default_factory=list)
    pods: list[Document] = field(default_factory=list)
    refuses: str = ""
    gone_after: int = 1_000_000
    """Looks after which there are no groups any more."""
    asked: list[str] = field(default_factory=list)

    async def get(self, path: str) -> bytes:
        if path == GROUPS:
            self.gone_after -= 1
            if self.gone_after < 0:
                self.groups = []
        return json.dumps({"items": self.groups if path == GROUPS else self.pods}).encode()

    async def create(self, path: str, body: Body) -> bytes:
        if path == self.refuses:
            raise errors.Forbidden("no jobs today", status=403, reason="Forbidden")
        self.asked.append(f"create {path}")
        return b"{}"

    async def delete(self, path: str) -> bytes:
        self.asked.append(f"delete {path}")
        return b"{}"


def tell(shown: Shown, chapter: Callable[[Story], object], *, step_s: float = 0.5) -> str:
    """What is printed of a chapter."""
    console = written()

    async def told() -> None:
        story = Story(shown, console, step_s=step_s)
        coroutine = chapter(story)
        assert asyncio.iscoroutine(coroutine)
        await coroutine

    asyncio.run(told())
    return text(console)


def test_a_group_that_must_wait_but_has_pods_on_nodes_is_a_failure() -> None:
    shown = Shown(
        groups=[group("job-1", phase="Running"), group("job-2", phase="Running")],
        pods=[*pods("job-1", 1, bound=1), *pods("job-2", 1, bound=1)],
    )
    with pytest.raises(Failed, match="job-2 must wait whole, but has 1 pods on nodes"):
        tell(shown, Story.queue_with_a_limit)


def test_waiting_without_numbers_is_a_failure() -> None:
    shown = Shown(
        groups=[group("job-1", phase="Running"), group("job-2", phase="Pending", why="no room")],
        pods=pods("job-1", 1, bound=1),
    )
    with pytest.raises(Failed, match=r"not within 0\.5 s: job-2 waits, with numbers"):
        tell(shown, Story.queue_with_a_limit)


def test_two_that_run_where_only_one_fits_are_a_failure() -> None:
    names = ("training-a", "training-b")
    shown = Shown(
        groups=[group(name, phase="Running", minimum=10) for name in names],
        pods=[*pods(names[0], 10, bound=10), *pods(names[1], 10, bound=10)],
    )
    with pytest.raises(Failed, match="training-b has pods on nodes while training-a has the room"):
        tell(shown, Story.two_trainings)


def test_a_gang_that_stays_bound_in_part_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "BINDING_S", 0.3)
    shown = Shown(
        groups=[
            group("training-a", phase="Inqueue", minimum=10),
            group("training-b", phase="Pending", minimum=10, why="cpu asked 10, free 6"),
        ],
        pods=pods("training-a", 10, bound=9),
    )
    with pytest.raises(Failed, match="training-a stays bound in part"):
        tell(shown, Story.two_trainings, step_s=5)


def test_a_group_that_disappears_is_a_failure() -> None:
    shown = Shown(groups=[group("job-1", phase="Inqueue")], gone_after=2)
    with pytest.raises(Failed, match="the PodGroup of job-1 is gone"):
        tell(shown, Story.queue_with_a_limit, step_s=5)


def test_a_group_that_is_never_made_is_a_failure() -> None:
    with pytest.raises(Failed, match=r"not within 0\.5 s: job-1 runs"):
        tell(Shown(), Story.queue_with_a_limit)


def test_a_job_that_is_refused_is_a_failure() -> None:
    with pytest.raises(errors.Forbidden, match="no jobs today"):
        tell(Shown(refuses=JOBS), Story.queue_with_a_limit)


def test_a_part_of_the_sandbox_that_ends_is_a_failure() -> None:
    async def told() -> None:
        async def fails() -> None:
            raise RuntimeError("out of memory")

        part = asyncio.create_task(fails(), name="the extender")
        shown = Shown(groups=[group("job-1", phase="Inqueue")])
        await Story(shown, written(), step_s=5, parts=(part,)).queue_with_a_limit()

    with pytest.raises(SandboxFailed, match="the extender ended: out of memory"):
        asyncio.run(told())


def test_the_table_is_printed_again_only_when_something_changed() -> None:
    shown = Shown(groups=[group("job-1", phase="Inqueue")])
    console = written()

    async def told() -> None:
        story = Story(shown, console, step_s=1)
        with pytest.raises(Failed):
            await story.queue_with_a_limit()

    asyncio.run(told())
    assert text(console).count("PodGroup") == 1


class TestCertificates:
    """What is made of the certificate of the last chapter."""

    def told(self, *certificates: Certificate, check: Check) -> str:
        console = written()
        Story(Shown(), console, step_s=1).explain(list(certificates), check)
        return text(console)

    def test_a_certificate_that_is_rejected_is_a_failure(self) -> None:
        with pytest.raises(Failed, match="rejected: cost is too high"):
            self.told(CERTIFICATE, check=lambda _: [("cost", "is too high")])

    def test_a_decision_that_is_not_there_is_a_failure(self) -> None:
        with pytest.raises(Failed, match="0 decisions evict for report, not one"):
            self.told(CERTIFICATE | {"action": "preempt"}, check=lambda _: [])

    def test_it_is_told_in_plain_words(self) -> None:
        told = self.told(CERTIFICATE, check=lambda _: [])
        assert "who goes: 1 pods: 1 of use by itself; 0 gangs end" in told
        assert "why each: 1 of 1: every cheaper choice was tried, and none has room" in told
        assert "ok pumice check-eviction accepts it" in told


CERTIFICATE: Certificate = {
    "action": "reclaim",
    "preemptor": {"queue": "urgent", "places": [{"node": "n1"}]},
    "queues": {
        "urgent": {"before": {}, "deserved": {"cpu": 1000}, "after": {"cpu": 1000}},
        "batch": {"before": {"cpu": 2000}, "deserved": {"cpu": 1000}, "after": {"cpu": 1000}},
    },
    "pods": {"a": {"queue": "batch"}},
    "victims": ["a"],
    "units": [
        {"kind": "single", "pods": ["a"], "witness": {"kind": "exhaustive"}},
        {"kind": "single", "pods": ["b"], "witness": None},
    ],
    "cost": {"gangs": 0},
}


def test_the_story_is_told_with_the_shipped_configuration_that_evicts() -> None:
    shipped = Path(__file__).parents[2] / "scheduler-config" / CONF
    assert conf() == shipped.read_text(encoding="utf-8")
