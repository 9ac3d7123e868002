"""How fast the job controller makes the pods of one job: ``python -m tests.bench.creation``.

One run starts a control plane without any scheduler. In turns, ``pumice controllers`` makes all the
pods of one job, and the same pods (taken from that job, under other names) are created directly
with as many requests in flight as the controller has, while no controller runs. Both begin with new
connections: the controllers are started for the job. The job's clock starts when its PodGroup is
put Inqueue, the other one with the first request; both end when a watch has shown the last pod.
A third row is a job of as many tasks of one pod each. Exit code 1 when the job needs more than
twice the time of direct creation, or when the controllers need more than one and a half times the
CPU for the job of many tasks, from its submission to the last pod; by the medians.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

import aiohttp
import httpx2

from app.controllers.job.pod_writer import CONCURRENT_WRITES
from tests.bench import usage
from tests.bench.stand import NAMESPACE, Stand
from tests.bench.traffic import Request, decode_line, post_of
from tests.clusters import workloads
from tests.clusters.certificates import KeyPair
from tests.clusters.client import Object, tls_context
from tests.clusters.ports import free_port
from tests.clusters.processes import Process
from tests.clusters.pumice import COMMAND
from tests.clusters.resources import JOBS, POD_GROUPS, PODS

LIMIT: Final = 2.0
CPU_LIMIT: Final = 1.5
_JOB: Final = "creation"
_PATIENCE_S: Final = 120
_WATCH_OPENS_S: Final = 0.5
_MERGE: Final = {"Content-Type": "application/merge-patch+json"}
_JSON: Final = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Run:
    """All pods once; ``cpu_s`` is that of the controllers."""

    seconds: float
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Runs:
    """Jobs of one task and of a task for each pod, and the pods without a job."""

    of_one: Run
    of_many: Run
    directly: Run


def main() -> None:
    options = _parser().parse_args()
    _say(f"{options.pods} pods, {CONCURRENT_WRITES} requests in flight, {_machine()}")
    with tempfile.TemporaryDirectory(prefix="pumice-creation-") as folder:
        runs = asyncio.run(_run(Path(folder) / "plane", options.pods, repeats=options.repeats))
    took = median(run.of_one.seconds for run in runs) / median(run.directly.seconds for run in runs)
    used = median(run.of_many.cpu_s for run in runs) / median(run.of_one.cpu_s for run in runs)
    _judge("the job takes {} times as long", took, LIMIT)
    _judge("many tasks take {} times the CPU of one", used, CPU_LIMIT)
    sys.exit(0 if took <= LIMIT and used <= CPU_LIMIT else 1)


def _judge(what: str, ratio: float, limit: float) -> None:
    told = what.format(f"{ratio:.2f}")
    _say(f"{'holds' if ratio <= limit else 'FAILS'}  {told}, wanted <= {limit:.2f}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.creation", description=__doc__)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    return parser


async def _run(folder: Path, pods: int, *, repeats: int) -> list[Runs]:
    runs: list[Runs] = []
    with Stand(folder) as stand:
        stand.plane.api.create(workloads.queue("default"))
        admin = KeyPair(folder / "pki" / "admin.crt", folder / "pki" / "admin.key")
        context = tls_context(stand.plane.authority.certificate, admin)
        async with _session(stand.plane.url, context) as session:
            sides = _Sides(stand, session, context=context, pods=pods)
            for repeat in range(repeats + 1):
                # Directly, pods are made as the first job had them.
                of_many, of_one = await sides.by_job(tasks=pods), await sides.by_job(tasks=1)
                run = Runs(of_one, of_many, await sides.directly())
                if repeat:  # the first of each only warms up
                    runs.append(run)
                    _tell(repeat, run, pods=pods)
    return runs


def _session(url: str, context: ssl.SSLContext) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        url,
        connector=aiohttp.TCPConnector(limit=CONCURRENT_WRITES + 8, ssl=context),
        timeout=aiohttp.ClientTimeout(total=None),
        skip_auto_headers=("Accept-Encoding",),
        read_bufsize=2**20,
    )


class _Sides:
    """Both ways to make the same pods."""

    def __init__(
        self, stand: Stand, session: aiohttp.ClientSession, *, context: ssl.SSLContext, pods: int
    ) -> None:
        """``session`` is for everything but the pods."""
        self._stand = stand
        self._context = context
        self._api = stand.plane.api
        self._session = session
        self._pods = pods
        self._alike: list[Request] = []

    async def by_job(self, *, tasks: int) -> Run:
        """The controllers make the pods of a job."""
        with self._controllers() as process:
            used_s = usage.of(process.pid).cpu_s
            self._api.create(_job(self._pods, tasks), resource=JOBS, namespace=NAMESPACE)
            (group,) = self._api.until(
                POD_GROUPS, bool, namespace=NAMESPACE, timeout_s=_PATIENCE_S, what="made"
            )
            name = group["metadata"]["name"]
            path = POD_GROUPS.path(name, namespace=NAMESPACE)
            async with self._all_shown() as shown:
                began = time.perf_counter()
                await self._patch(path, b'{"status":{"phase":"Inqueue"}}')
                seconds = await shown - began
            used_s = usage.of(process.pid).cpu_s - used_s
        made = self._api.list(PODS, namespace=NAMESPACE)
        self._alike = [post_of(_alike(pod), PODS, namespace=NAMESPACE) for pod in made]
        self._clear()
        return Run(seconds, used_s)

    async def directly(self) -> Run:
        """Nobody is in between."""
        async with (
            self._all_shown() as shown,
            _session(self._stand.plane.url, self._context) as session,
        ):
            began = time.perf_counter()
            await _post_all(session, self._alike)
            seconds = await shown - began
        self._clear()
        return Run(seconds)

    @contextmanager
    def _controllers(self) -> Iterator[Process]:
        """A process of the controllers, as operators start it."""
        plane, address = self._stand.plane, f"127.0.0.1:{free_port()}"
        argv: list[str | Path] = [
            COMMAND,
            "controllers",
            f"--kubeconfig={plane.kubeconfig}",
            "--leader-elect=false",
            f"--healthz-address={address}",
        ]
        with Process(argv, log=plane.log("controllers"), name="controllers") as process:
            process.wait_ready(lambda: _is_ready(address), timeout_s=60)
            yield process

    @asynccontextmanager
    async def _all_shown(self) -> AsyncIterator[asyncio.Task[float]]:
        """When a watch will have shown as many new pods as there are to be."""
        _, version = self._api.list_with_version(PODS, namespace=NAMESPACE)
        shown = asyncio.create_task(self._last_added(version))
        await asyncio.sleep(_WATCH_OPENS_S)
        try:
            yield shown
        finally:
            shown.cancel()

    async def _last_added(self, version: str) -> float:
        seen = 0
        async with asyncio.timeout(_PATIENCE_S):
            while True:  # the API server closes watches that are not read fast enough
                params = {"watch": "1", "resourceVersion": version}
                path = PODS.path(namespace=NAMESPACE)
                async with self._session.get(path, params=params) as answer:
                    async for line in answer.content:
                        event = decode_line(line)
                        version = event.object.metadata.resource_version
                        seen += event.type == "ADDED"
                        if seen == self._pods:
                            return time.perf_counter()

    async def _patch(self, path: str, body: bytes) -> None:
        async with self._session.patch(path, data=body, headers=_MERGE) as answer:
            answer.raise_for_status()

    def _clear(self) -> None:
        for resource in (JOBS, POD_GROUPS, PODS):
            self._api.delete_all(resource, namespace=NAMESPACE)
            self._api.until(
                resource,
                lambda items: not items,
                namespace=NAMESPACE,
                timeout_s=_PATIENCE_S,
                what="gone",
            )


async def _post_all(session: aiohttp.ClientSession, requests: Sequence[Request]) -> None:
    left = iter(requests)

    async def send() -> None:
        for request in left:
            async with session.post(request.path, data=request.body, headers=_JSON) as answer:
                answer.raise_for_status()
                await answer.read()

    async with asyncio.TaskGroup() as group:
        for _ in range(CONCURRENT_WRITES):
            group.create_task(send())


def _job(pods: int, tasks: int) -> Object:
    """That many pods, in tasks of the same size."""
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sleep", "1000"],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": _JOB},
        "spec": {
            "schedulerName": workloads.SCHEDULER,
            "queue": "default",
            "minAvailable": pods,
            "tasks": [
                {"name": f"main{at}", "replicas": pods // tasks, "template": template}
                for at in range(tasks)
            ],
        },
    }


def _alike(pod: Object) -> Object:
    """The pod as the controller sent it, but of nobody."""
    metadata = {key: pod["metadata"][key] for key in ("labels", "annotations")}
    metadata["name"] = pod["metadata"]["name"].replace(_JOB, "directly", 1)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": deepcopy(pod["spec"])}


def _is_ready(address: str) -> bool:
    try:
        return httpx2.get(f"http://{address}/readyz", trust_env=False).status_code == 200
    except httpx2.HTTPError:
        return False


def _tell(repeat: int, runs: Runs, *, pods: int) -> None:
    rows = {
        f"1 x {pods}": runs.of_one,
        f"{pods} x 1": runs.of_many,
        "directly": runs.directly,
    }
    for name, run in rows.items():
        cpu = f", controllers {run.cpu_s:.2f} CPU-s" if run.cpu_s else ""
        _say(f"{repeat}: {name:>9} {run.seconds:5.2f} s ({pods / run.seconds:4.0f} pods/s{cpu})")


def _machine() -> str:
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{os.cpu_count()} cores {platform.machine()}, load {load}"


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the result of the program


if __name__ == "__main__":
    main()
