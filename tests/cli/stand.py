"""The command line against an API server in the same process, with the shipped kinds."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import typer
import uvicorn
from typer.testing import CliRunner

from app.cli.root import app
from app.sandbox.apiserver.http import BOOKMARK_EVERY_S
from app.sandbox.apiserver.server import ApiServer
from app.wire import manifests
from app.wire.documents import ObjectName
from app.wire.kinds import Resource

Object = dict[str, Any]

CREATED = "2023-11-14T22:13:20Z"

_runner = CliRunner()


class Clock:
    """Time stands still, so that what is printed is always the same."""

    def now(self) -> float:
        return 1_700_000_000.0

    async def sleep(self, seconds: float) -> None:
        """A minute, after which a watch has a bookmark, takes no time to speak of.

        It also wakes the server, which does not hear of what is created behind its back.
        """
        await asyncio.sleep(0.05 if seconds <= BOOKMARK_EVERY_S else seconds)


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


def invoke(
    config: Path,
    *arguments: str,
    program: typer.Typer = app,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
) -> Done:
    """Run a command in this process, to its end."""
    variables = {"PUMICE_KUBECONFIG": str(config), **(env or {})}
    done = _runner.invoke(program, list(arguments), env=variables, input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


@dataclass(frozen=True, slots=True)
class Stand:
    """An API server that answers, and the command line pointed at it."""

    server: ApiServer
    url: str
    config: Path

    def run(
        self,
        *arguments: str,
        program: typer.Typer = app,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
    ) -> Done:
        """Run a command to its end."""
        return invoke(self.config, *arguments, program=program, env=env, stdin=stdin)

    def printed(self, *arguments: str, program: typer.Typer = app) -> str:
        """What a command that succeeds prints."""
        done = self.run(*arguments, program=program)
        assert (done.code, done.err) == (0, "")
        return done.out

    def refusal(self, *arguments: str, program: typer.Typer = app) -> tuple[int, str]:
        """Code and complaint of a command that does not; it prints nothing else."""
        done = self.run(*arguments, program=program)
        assert done.code != 0
        assert done.out == ""
        return done.code, done.err

    def create(self, *items: Object) -> list[Object]:
        """Create objects behind the command line's back."""
        return [self.server.create(item) for item in items]

    def all(self, resource: Resource) -> list[Object]:
        """Every stored object of a kind."""
        return list(self.server.store.ordered(_storage(resource)))

    def status(self, resource: Resource, name: str, status: Object) -> None:
        """Write the status of an object."""
        at = ObjectName("default" if resource.namespaced else "", name)
        subresource = "status" if resource.kind != "PodGroup" else ""
        change = {"status": status}
        self.server.patch(_storage(resource), at, change, subresource=subresource)


def _storage(resource: Resource) -> str:
    group = resource.api_version.rpartition("/")[0]
    return f"{group}/{resource.plural}"


class Door:
    """One HTTP server for all tests; behind it each has an API server of its own."""

    def __init__(self) -> None:
        self._crds = manifests.crd_documents()
        self.api = self.renew()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.api.app(scope, receive, send)

    def renew(self) -> ApiServer:
        """Put an empty API server behind the door."""
        self.api = ApiServer(clock=Clock(), crds=self._crds, seed=1)
        return self.api


@contextmanager
def opened(door: Door) -> Iterator[str]:
    """The URL at which ``door`` answers."""
    config = uvicorn.Config(door, log_level="error", access_log=False, lifespan="off")
    web = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=web.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            web.should_exit = True
            thread.join(timeout=10)
            assert not thread.is_alive()


@contextmanager
def answering(answer: bytes, status: int = 200) -> Iterator[tuple[str, list[str]]]:
    """A server that always says the same: its URL, and what it was asked, bodies included."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer)

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            asked.append(f"{self.path} {self.rfile.read(length).decode()}")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join(timeout=10)


def job(name: str, **more: Any) -> Object:
    """A job of one task with three pods, of which two are needed."""
    container = {"name": "c", "image": "busybox", "command": ["sleep", "10"]}
    spec = {
        "minAvailable": 2,
        "schedulerName": "volcano",
        "queue": "default",
        "tasks": [
            {"name": "work", "replicas": 3, "template": {"spec": {"containers": [container]}}}
        ],
        **more,
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def queue(name: str, **spec: Any) -> Object:
    """A queue."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, **spec},
    }


def group(name: str, *, phase: str = "", conditions: Sequence[Object] = (), **spec: Any) -> Object:
    """A PodGroup."""
    status: Object = {"phase": phase} if phase else {}
    if conditions:
        status["conditions"] = list(conditions)
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": 2, "queue": "default", **spec},
        "status": status,
    }


def pod(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    status: Object | None = None,
) -> Object:
    """A pod with one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {"containers": [{"name": "c", "image": "busybox"}]},
        "status": status or {"phase": "Pending"},
    }


def event(about: Object, reason: str, message: str, **more: Any) -> Object:
    """An event about an object."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{about['metadata']['name']}.{reason.lower()}",
            "namespace": "default",
        },
        "involvedObject": {
            "kind": about["kind"],
            "name": about["metadata"]["name"],
            "namespace": "default",
            "uid": about["metadata"].get("uid", ""),
        },
        "type": "Normal",
        "reason": reason,
        "message": message,
        "source": {"component": "volcano"},
        "firstTimestamp": CREATED,
        "lastTimestamp": CREATED,
        "count": 1,
        **more,
    }
