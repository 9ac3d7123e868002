"""Hand-over from threads to the loop."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable

import pytest

from app.kube.mailbox import Mailbox

PATIENCE_S = 10.0


class Box:
    """A mailbox of numbers, what was taken from it, and a way to wait for a count of them."""

    def __init__(self, *, interval_s: float = 0.0, slice_size: int = 64) -> None:
        self.drains: list[list[int]] = []
        self.refuse: set[int] = set()
        self._arrived = asyncio.Event()
        self.mailbox: Mailbox[int] = Mailbox(
            asyncio.get_running_loop(), self._take, interval_s=interval_s, slice_size=slice_size
        )

    @property
    def taken(self) -> list[int]:
        return [item for drain in self.drains for item in drain]

    async def wait(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.taken) < count:
                self._arrived.clear()
                await self._arrived.wait()

    def _take(self, items: list[int]) -> None:
        self.drains.append(items)
        self._arrived.set()
        if self.refuse & set(items):
            raise ValueError("refused")


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await story()

    asyncio.run(main())


def test_items_of_a_thread_arrive_in_order() -> None:
    async def story() -> None:
        box = Box()

        def put_all() -> None:
            for n in range(1000):
                box.mailbox.put(n)

        thread = threading.Thread(target=put_all)
        thread.start()
        await box.wait(1000)
        thread.join()
        assert box.taken == list(range(1000))

    run(story)


def test_items_that_come_before_the_loop_looks_share_a_wake_up() -> None:
    async def story() -> None:
        box = Box()
        for n in range(10):
            box.mailbox.put(n)
        await box.wait(10)
        assert box.drains == [list(range(10))]

    run(story)


def test_items_within_the_interval_wait_for_one_common_drain() -> None:
    async def story() -> None:
        box = Box(interval_s=0.2, slice_size=1000)
        box.mailbox.put(0)
        await box.wait(1)
        for n in range(1, 200):
            box.mailbox.put(n)
            await asyncio.sleep(0)
        await box.wait(200)
        assert len(box.drains) < 5  # 2, unless the machine stalls for longer than the interval

    run(story)


def test_after_a_pause_an_item_is_handed_over_at_once() -> None:
    async def story() -> None:
        box = Box(interval_s=0.0)
        box.mailbox.put(1)
        await box.wait(1)
        for _ in range(5):
            await asyncio.sleep(0)
        box.mailbox.put(2)
        await box.wait(2)
        assert box.drains == [[1], [2]]

    run(story)


def test_a_long_queue_is_taken_in_slices() -> None:
    async def story() -> None:
        box = Box(slice_size=4)
        for n in range(10):
            box.mailbox.put(n)
        await box.wait(10)
        assert [len(drain) for drain in box.drains] == [4, 4, 2]

    run(story)


def test_a_handler_that_fails_does_not_stop_what_follows(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        box = Box(slice_size=1)
        box.refuse = {1}
        for n in range(3):
            box.mailbox.put(n)
        await box.wait(3)
        assert box.taken == [0, 1, 2]

    with caplog.at_level(logging.ERROR):
        run(story)
    assert [record.message for record in caplog.records] == ["mailbox handler failed"]


def test_a_closed_mailbox_takes_nothing_more_and_hands_nothing_over() -> None:
    async def story() -> None:
        box = Box()
        box.mailbox.put(1)
        box.mailbox.close()
        box.mailbox.put(2)
        for _ in range(3):
            await asyncio.sleep(0)
        assert box.taken == []

    run(story)


def test_putting_after_the_loop_has_ended_is_harmless_once_closed() -> None:
    boxes: list[Box] = []

    async def story() -> None:
        boxes.append(Box())
        boxes[0].mailbox.close()

    run(story)
    boxes[0].mailbox.put(1)
    assert boxes[0].taken == []
