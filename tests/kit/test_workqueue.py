"""Keys for workers: each once at a time, none lost, failures with growing pauses."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kit.workqueue import Again, Backoff, WorkQueue
from tests.service.virtual_time import advance, settle

Work = Callable[[str], Awaitable[None]]


class Bench:
    """A queue with running workers; notes what was worked on when."""

    def __init__(
        self,
        work: Work | None = None,
        *,
        workers: int = 2,
        lane_of: Callable[[str], object] = lambda _key: None,
    ) -> None:
        self.done: list[tuple[str, float]] = []
        self.failures: list[tuple[str, str]] = []
        self._work = work
        self.queue: WorkQueue[str] = WorkQueue(
            self.attempt,
            backoff=Backoff(base_s=0.1, max_s=1.0),
            failed=lambda key, error: self.failures.append((key, str(error))),
            lane_of=lane_of,
        )
        self.task = asyncio.create_task(self.queue.run(workers))

    async def attempt(self, key: str) -> None:
        self.done.append((key, round(asyncio.get_running_loop().time(), 3)))
        if self._work is not None:
            await self._work(key)

    def times(self, key: str) -> list[float]:
        return [at for name, at in self.done if name == key]

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})


async def test_a_key_added_many_times_is_worked_on_once() -> None:
    bench = Bench()
    for _ in range(5):
        bench.queue.add("a")
    bench.queue.add("b")
    assert len(bench.queue) == 2
    await settle()
    assert [key for key, _ in bench.done] == ["a", "b"]
    assert len(bench.queue) == 0
    await bench.close()


async def test_a_key_added_while_it_is_worked_on_is_worked_on_again_afterwards() -> None:
    gate = asyncio.Event()
    at_once = 0
    most = 0

    async def work(_key: str) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await gate.wait()
        at_once -= 1

    bench = Bench(work, workers=4)
    bench.queue.add("a")
    await settle()
    bench.queue.add("a")
    bench.queue.add("a")
    await settle()
    assert len(bench.done) == 1
    gate.set()
    await settle()
    assert len(bench.done) == 2
    assert most == 1
    await bench.close()


async def test_different_keys_are_worked_on_at_the_same_time_in_their_order() -> None:
    gate = asyncio.Event()

    async def work(_key: str) -> None:
        await gate.wait()

    bench = Bench(work, workers=2)
    for key in "abcd":
        bench.queue.add(key)
    await settle()
    assert [key for key, _ in bench.done] == ["a", "b"]
    gate.set()
    await settle()
    assert [key for key, _ in bench.done] == ["a", "b", "c", "d"]
    await bench.close()


async def test_failures_come_back_with_a_pause_that_doubles_up_to_its_limit() -> None:
    async def work(_key: str) -> None:
        raise Again("not yet")

    bench = Bench(work)
    bench.queue.add("a")
    await advance(5)
    assert bench.times("a")[:7] == [0.0, 0.1, 0.3, 0.7, 1.5, 2.5, 3.5]
    assert bench.failures == [], "foreseen"
    await bench.close()


async def test_success_ends_a_row_of_failures() -> None:
    answers = iter([Again("1"), Again("2"), None, Again("3"), None])

    async def work(_key: str) -> None:
        answer = next(answers)
        if answer is not None:
            raise answer

    bench = Bench(work)
    bench.queue.add("a")
    await advance(1)
    bench.queue.add("a")
    await advance(1)
    assert bench.times("a") == pytest.approx([0.0, 0.1, 0.3, 1.0, 1.1])
    await bench.close()


async def test_coming_back_later_on_purpose_is_no_failure() -> None:
    answers = iter([Again("x"), Again("later", after_s=5.0), Again("x"), None])

    async def work(_key: str) -> None:
        answer = next(answers)
        if answer is not None:
            raise answer

    bench = Bench(work)
    bench.queue.add("a")
    await advance(10)
    assert bench.times("a") == pytest.approx([0.0, 0.1, 5.1, 5.2])
    await bench.close()


async def test_an_error_nobody_foresaw_is_told_and_stops_no_worker() -> None:
    async def work(key: str) -> None:
        if key == "bad":
            raise ZeroDivisionError("oh")

    bench = Bench(work, workers=1)
    bench.queue.add("bad")
    bench.queue.add("good")
    await settle()
    assert bench.failures == [("bad", "oh")]
    assert bench.times("good") == [0.0]
    await bench.close()


async def test_the_sooner_of_two_later_asks_counts() -> None:
    bench = Bench()
    bench.queue.add_later("a", 5.0)
    bench.queue.add_later("a", 2.0)
    bench.queue.add_later("a", 9.0)
    await advance(20)
    assert bench.times("a") == [2.0]
    await bench.close()


async def test_settled_waits_for_what_is_queued_and_not_for_what_is_due_later() -> None:
    async def work(_key: str) -> None:
        await asyncio.sleep(3)

    bench = Bench(work)
    bench.queue.add("a")
    bench.queue.add_later("b", 60)
    await bench.queue.settled()
    assert asyncio.get_running_loop().time() == pytest.approx(3.0)
    await bench.close()


async def test_stopping_leaves_no_timer_behind() -> None:
    bench = Bench()
    bench.queue.add_later("a", 1.0)
    await bench.close()
    await advance(5)
    assert bench.done == []


def test_the_longest_row_of_failures_does_not_overflow() -> None:
    assert Backoff().pause(100_000) == 10.0


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.floats(0, 2), st.booleans()), min_size=1, max_size=30
    ),
    st.integers(1, 3),
)
async def test_no_key_is_lost_and_none_is_worked_on_twice_at_a_time(
    asks: list[tuple[str, float, bool]], workers: int
) -> None:
    """Every ask is followed by a run that began after it, however runs fail and overlap."""

    fails = {key for key, _, failing in asks if failing}
    active: set[str] = set()

    async def work(key: str) -> None:
        assert key not in active
        active.add(key)
        await asyncio.sleep(0.5)
        active.discard(key)
        if key in fails:
            fails.discard(key)
            raise Again("once")

    bench = Bench(work, workers=workers)
    last: dict[str, float] = {}
    for key, pause, _ in asks:
        await asyncio.sleep(pause)
        last[key] = asyncio.get_running_loop().time()
        bench.queue.add(key)
    await advance(60)
    for key, at in last.items():
        assert bench.times(key)[-1] >= round(at, 3)
    assert len(bench.queue) == 0


async def test_lanes_take_turns_and_each_keeps_its_order() -> None:
    bench = Bench(workers=1, lane_of=lambda key: key[0])
    for key in ("a1", "a2", "a3", "b1", "c1", "b2"):
        bench.queue.add(key)
    await settle()
    assert [key for key, _ in bench.done] == ["a1", "b1", "c1", "a2", "b2", "a3"]
    await bench.close()


async def test_a_key_of_a_lane_with_thousands_holds_no_other_lane_up() -> None:
    bench = Bench(workers=1, lane_of=lambda key: key[0])
    for number in range(10_000):
        bench.queue.add(f"a{number}")
    bench.queue.add("b")
    assert len(bench.queue) == 10_001
    await settle()
    assert [key for key, _ in bench.done].index("b") == 1
    await bench.close()


async def test_a_key_waits_once_whatever_lane_it_would_be_in_by_now() -> None:
    lanes = iter("ab")
    bench = Bench(workers=1, lane_of=lambda _key: next(lanes))
    bench.queue.add("key")
    bench.queue.add("key")
    await settle()
    assert [key for key, _ in bench.done] == ["key"]
    await bench.close()
