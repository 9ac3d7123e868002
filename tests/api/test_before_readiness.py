"""Calls that arrive before the first planning cycle, of the process or as leader, wait for it."""

from __future__ import annotations

import asyncio

import pytest

from app.api import extender
from app.api.body import BadRequest
from app.api.extender import once
from app.service.calls.binding import Gone


async def never() -> None:
    """The client stays."""
    await asyncio.Event().wait()


def stays() -> None:
    """Who leads stays the same."""


async def answer(_body: bytes, _gone: Gone) -> bytes:
    return b"answered"


async def test_a_call_waits_until_the_first_cycle_has_run() -> None:
    ready = asyncio.Event()
    call = asyncio.ensure_future(once(ready, answer, follow_lead=stays)(b"", never))
    await asyncio.sleep(0)
    assert not call.done()
    ready.set()
    assert await call == b"answered"
    assert await once(ready, answer, follow_lead=stays)(b"", never) == b"answered"


def test_a_call_is_refused_before_the_scheduler_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extender, "READY_S", 0.01)

    with pytest.raises(BadRequest, match="not ready") as refused:
        asyncio.run(call_before_readiness())
    assert refused.value.status == 503


async def call_before_readiness() -> bytes:
    return await once(asyncio.Event(), answer, follow_lead=stays)(b"", never)
