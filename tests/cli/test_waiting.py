"""``job run --wait``: until the end, not longer than asked for, through short silences."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any

import pytest
from rich.console import Console

from app.cli import progress_bars
from app.cli.cluster import Cluster
from app.cli.endings import Code, CommandFailed
from app.cli.waiting import PATIENCE_S, QUIET_S, Patience, Why, progress, wait_for
from app.kube import errors
from app.kube.client import ApiClient
from app.wire.kinds import JOBS, POD_GROUPS, Resource
from app.wire.unstructured import Key
from tests.cli.stand import Object, Stand, group, job


def at(phase: str, *, name: str = "a", uid: str = "u", **counts: Any) -> Object:
    item = job(name)
    item["metadata"]["uid"] = uid
    item["status"] = {"state": {"phase": phase, **counts.pop("state", {})}, **counts}
    return item


class Told(Cluster):
    """A cluster that answers with one thing after another, the last for ever."""

    def __init__(self, *answers: Object | Exception) -> None:
        self._answers = list(answers)

    group: Object | errors.KubeError = errors.NotFound("no group", status=404)

    async def get(self, resource: Resource, key: Key) -> Object:
        assert key.namespace == "default"
        if resource is POD_GROUPS:
            assert key.name == "a-u"
            if isinstance(self.group, Exception):
                raise self.group
            return self.group
        assert resource is JOBS
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Screen:
    """Keeps what was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.reasons: list[Why] = []

    def show(self, job: Object, why: Why) -> None:
        self.shown.append(progress(job))
        self.reasons.append(why)


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def waited(
    *answers: Object | Exception, timeout_s: float | None = None
) -> tuple[list[Object], list[str], float]:
    clock, screen = Time(), Screen()
    patience = Patience(timeout_s=timeout_s, clock=clock, sleep=clock.sleep)
    ended = asyncio.run(wait_for(Told(*answers), [at("")], patience=patience, display=screen))
    return ended, screen.shown, clock.now


def failure(*answers: Object | Exception, timeout_s: float | None = None) -> tuple[Code, str]:
    with pytest.raises(CommandFailed) as failed:
        waited(*answers, timeout_s=timeout_s)
    return failed.value.code, str(failed.value)


def test_it_waits_until_the_job_is_completed() -> None:
    ended, shown, took = waited(
        at(""), at("Pending", pending=3), at("Running", running=3), at("Completed", succeeded=3)
    )
    assert [item["status"]["succeeded"] for item in ended] == [3]
    assert shown == [
        "Pending",
        "Pending (3 pending of 3)",
        "Running (3 running of 3)",
        "Completed (3 succeeded of 3)",
    ]
    assert took == pytest.approx(1.5)


@pytest.mark.parametrize("phase", ["Failed", "Terminated", "Aborted"])
def test_a_job_that_does_not_end_well_is_code_1(phase: str) -> None:
    ended = at(phase, failed=1, state={"reason": "Why", "message": "it broke"})
    assert failure(at("Running"), ended) == (
        Code.JOB_FAILED,
        f"job default/a ended {phase} (1 failed of 3): it broke",
    )


def test_a_job_that_does_not_end_in_time_is_code_4() -> None:
    code, why = failure(at("Running", running=3), timeout_s=2.2)
    assert code is Code.TIMEOUT
    assert why == "timed out: default/a is Running (3 running of 3)"


def test_no_time_is_one_look() -> None:
    ended, shown, took = waited(at("Completed"), timeout_s=0)
    assert (len(ended), len(shown), took) == (1, 1, 0)


def test_a_job_that_is_deleted_is_not_found() -> None:
    with pytest.raises(errors.NotFound):
        waited(at("Running"), errors.NotFound("gone", status=404))
    again = failure(at("Running"), at("Running", uid="other"))
    assert again == (Code.NOT_FOUND, "job default/a was deleted and made anew")


def test_a_short_silence_is_waited_out_and_a_long_one_is_not() -> None:
    silence = errors.Transport("no answer", sent=False)
    ended, _, _ = waited(at("Running"), silence, silence, at("Completed"))
    assert len(ended) == 1
    clock = Time()
    patience = Patience(clock=clock, sleep=clock.sleep)
    with pytest.raises(errors.Transport):
        asyncio.run(
            wait_for(Told(at("Running"), silence), [at("")], patience=patience, display=Screen())
        )
    assert PATIENCE_S < clock.now < PATIENCE_S + 2


NO_ROOM = Why("NoRoom", "cpu asked 9, free 4")


def group_that_waits() -> Object:
    told = {"type": "Reserved", "status": "False", "reason": "NoRoom"}
    return group("a-u", phase="Pending", conditions=[{**told, "message": NO_ROOM.summary}])


def reasons(of: Object | errors.KubeError, *answers: Object) -> list[Why]:
    """What is told of the job at each look."""
    clock, screen, told = Time(), Screen(), Told(*answers)
    told.group = of
    patience = Patience(clock=clock, sleep=clock.sleep, timeout_s=60)
    with suppress(CommandFailed):
        asyncio.run(wait_for(told, [at("")], patience=patience, display=screen))
    return screen.reasons


class TestReasons:
    """Why a job waits, while it does."""

    def test_the_reason_of_its_group_is_told_until_it_runs(self) -> None:
        looks = [at("Pending"), at("Pending"), at("Running"), at("Completed")]
        assert reasons(group_that_waits(), *looks) == [NO_ROOM, NO_ROOM, Why(), Why()]

    def test_a_group_that_is_not_there_is_told_of_only_after_a_while(self) -> None:
        told = reasons(errors.NotFound("no", status=404), at("Pending"))
        assert told[: int(QUIET_S / 0.5)] == [Why()] * int(QUIET_S / 0.5)
        assert told[-1] == Why("", "the job has no PodGroup yet; are the controllers running?")

    def test_groups_that_are_not_to_be_seen_are_not_asked_for_again(self) -> None:
        hidden = errors.Forbidden("no", status=403)
        assert set(reasons(hidden, at("Pending"))) == {Why()}

    def test_it_is_told_when_the_time_is_over(self) -> None:
        clock, told = Time(), Told(at("Pending", pending=3))
        told.group = group_that_waits()
        patience = Patience(timeout_s=3, clock=clock, sleep=clock.sleep)
        with pytest.raises(CommandFailed) as failed:
            asyncio.run(wait_for(told, [at("")], patience=patience, display=Screen()))
        assert str(failed.value) == (
            "timed out: default/a is Pending (3 pending of 3): cpu asked 9, free 4"
        )


def on(
    stream: io.StringIO, jobs: Sequence[Object], *, terminal: bool, why: Sequence[Why] = ()
) -> str:
    console = Console(file=stream, force_terminal=terminal, width=100)
    with progress_bars.display(console) as display:
        for item, told in zip_longest(jobs, why, fillvalue=Why()):
            assert isinstance(item, dict)
            assert isinstance(told, Why)
            display.show(item, told)
    return stream.getvalue()


def test_a_reason_is_said_once_although_its_numbers_change(
    capsys: pytest.CaptureFixture[str],
) -> None:
    why = [NO_ROOM, Why("NoRoom", "cpu asked 9, free 3"), Why("QueueOverused", "queue\x1b[2J q")]
    on(io.StringIO(), [at("Pending")] * 3, terminal=False, why=why)
    assert capsys.readouterr().err == (
        "default/a: Pending: cpu asked 9, free 4\ndefault/a: Pending: queue [2J q\n"
    )


def test_the_reason_stands_below_the_bars() -> None:
    jobs = [at("Pending"), at("Running", name="b", running=3)]
    drawn = on(io.StringIO(), jobs, terminal=True, why=[NO_ROOM])
    last = drawn.rpartition("Running (3 running of 3)")[2]
    assert "default/a waits: cpu asked 9, free 4" in last
    assert "default/b waits" not in drawn


def test_lines_are_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    jobs = [at("Pending"), at("Pending"), at("Running", name="b"), at("Running", running=1)]
    assert on(io.StringIO(), jobs, terminal=False) == ""
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        "default/a: Pending\ndefault/b: Running\ndefault/a: Running (1 running of 3)\n"
    )


def test_bars_are_drawn_on_a_terminal() -> None:
    drawn = on(io.StringIO(), [at("Running", running=2, succeeded=1)], terminal=True)
    assert "default/a" in drawn
    assert "Running (2 running, 1 succeeded of 3)" in drawn


def test_run_waits_for_all_jobs_of_a_command(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """The phase is written by whoever reads the job for the second time."""
    looked: list[str] = []
    get = ApiClient.get

    async def seen(client: ApiClient, path: str, *args: Any, **named: Any) -> bytes:
        looked.append(path)
        if len(looked) == 2:
            stand.status(JOBS, "a", {"state": {"phase": "Completed"}, "succeeded": 1})
        return await get(client, path, *args, **named)

    monkeypatch.setattr(ApiClient, "get", seen)
    done = stand.run("job", "run", "-N", "a", "--wait", "--timeout", "1m")
    assert (done.code, done.out) == (0, "run job a successfully\n")
    assert done.err == "default/a: Pending\ndefault/a: Completed (1 succeeded of 1)\n"


def test_run_that_times_out_is_code_4(stand: Stand) -> None:
    done = stand.run("job", "run", "-N", "a", "--wait", "--timeout", "1ms", "-o", "json")
    assert done.code == 4
    assert done.out == ""
    assert done.err.splitlines()[-1] == ("Failed to run job: timed out: default/a is Pending")
