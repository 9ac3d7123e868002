"""A client that takes an answer too slowly keeps it in memory, so its connection ends."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import pytest
from starlette.responses import Response
from uvicorn import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.server import ServerState

from app.main.serving.bounded import IDLE_S, PAUSE_S, Bounded


@dataclass
class Loop:
    """A loop that has nothing but its time."""

    now: float = 0.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def connection(loop: Loop) -> Bounded:
    config = Config(Response())
    config.load()
    made = Bounded(config, ServerState(), {}, _loop=cast(asyncio.AbstractEventLoop, loop))
    made.flow = FlowControl(asyncio.Transport())
    made.has_asked = True
    return made


def ended_at(connection: Bounded, loop: Loop, pauses: Iterable[float]) -> float | None:
    """When the connection was overdue while its client took such pauses; None: it never was."""
    for seconds in pauses:
        connection.pause_writing()
        loop.now += seconds
        if connection.is_overdue(loop.now):
            return loop.now
        connection.resume_writing()
    return None


def test_a_client_that_takes_nothing_is_ended(connection: Bounded, loop: Loop) -> None:
    assert ended_at(connection, loop, [IDLE_S]) is None
    assert ended_at(connection, loop, [IDLE_S + 1]) is not None


def test_a_client_that_trickles_is_ended(connection: Bounded, loop: Loop) -> None:
    ended = ended_at(connection, loop, [10.0] * 1_000)
    assert ended is not None
    assert IDLE_S < ended < 1.2 * IDLE_S


def test_a_client_that_keeps_pace_is_served_whatever_the_answer(
    connection: Bounded, loop: Loop
) -> None:
    assert ended_at(connection, loop, [PAUSE_S, 0.01] * 10_000) is None
    assert ended_at(connection, loop, [IDLE_S / 2, *[0.5] * 200, IDLE_S / 2, IDLE_S / 2]) is None
