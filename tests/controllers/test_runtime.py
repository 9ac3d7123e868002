"""Changes become keys, and keys become work: each once, none lost."""

import asyncio
from collections.abc import Callable, Iterable

import pytest

from app.controllers.ports import ApiError, Failure
from app.controllers.runtime import LOOKED_AT_IN_A_TURN, Controller, ObjectChange, Runtime
from app.controllers.store import Store
from app.kit.workqueue import Again, Backoff
from app.wire.kinds import JOBS, PODS
from app.wire.unstructured import Key, key_of
from tests.controllers.play import item
from tests.service import virtual_time


class Recorder:
    """A controller that records what it is called for."""

    kinds = (PODS,)

    def __init__(
        self, name: str = "recorder", answer: Callable[[int], None] = lambda _: None
    ) -> None:
        self.name = name
        self.changes: list[tuple[bool, bool]] = []
        self.done: list[tuple[float, str]] = []
        self.at_once = 0
        self._answer = answer
        self._now = 0

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        self.changes.append((change.old is not None, change.new is not None))
        return (key_of(change.item),)

    async def reconcile(self, key: Key) -> None:
        self._now += 1
        self.at_once = max(self.at_once, self._now)
        try:
            await asyncio.sleep(1)
            self.done.append((asyncio.get_running_loop().time(), key.name))
            self._answer(len(self.done))
        finally:
            self._now -= 1


def play(*controllers: Recorder, workers: int = 1, act: Callable[[Runtime], None]) -> None:
    """Let controllers work on what ``act`` does, for a minute."""

    async def whole() -> None:
        known: dict[Controller, int] = dict.fromkeys(controllers, workers)
        runtime = Runtime({PODS: Store(), JOBS: Store()}, known, backoff=Backoff())
        task = asyncio.create_task(runtime.run())
        await virtual_time.settle()
        act(runtime)
        await asyncio.sleep(60)
        await runtime.settled()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    virtual_time.run(whole())


def test_thousands_of_keys_of_one_namespace_hold_up_no_key_of_another() -> None:
    recorder = Recorder()

    def act(runtime: Runtime) -> None:
        for number in range(50):
            runtime.put(PODS, item(PODS, f"p{number}"))
        runtime.put(PODS, item(PODS, "q", namespace="other"))

    play(recorder, act=act)
    assert [name for _, name in recorder.done].index("q") == 1


def test_controllers_hear_of_their_kinds_only() -> None:
    first, second = Recorder("a"), Recorder("b")
    second.kinds = (JOBS,)

    def act(runtime: Runtime) -> None:
        runtime.put(PODS, item(PODS, "p"))
        runtime.put(PODS, item(PODS, "p"))
        runtime.drop(PODS, Key("ns", "p"))
        runtime.drop(PODS, Key("ns", "p"))
        runtime.put(JOBS, item(JOBS, "j"))

    play(first, second, act=act)

    assert first.changes == [(False, True), (True, True), (True, False)]
    assert second.changes == [(False, True)]
    assert [name for _, name in first.done] == ["p"]
    assert [name for _, name in second.done] == ["j"]


def test_keys_are_worked_on_by_so_many_workers_and_in_their_order() -> None:
    controller = Recorder()

    def act(runtime: Runtime) -> None:
        for number in range(5):
            runtime.put(PODS, item(PODS, f"p{number}"))

    play(controller, workers=2, act=act)

    assert controller.at_once == 2
    assert controller.done == [(1, "p0"), (1, "p1"), (2, "p2"), (2, "p3"), (3, "p4")]


def test_what_fails_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    def answer(times: int) -> None:
        if times == 1:
            raise RuntimeError("broken")

    controller = Recorder(answer=answer)
    play(controller, act=lambda runtime: runtime.put(PODS, item(PODS, "p")))

    assert [at for at, _ in controller.done] == pytest.approx([1, 2.1])
    (logged,) = [record for record in caplog.records if record.message == "reconcile failed"]
    assert (logged.__dict__["controller"], logged.__dict__["key"]) == ("recorder", "ns/p")


def test_a_refused_request_is_one_line_without_a_trace(caplog: pytest.LogCaptureFixture) -> None:
    def answer(times: int) -> None:
        if times == 1:
            raise ApiError(Failure.REFUSED, "403: forbidden")

    controller = Recorder(answer=answer)
    play(controller, act=lambda runtime: runtime.put(PODS, item(PODS, "p")))

    assert len(controller.done) == 2
    (logged,) = caplog.records
    assert (logged.levelname, logged.exc_info) == ("WARNING", None)
    assert logged.__dict__["error"] == "403: forbidden"


def test_again_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    def answer(times: int) -> None:
        if times == 1:
            raise Again("later", after_s=20)

    controller = Recorder(answer=answer)
    play(controller, act=lambda runtime: runtime.put(PODS, item(PODS, "p")))

    assert controller.done == [(1, "p"), (22, "p")]
    assert caplog.records == []


class Turns:
    """A runtime that works now and then: while this process leads."""

    def __init__(self, controller: Recorder) -> None:
        self.runtime = Runtime({PODS: Store(), JOBS: Store()}, {controller: 1}, backoff=Backoff())

    async def work(self, seconds: float) -> None:
        task = asyncio.create_task(self.runtime.run())
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_who_works_again_goes_on_with_what_was_under_way_put_off_or_waiting() -> None:
    async def whole() -> None:
        def answer(times: int) -> None:
            if times == 1:
                raise Again("later", after_s=20)

        controller = Recorder(answer=answer)
        turns = Turns(controller)
        for name in ("put-off", "under-way", "waiting"):
            turns.runtime.put(PODS, item(PODS, name))
        await turns.work(1.5)
        assert [name for _, name in controller.done] == ["put-off"]
        await asyncio.sleep(5)
        await turns.work(60)
        assert {name for at, name in controller.done if at > 5} == {
            "put-off",
            "under-way",
            "waiting",
        }

    virtual_time.run(whole())


def test_who_does_not_work_keeps_no_list_of_what_came_and_went() -> None:
    async def whole() -> None:
        controller = Recorder()
        turns = Turns(controller)
        await turns.work(1)
        for number in range(1000):
            turns.runtime.put(PODS, item(PODS, f"p{number}"))
            turns.runtime.drop(PODS, Key("ns", f"p{number}"))
        turns.runtime.put(PODS, item(PODS, "there"))
        await turns.work(10)
        assert [name for _, name in controller.done] == ["there"]

    virtual_time.run(whole())


def test_many_objects_are_looked_at_in_turns() -> None:
    """Others in the same process are served in between."""

    async def whole() -> None:
        controller = Recorder()
        turns = Turns(controller)
        for number in range(1000):
            turns.runtime.put(PODS, item(PODS, f"p{number}"))
        told = len(controller.changes)
        task = asyncio.create_task(turns.runtime.run())
        most = 0
        for _ in range(50):
            before = len(controller.changes)
            await asyncio.sleep(0)
            most = max(most, len(controller.changes) - before)
        assert len(controller.changes) == told + 1000
        assert most <= 2 * LOOKED_AT_IN_A_TURN
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    virtual_time.run(whole())


def test_a_change_has_an_item_that_is_there_or_was() -> None:
    pod = item(PODS, "p")

    assert ObjectChange(PODS, None, pod).item is pod
    assert ObjectChange(PODS, pod, None).item is pod
