"""``pumice all``: extender, controllers and webhooks in one process and one event loop.

Each part is what it is alone, with its informers, its Lease and its ports; only slots are asked for
by a function call. The extender, for which pods wait, lists first: side by side both would be ready
late. When a part ends by itself the process does: half of them would look alive.
"""

import asyncio
import logging
import socket
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

import uvloop

from app.kube import config
from app.main.collector import collect_seldom
from app.main.connecting import open_client
from app.main.controllers import Before, ControllersProcess, open_controllers
from app.main.extender import SWITCH_INTERVAL_S, ExtenderProcess
from app.main.serving.server import Bind
from app.main.signals import stop_asked
from app.main.start_error import StartError
from app.main.urgency import be_urgent
from app.main.webhooks import WebhookProcess
from app.settings.together import Roles

log = logging.getLogger(__name__)

HEAD_START_S = 30.0
"""How long the controllers wait for the extender at most; what keeps it may be nothing to them."""

Runs = dict[str, Coroutine[None, None, None]]
"""What is to run, by how it is called."""


@dataclass(frozen=True, slots=True)
class Door:
    """A socket that is open, and where."""

    listener: socket.socket
    bind: Bind


@dataclass(frozen=True, slots=True)
class Doors:
    """Where each part is reached; ``webhooks`` None: there are none."""

    extender: Door
    webhooks: Door | None


def run(roles: Roles, doors: Doors) -> int:
    """Run until a signal; the exit code is 0 then, 1 when a part ended by itself.

    Raises StartError.
    """
    be_urgent(roles.extender.urgency)
    collect_seldom()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(roles, doors))


async def _serve(roles: Roles, doors: Doors) -> int:
    async with _parts(roles, doors) as (runs, stopping):
        parts = [asyncio.create_task(part, name=name) for name, part in runs.items()]
        stopped = asyncio.create_task(stopping.wait())
        await asyncio.wait({stopped, *parts}, return_when=asyncio.FIRST_COMPLETED)
        asked, ended = stopping.is_set(), [part for part in parts if part.done()]
        stopping.set()
        await asyncio.gather(stopped, *parts, return_exceptions=True)
    if asked:
        return 0
    for part in ended:
        log.error("a part ended by itself, so all end", extra={"part": part.get_name()})
        part.result()
    return 1


@asynccontextmanager
async def _parts(roles: Roles, doors: Doors) -> AsyncIterator[tuple[Runs, asyncio.Event]]:
    """All parts with their connections, and what ends them; StartError when one cannot be made."""
    async with AsyncExitStack() as stack:
        try:
            extending, controlling, judging = await _made(roles, stack)
        except (config.ConfigError, ValueError) as error:
            raise StartError(str(error)) from error
        stopping = stack.enter_context(stop_asked())
        door = doors.extender
        runs: Runs = {
            "the extender": extending.run(door.listener, door.bind, stopping),
            "the controllers": controlling.run(
                stopping, after=partial(head_start, extending.ready)
            ),
        }
        if judging is not None and doors.webhooks is not None:
            door = doors.webhooks
            runs["the webhooks"] = judging.run(door.listener, door.bind, stopping)
        yield runs, stopping


async def head_start(ready: Before) -> None:
    """Wait until the extender is ``ready``, or has had its time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(HEAD_START_S):
            await ready()


async def _made(
    roles: Roles, stack: AsyncExitStack
) -> tuple[ExtenderProcess, ControllersProcess, WebhookProcess | None]:
    writes = await stack.enter_async_context(open_client(roles.extender))
    extending = ExtenderProcess(roles.extender, writes)
    slots = extending.slots()
    controlling = await stack.enter_async_context(open_controllers(roles.controllers, slots))
    if roles.webhooks is None:
        return extending, controlling, None
    keeps = await stack.enter_async_context(open_client(roles.webhooks))
    return extending, controlling, WebhookProcess(roles.webhooks, keeps)
