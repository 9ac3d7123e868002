"""Work of which there is one: by whom it is done, against the sandbox's API server."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
import yaml

from app.kube import config
from app.kube.client import ApiClient
from app.main.clock import steady_clock
from app.main.election import lead
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.assembly import kubeconfig
from app.sandbox.clock import WallClock
from app.settings.controllers import ControllersSettings
from tests.sandbox.serving import serving

PATIENCE_S = 20


async def work_in(started: asyncio.Queue[str], name: str) -> None:
    """Work for ever, after saying who does."""
    started.put_nowait(name)
    await asyncio.Event().wait()


def connection(folder: Path, url: str) -> config.Connection:
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig(url)))
    return config.load(file)


def test_one_of_two_works_and_the_other_when_that_one_has_ended(tmp_path: Path) -> None:
    settings = ControllersSettings(leader_elect_resource_namespace="default")

    async def story(client: ApiClient) -> None:
        started: asyncio.Queue[str] = asyncio.Queue()
        tasks = {
            name: asyncio.create_task(
                lead(
                    settings,
                    client,
                    work=partial(work_in, started, name),
                    clock=steady_clock(),
                )
            )
            for name in ("one", "other")
        }
        async with asyncio.timeout(PATIENCE_S):
            first = await started.get()
            assert started.empty()
            tasks.pop(first).cancel()
            [second] = tasks
            assert await started.get() == second
        tasks[second].cancel()
        await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def connected(url: str) -> None:
        async with ApiClient(connection(tmp_path, url)) as client:
            await story(client)

    with serving(ApiServer(clock=WallClock())) as url:
        asyncio.run(connected(url))


@pytest.mark.real_time
async def test_without_election_work_begins_at_once(tmp_path: Path) -> None:
    started: asyncio.Queue[str] = asyncio.Queue()
    client = ApiClient(connection(tmp_path, "http://127.0.0.1:1"))
    work = asyncio.create_task(
        lead(
            ControllersSettings(leader_elect=False),
            client,
            work=partial(work_in, started, "it"),
            clock=steady_clock(),
        )
    )
    async with asyncio.timeout(PATIENCE_S):
        assert await started.get() == "it"
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
