"""The same events to the embedded scheduler and to kube-scheduler: the same calls of the extender.

The extender is a recording one that refuses every pod, or answers Error. Counted are its Filter
calls after each event, by pod. How often a pod is tried at once is compared exactly; what depends
on the machine's speed (bursts of events may be taken together) only as some or none.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from httpx2 import Client

from app.cli.scheduler_config import render
from app.main.sandbox import HttpExtender
from app.sandbox.assembly import build_sandbox
from app.sandbox.clock import WallClock
from app.sandbox.controlplane.certificates import KeyPair
from app.sandbox.nodes import NodeSpec, node_documents
from app.wire.documents import Document, items
from tests.clusters.client import tls_context
from tests.clusters.controlplane import ControlPlane
from tests.sandbox.documents import cpu, pod
from tests.sandbox.serving import ApiWebServer

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
ROOM = NodeSpec(count=3, cpu="4")
QUIET_S = 1.5
"""Nothing happens for that long: all that an event causes has been seen."""


@dataclass
class Recorder:
    """Filter calls by pod; refuses, or answers Error to pods whose name says so."""

    calls: Counter[str] = field(default_factory=Counter)
    last: float = 0.0

    def answer(self, args: Document) -> Document:
        name = args["Pod"]["metadata"]["name"]
        self.calls[name] += 1
        self.last = time.monotonic()
        if name.startswith("error"):
            return {"Error": "not yet"}
        told = dict.fromkeys(args["NodeNames"], "waiting for gang")
        return {"NodeNames": [], "FailedAndUnresolvableNodes": told}


@contextmanager
def listening(recorder: Recorder) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            answer = json.dumps(recorder.answer(json.loads(body))).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            serving.join()


@dataclass(frozen=True)
class Stand:
    """A cluster and what its scheduler asked."""

    api: Client
    recorder: Recorder

    def create(self, path: str, document: Document) -> None:
        answer = self.api.post(path, json=document)
        assert answer.status_code == 201, answer.text

    def patch(self, path: str, change: Mapping[str, Any]) -> None:
        answer = self.api.patch(
            path,
            content=json.dumps(change),
            headers={"content-type": "application/merge-patch+json"},
        )
        assert answer.status_code == 200, answer.text

    def after(self, event: Callable[[], object], *, quiet_s: float = QUIET_S) -> Counter[str]:
        """The calls that an event causes."""
        before = Counter(self.recorder.calls)
        self.recorder.last = time.monotonic()
        event()
        while time.monotonic() < self.recorder.last + quiet_s:
            time.sleep(0.02)
        return self.recorder.calls - before


def member(name: str, *, gates: Sequence[Document] = ()) -> Document:
    return pod(name, schedulerName="volcano", resources=cpu("1"), schedulingGates=list(gates))


def bind(stand: Stand, name: str) -> None:
    binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "node-00000"}}
    stand.create(f"{PODS}/{name}/binding", binding)


def heartbeat(stand: Stand) -> None:
    node = stand.api.get(f"{NODES}/node-00000").json()
    conditions = items(node, "status", "conditions")
    for one in conditions:
        one["lastHeartbeatTime"] = "2030-01-01T00:00:00Z"
    stand.patch(f"{NODES}/node-00000/status", {"status": {"conditions": conditions}})


def in_time(stand: Stand, seconds: float) -> int:
    """Calls for a pod that meets an Error, from its creation on."""
    stand.create(PODS, member("error"))
    time.sleep(seconds)
    return stand.recorder.calls["error"]


def played(stand: Stand) -> dict[str, object]:
    """What the events cause, one after the other."""
    marks = {"metadata": {"annotations": {"wake": "1"}}}
    stand.create(PODS, pod("foreign", schedulerName="nobody"))
    stand.create(PODS, pod("other", schedulerName="nobody"))
    gates = [{"name": "pumice.sh/plan"}]
    label = {"metadata": {"labels": {"x": "y"}}}
    nominated = {"status": {"nominatedNodeName": "node-00001"}}

    def create_two() -> None:
        stand.create(PODS, member("a"))
        stand.create(PODS, member("b"))

    return {
        "creation": stand.after(create_two, quiet_s=3),
        "annotation": stand.after(lambda: stand.patch(f"{PODS}/a", marks)),
        "label": stand.after(lambda: stand.patch(f"{PODS}/b", label)),
        "heartbeat": stand.after(lambda: heartbeat(stand)),
        "node annotation": stand.after(lambda: stand.patch(f"{NODES}/node-00001", marks)),
        "gated": stand.after(lambda: stand.create(PODS, member("gated", gates=gates))),
        "gated, annotation": stand.after(lambda: stand.patch(f"{PODS}/gated", marks)),
        "gated, nomination": stand.after(lambda: stand.patch(f"{PODS}/gated/status", nominated)),
        "gate removed": set(
            stand.after(lambda: stand.patch(f"{PODS}/gated", {"spec": {"schedulingGates": None}}))
        ),
        "nomination": set(stand.after(lambda: stand.patch(f"{PODS}/a/status", nominated))),
        "bound": stand.after(lambda: bind(stand, "foreign")),
        "bound, status": stand.after(
            lambda: stand.patch(f"{PODS}/foreign/status", {"status": {"message": "well"}})
        ),
        "bound, another": stand.after(lambda: bind(stand, "other")),
        "deleted": set(
            stand.after(
                lambda: stand.api.request(
                    "DELETE", f"{PODS}/foreign", json={"gracePeriodSeconds": 0}
                )
            )
        ),
        "node deleted": set(stand.after(lambda: stand.api.delete(f"{NODES}/node-00002"))),
        "error": in_time(stand, 6.5),
        "error, annotation": stand.after(lambda: stand.patch(f"{PODS}/error", marks), quiet_s=0.3),
    }


def on_the_real_one(folder: Path) -> dict[str, object]:
    recorder = Recorder()
    with listening(recorder) as url, ControlPlane(folder) as plane:
        config = folder / "scheduler.yaml"
        config.write_text(render(extender_url=url, kubeconfig=plane.kubeconfig))
        pki = folder / "pki"
        context = tls_context(
            plane.authority.certificate, KeyPair(pki / "admin.crt", pki / "admin.key")
        )
        with Client(base_url=plane.url, verify=context, timeout=20) as api:
            stand = Stand(api, recorder)
            for node in node_documents(ROOM, now=time.monotonic()):
                stand.create(NODES, node)
            while api.get("/api/v1/namespaces/default").status_code != 200:
                time.sleep(0.05)
            plane.start_scheduler(config)
            return played(stand)


def in_the_sandbox() -> dict[str, object]:
    recorder = Recorder()
    with (
        listening(recorder) as extender,
        scheduling(extender) as url,
        Client(base_url=url, timeout=20) as api,
    ):
        return played(Stand(api, recorder))


@contextmanager
def scheduling(extender: str) -> Iterator[str]:
    """API server and schedulers of the sandbox in an event loop of their own."""
    stop = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    async def main() -> None:
        async with aiohttp.ClientSession() as session:
            client = HttpExtender(session, extender)
            sandbox = build_sandbox(clock=WallClock(), nodes=ROOM, extender=client)
            web = ApiWebServer(sandbox.server)
            serving = asyncio.create_task(web.serve(sockets=[listener]))
            moving = asyncio.create_task(sandbox.run())
            await asyncio.to_thread(stop.wait)
            moving.cancel()
            await asyncio.gather(moving, return_exceptions=True)
            web.should_exit = True
            await serving

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        stop.set()
        thread.join()
        listener.close()


@pytest.mark.real
def test_both_schedulers_ask_alike(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as beside:
        ours = beside.submit(in_the_sandbox)
        real = on_the_real_one(tmp_path / "real")
    for event, calls in real.items():
        assert ours.result()[event] == calls, event
