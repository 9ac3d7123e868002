"""The root and the default queues exist, whoever deletes them and whatever fails."""

import asyncio
import logging

import pytest

from app.service.effects.needed_queues import ensure_queues
from app.service.ports import WriteError
from tests.builders import make_queue
from tests.service.rig import CONFLICT, FAILING, REFUSED, Rig
from tests.service.virtual_time import advance


def without_queues(*, default: str = "default") -> Rig:
    rig = Rig(default_queue=default)
    rig.unsee("queues", make_queue("root"), make_queue("default"))
    return rig


def ensuring(rig: Rig, tried: asyncio.Event | None = None) -> "asyncio.Task[None]":
    return asyncio.create_task(
        ensure_queues(rig.cache, rig.api, tried=asyncio.Event() if tried is None else tried)
    )


def created(rig: Rig) -> list[str]:
    return [write.target for write in rig.api.of("create-queue")]


async def test_all_are_created_when_they_are_missing() -> None:
    rig = without_queues(default="batch")
    task = ensuring(rig)
    await advance(0)
    assert created(rig) == ["root", "default", "batch"]
    root, *others = (write.body["spec"] for write in rig.api.of("create-queue"))
    assert root == {"weight": 1, "reclaimable": False}
    assert others == [{"weight": 1, "reclaimable": True}] * 2
    task.cancel()


async def test_none_is_created_when_they_are_there() -> None:
    rig = Rig()
    task = ensuring(rig)
    await advance(60)
    assert rig.api.tries == []
    task.cancel()


async def test_one_that_somebody_deleted_is_created_again() -> None:
    rig = Rig()
    task = ensuring(rig)
    await advance(10)
    rig.unsee("queues", make_queue("default"))
    await advance(2)
    assert created(rig) == ["default"]
    rig.queue(make_queue("default"))
    await advance(60)
    assert created(rig) == ["default"]
    task.cancel()


@pytest.mark.parametrize(("error", "warns"), [(CONFLICT, False), (FAILING, True), (REFUSED, True)])
async def test_a_failure_is_tried_again(
    error: WriteError, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    rig = without_queues()
    rig.api.fails["create-queue"] = [error]
    with caplog.at_level(logging.WARNING):
        task = ensuring(rig)
        await advance(0)
    assert created(rig) == ["default"]
    assert [record.message for record in caplog.records] == ["queue not created"] * warns
    await advance(5)
    assert created(rig) == ["default", "root", "default"]
    task.cancel()


async def test_the_default_queue_may_be_the_root() -> None:
    rig = without_queues(default="root")
    task = ensuring(rig)
    await advance(0)
    assert created(rig) == ["root", "default"]
    task.cancel()


@pytest.mark.parametrize("fails", [[], [FAILING, REFUSED]])
async def test_it_is_told_when_all_are_there_or_cannot_be(fails: list[WriteError]) -> None:
    rig, tried = without_queues(), asyncio.Event()
    rig.api.fails["create-queue"] = fails
    rig.api.slow = asyncio.Event()
    task = ensuring(rig, tried)
    await advance(1)
    assert not tried.is_set()
    rig.api.slow.set()
    await advance(0)
    assert tried.is_set()
    task.cancel()


async def test_it_is_told_at_once_when_none_is_missing() -> None:
    rig, tried = Rig(), asyncio.Event()
    task = ensuring(rig, tried)
    await advance(0)
    assert tried.is_set()
    task.cancel()
