"""A running ``pumice extender``, an API server for it, and kube-scheduler's calls."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from httpx2 import Client, TransportError

from app.sandbox.apiserver.server import ApiServer
from app.sandbox.assembly import kubeconfig
from app.sandbox.clock import WallClock
from app.sandbox.controlplane.free_ports import free_port
from app.sandbox.controlplane.processes import Process, wait_until
from app.wire import manifests
from tests.clusters.client import WITHOUT_TLS
from tests.clusters.pages import Pages
from tests.clusters.pumice import COMMAND
from tests.sandbox.documents import cpu, node, pod
from tests.sandbox.serving import serving

QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "default"},
    "spec": {"weight": 1},
}


class Extender(Process, Pages):
    """A running one, and what it serves; ``api_url`` is its API server's."""

    api_url: str


@contextmanager
def extender(
    folder: Path, api_url: str, *flags: str, env: Mapping[str, str] | None = None
) -> Iterator[Extender]:
    """Start one against that API server; ended in any case."""
    config = folder / "kubeconfig"
    config.write_text(yaml.safe_dump(kubeconfig(api_url)))
    port = free_port()
    argv: list[str | Path] = [COMMAND, "extender", f"--port={port}", f"--kubeconfig={config}"]
    environment = {**os.environ, "PUMICE_LEADER_ELECT": "false", **(env or {})}
    process = Extender(
        [*argv, *flags], log=folder / "extender.log", env=environment, name="extender"
    )
    process.url, process.api_url = f"http://127.0.0.1:{port}", api_url
    with process:
        yield process


@contextmanager
def cluster(*documents: dict[str, Any]) -> Iterator[str]:
    """The URL of an API server with our kinds, a node and ``documents``."""
    server = ApiServer(clock=WallClock(), crds=manifests.crd_documents())
    for document in (QUEUE, node("n1"), *documents):
        server.create(document)
    with serving(server) as url:
        yield url


def gang(name: str, *, size: int, cpus: str = "1") -> list[dict[str, Any]]:
    """A PodGroup that is let in already, and its pods."""
    group: dict[str, Any] = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": size, "queue": "default"},
        "status": {"phase": "Inqueue"},
    }
    annotations = {"scheduling.k8s.io/group-name": name}
    return [
        group,
        *(
            pod(
                f"{name}-{i}",
                metadata={"annotations": annotations},
                schedulerName="volcano",
                resources=cpu(cpus),
            )
            for i in range(size)
        ),
    ]


def ready(process: Extender) -> None:
    process.wait_ready(lambda: process.status("/readyz") == 200, timeout_s=60)


class Post(threading.Thread):
    """A call of kube-scheduler, under way; ``answer`` if it got one."""

    def __init__(self, url: str, body: Mapping[str, Any]) -> None:
        super().__init__(daemon=True)
        self._url, self._body = url, body
        self.answer: tuple[int, str] | None = None
        self.start()

    def run(self) -> None:
        with (
            Client(timeout=30, trust_env=False, verify=WITHOUT_TLS) as client,
            suppress(TransportError),
        ):
            response = client.post(self._url, json=dict(self._body))
            self.answer = response.status_code, response.text


def planned(process: Extender) -> dict[str, Any]:
    """The Bind call of g-0, once that has its place, n1."""
    with Client(base_url=process.api_url, trust_env=False, verify=WITHOUT_TLS) as client:
        stored = client.get("/api/v1/namespaces/default/pods/g-0").json()
    wait_until(places(process), timeout_s=20, what="a place")
    uid = stored["metadata"]["uid"]
    return {"PodName": "g-0", "PodNamespace": "default", "PodUID": uid, "Node": "n1"}


def binds_held(process: Extender) -> int:
    """Of gang g."""
    held: int = process.get("/debug/gangs").get("default/g", {}).get("heldBinds", 0)
    return held


def places(process: Extender) -> Callable[[], bool]:
    """Whether g-0, by now, has its place, n1."""
    with Client(base_url=process.api_url, trust_env=False, verify=WITHOUT_TLS) as client:
        stored = client.get("/api/v1/namespaces/default/pods/g-0").json()
    body = {"Pod": stored, "Nodes": None, "NodeNames": ["n1"]}

    def asked() -> bool:
        with Client(base_url=process.url, trust_env=False, verify=WITHOUT_TLS) as client:
            return bool(client.post("/v1/filter", json=body).json()["NodeNames"] == ["n1"])

    return asked
