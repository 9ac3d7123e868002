"""When authorization headers are fetched."""

import asyncio
import threading
from collections.abc import Mapping

import pytest

from app.kube.credentials import KEEP_S, Credentials
from app.kube.errors import ConfigError, Unauthorized
from tests.service import virtual_time


class Source:
    def __init__(self) -> None:
        self.fetched = 0
        self.now = 0.0
        self.error: ConfigError | None = None
        self.refused: list[Mapping[str, str]] = []

    def credentials(self) -> Credentials:
        return Credentials(self.fetch, clock=self.clock, refused=self.refused.append)

    def clock(self) -> float:
        return self.now

    def fetch(self) -> dict[str, str]:
        self.fetched += 1
        if self.error is not None:
            raise self.error
        return {"authorization": f"Bearer {self.fetched}"}


async def token(credentials: Credentials) -> str:
    return (await credentials.current())["authorization"]


@pytest.mark.real_time
async def test_headers_are_kept_for_a_while_and_then_fetched_again() -> None:
    source = Source()
    credentials = source.credentials()
    assert [await token(credentials) for _ in range(3)] == ["Bearer 1"] * 3
    source.now += KEEP_S
    assert await token(credentials) == "Bearer 2"


@pytest.mark.real_time
async def test_refused_headers_are_fetched_at_the_next_call() -> None:
    source = Source()
    credentials = source.credentials()
    sent = await credentials.current()
    credentials.refused(sent)
    assert await token(credentials) == "Bearer 2"
    assert source.refused == [sent]


@pytest.mark.real_time
async def test_headers_that_were_replaced_since_may_be_refused() -> None:
    source = Source()
    credentials = source.credentials()
    sent = await credentials.current()
    for _ in range(3):
        credentials.refused(sent)
        assert await token(credentials) == "Bearer 2"


@pytest.mark.real_time
async def test_callers_who_come_together_fetch_once() -> None:
    source = Source()
    credentials = source.credentials()
    tokens = await asyncio.gather(*(token(credentials) for _ in range(5)))
    assert tokens == ["Bearer 1"] * 5


class Stuck(Source):
    """A plugin that says nothing before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.free = threading.Event()

    def fetch(self) -> dict[str, str]:
        self.free.wait(5)
        return super().fetch()


@pytest.mark.real_time
async def test_who_gives_up_leaves_the_others_what_is_being_fetched() -> None:
    source = Stuck()
    credentials = source.credentials()
    first, second = (asyncio.create_task(token(credentials)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    source.free.set()
    assert await second == await token(credentials) == "Bearer 1"


async def test_nobody_waits_for_ever_for_a_plugin_that_hangs_and_it_runs_once() -> None:
    source = Stuck()
    credentials = source.credentials()
    for _ in range(3):
        with pytest.raises(Unauthorized, match="no credentials within 30 s"):
            await token(credentials)
    source.free.set()
    while not source.fetched:
        await virtual_time.settle()
    await virtual_time.settle()
    assert source.fetched == 1


def test_a_plugin_that_hangs_does_not_keep_the_process() -> None:
    source = Stuck()

    async def story() -> None:
        call = asyncio.create_task(token(source.credentials()))
        await asyncio.sleep(0)
        call.cancel()

    asyncio.run(story())
    assert source.fetched == 0
    source.free.set()


@pytest.mark.real_time
async def test_headers_that_cannot_be_had_are_a_transient_error() -> None:
    source = Source()
    source.error = ConfigError("plugin failed")
    credentials = source.credentials()
    with pytest.raises(Unauthorized, match="plugin failed"):
        await token(credentials)
    source.error = None
    assert await token(credentials) == "Bearer 2"
