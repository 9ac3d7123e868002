"""The controllers' process in this one, against the sandbox's API server."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import yaml

from app.main.controllers import ControllersProcess, open_controllers
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.assembly import kubeconfig
from app.sandbox.clock import WallClock
from app.settings.controllers import ControllersSettings
from app.wire import manifests
from tests.sandbox.serving import serving

PATIENCE_S = 20

Story = Callable[[ControllersProcess], Awaitable[None]]


def play(story: Story, folder: Path) -> None:
    file = folder / "kubeconfig"
    server = ApiServer(clock=WallClock(), crds=manifests.crd_documents())

    async def whole(url: str) -> None:
        file.write_text(yaml.safe_dump(kubeconfig(url)))
        settings = ControllersSettings(kubeconfig=file, leader_elect=False, healthz_address="")
        async with asyncio.timeout(PATIENCE_S), open_controllers(settings) as process:
            await story(process)

    with serving(server) as url:
        asyncio.run(whole(url))


def listing() -> list[str]:
    """The threads that follow a kind."""
    names = (thread.name for thread in threading.enumerate())
    return [name for name in names if name.startswith("informer-")]


def test_nothing_is_listed_before_its_turn(tmp_path: Path) -> None:
    async def story(process: ControllersProcess) -> None:
        asked, turn, stopping = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def before() -> None:
            asked.set()
            await turn.wait()

        running = asyncio.create_task(process.run(stopping, after=before))
        await asked.wait()
        assert not listing()
        turn.set()
        await process.ready()
        assert listing()
        stopping.set()
        await running
        assert not listing()

    play(story, tmp_path)


def test_it_ends_in_order_while_it_waits_for_its_turn(tmp_path: Path) -> None:
    async def story(process: ControllersProcess) -> None:
        stopping = asyncio.Event()
        running = asyncio.create_task(process.run(stopping, after=asyncio.Event().wait))
        await asyncio.sleep(0)
        stopping.set()
        await running
        assert not listing()

    play(story, tmp_path)
