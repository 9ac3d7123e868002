"""``pumice demo --page``: a cluster with work that moves, for looking at on the page.

The cluster is that of `pumice sandbox`, with the configuration that evicts. Jobs that have ended
are deleted, so it can be left alone for as long as wished.
"""

import asyncio
import json
import random
import tempfile
from contextlib import suppress
from pathlib import Path

from app.kube import config, errors
from app.kube.client import ApiClient
from app.main.sandbox import Running, SandboxFailed, SandboxOptions, Say, ended, running
from app.main.signals import interruptible, until_signal
from app.sandbox.story.jobs import CONF, conf
from app.sandbox.story.moving import NODES, MovingWork, queues
from app.wire.kinds import JOBS, QUEUES

NAMESPACE = "default"
LOOK_EVERY_S = 1.0
PAGE = "/ui"


def keep(*, port: int, for_s: float | None, say: Say) -> None:
    """Keep the cluster for ``for_s`` seconds (None: until SIGINT or SIGTERM).

    ``say`` is told where everything is. SandboxFailed when the cluster cannot be kept.
    """
    with interruptible():
        asyncio.run(_kept(port, for_s, say))


async def _kept(port: int, for_s: float | None, say: Say) -> None:
    async with until_signal():
        try:
            async with asyncio.timeout(for_s) as limit:
                await _moved(port, for_s, say)
        except TimeoutError:
            if not limit.expired():
                raise
        except errors.KubeError as error:
            raise SandboxFailed(f"its API server refuses: {error.message}") from error


async def _moved(port: int, for_s: float | None, say: Say) -> None:
    with tempfile.TemporaryDirectory(prefix="pumice-demo-") as name:
        folder = Path(name)
        (folder / CONF).write_text(conf())
        options = SandboxOptions(
            nodes=NODES, folder=folder, scheduler_conf=folder / CONF, extender_port=port
        )
        async with running(options) as cluster:
            introduce(cluster, for_s, say)
            async with ApiClient(config.load(cluster.kubeconfig)) as client:
                for queue in queues():
                    await client.create(QUEUES.path(), queue)
                await _move(client, cluster)


async def _move(client: ApiClient, cluster: Running) -> None:
    """Create and delete jobs for ever; SandboxFailed when a part of the cluster ends."""
    clock, path = asyncio.get_running_loop().time, JOBS.path(namespace=NAMESPACE)
    work = MovingWork(random.Random())
    while True:
        for part in cluster.parts:
            if part.done():
                raise ended(part)
        with suppress(errors.Transient):  # it is asked again in a moment
            jobs = json.loads(await client.get(path))["items"]
            moves = work.moves(clock(), jobs)
            for job in moves.create:
                await client.create(path, job)
            for name in moves.delete:
                with suppress(errors.NotFound):
                    await client.delete(f"{path}/{name}")
        await asyncio.sleep(LOOK_EVERY_S)


def introduce(cluster: Running, for_s: float | None, say: Say) -> None:
    """Say where the page is, and what else to look with."""
    say(f"page:  {cluster.extender_url}{PAGE}")
    say(f"see:   pumice top --kubeconfig {cluster.kubeconfig}")
    say(f"why:   pumice explain JOB --kubeconfig {cluster.kubeconfig}")
    say(f"       (with the numbers of --extender-url {cluster.extender_url})")
    how = "" if for_s is None else f"; it ends by itself after {for_s:g} s"
    say(f"Jobs come, wait, run and end, in four queues. Ctrl-C ends it{how}; nothing is kept.")
