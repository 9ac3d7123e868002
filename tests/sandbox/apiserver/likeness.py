"""The same requests to the embedded API server and to kube-apiserver, and what must be equal."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from httpx2 import Client, Response

from app.main.adapters.stock_types import stock_type
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.clock import WallClock
from app.sandbox.controlplane.certificates import KeyPair
from app.wire.documents import Document, section
from tests.clusters.client import WITHOUT_TLS, tls_context
from tests.clusters.controlplane import ControlPlane
from tests.sandbox.documents import WIDGET_CRD
from tests.sandbox.serving import serving

NAMESPACE = "/api/v1/namespaces/default"
PODS = f"{NAMESPACE}/pods"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE, STRATEGIC, JSON = "merge-patch+json", "strategic-merge-patch+json", "json-patch+json"


class Step(NamedTuple):
    """One request."""

    method: str
    path: str
    body: object = None
    kind: str = "json"


def first_line(message: str | None) -> str:
    """Further lines show a difference of objects, in a form that is meant for people only."""
    return (message or "").partition("\n")[0]


def in_one_order(message: str) -> str:
    """The message with its bracketed causes sorted."""
    head, bracket, listed = message.partition(": [")
    if not bracket or not listed.endswith("]"):
        return message
    return f"{head}: [{', '.join(sorted(listed[:-1].split(', ')))}]"


def causes(status: Document) -> Iterator[tuple[str, str, str]]:
    for cause in section(status, "details").get("causes") or []:
        yield cause.get("field", ""), cause.get("reason", ""), first_line(cause.get("message"))


def seen(response: Response) -> Document:
    """What must be equal of an answer."""
    body = response.json()
    if body["kind"] == "Status":
        return {
            "code": response.status_code,
            "reason": body.get("reason"),
            "text": in_one_order(first_line(body.get("message"))),
            "causes": sorted(causes(body)),
        }
    metadata = body["metadata"]
    kept = ("name", "generation", "annotations", "labels", "deletionGracePeriodSeconds")
    status = section(body, "status")
    return {
        "code": response.status_code,
        "metadata": {name: metadata.get(name) for name in kept},
        "spec": body.get("spec"),
        "phase": status.get("phase"),
        "conditions": [
            (one["type"], one["status"], one.get("reason"), one.get("message"))
            for one in status.get("conditions") or []
        ],
    }


def sent(client: Client, step: Step) -> Response:
    return client.request(
        step.method,
        step.path,
        content=None if step.body is None else json.dumps(step.body),
        headers={"content-type": f"application/{step.kind}"},
    )


def wait_until_served(client: Client) -> None:
    """The real server serves a definition a moment after it has taken it.

    It also makes the namespace itself, after it is ready.
    """
    deadline = time.monotonic() + 20
    while (codes := {client.get(path).status_code for path in (NAMESPACE, WIDGETS)}) != {200}:
        assert time.monotonic() < deadline, codes
        time.sleep(0.05)


@contextmanager
def on_the_real_server(
    folder: Path, *, crds: Sequence[Document] = (), controllers: bool = False
) -> Iterator[Client]:
    """The controllers know the kinds that are there when they start."""
    with ControlPlane(folder) as control_plane:
        pki = folder / "pki"
        context = tls_context(
            control_plane.authority.certificate,
            KeyPair(pki / "admin.crt", pki / "admin.key"),
        )
        with Client(base_url=control_plane.url, verify=context, timeout=20) as client:
            for crd in (*crds, WIDGET_CRD):
                client.post(CRDS, json=crd)
            wait_until_served(client)
            if controllers:
                control_plane.start_controllers()
            yield client


@contextmanager
def in_the_sandbox(*, crds: Sequence[Document] = ()) -> Iterator[Client]:
    known = [*crds, WIDGET_CRD]
    with (
        serving(ApiServer(clock=WallClock(), crds=known, stock_types=stock_type)) as url,
        Client(base_url=url, timeout=20, verify=WITHOUT_TLS) as client,
    ):
        yield client


class Servers(NamedTuple):
    """A client of each."""

    real: Client
    ours: Client
