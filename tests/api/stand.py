"""The application over the rig's parts, called in-process as kube-scheduler calls it."""

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from httpx2 import ASGITransport, AsyncClient, Response
from starlette.types import ASGIApp

from app.api.access import Access
from app.api.app import create_app, create_reading_app
from app.api.extender import extender_calls
from app.api.services import ExtenderServices
from app.model.decision import AuditAnswer, AuditQuestion, Coverage
from app.service.ports import AuditTrail
from app.service.telling.view.history import HistoryKeeper
from app.service.telling.view.state import Sources
from app.service.telling.view.views import Views
from app.telemetry.metrics import REGISTRY
from tests.service.rig import Rig
from tests.service.virtual_time import clock
from tests.wire.manifests import pod as pod_manifest

RECORDED = Path(__file__).parents[1] / "wire" / "recorded"


def recorded(name: str) -> bytes:
    """A body recorded from the stock scheduler."""
    return (RECORDED / f"{name}.json").read_bytes()


class NoTrail:
    """No decisions are kept."""

    async def ask(self, question: AuditQuestion) -> AuditAnswer:
        coverage = Coverage(
            outlives_process=False, folder="", since=0.0, dropped=0, problems=("not kept",)
        )
        return AuditAnswer((), coverage)

    async def certificate(self, plan: str) -> None:
        return None


class Stand:
    """A rig and a client; ``waits`` is what readiness waits for, ``app`` what is asked."""

    def __init__(
        self,
        client: AsyncClient,
        rig: Rig,
        *,
        waits: list[str],
        services: ExtenderServices,
        app: ASGIApp,
    ) -> None:
        self.client = client
        self.rig = rig
        self.waits = waits
        self.views = services.views
        self.history = services.history
        self.app = app

    async def post(self, path: str, body: bytes | Mapping[str, Any]) -> Response:
        """As kube-scheduler posts."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.client.post(
            path, content=content, headers={"content-type": "application/json"}
        )

    async def get(self, path: str) -> Response:
        return await self.client.get(path)

    def reserved(self) -> int:
        """Promises, members and vetoes together: nothing may be left by a bad call."""
        return (
            self.rig.has_reservations()
            + len(self.rig.cache.members)
            + len(self.rig.planning.vetoes)
        )


@asynccontextmanager
async def stand(
    rig: Rig | None = None,
    *,
    reading: bool = False,
    access: Access | None = None,
    client: str = "127.0.0.1",
    token: str = "",
    trail: AuditTrail | None = None,
) -> AsyncIterator[Stand]:
    """A stand over ``rig``, or over an empty one; ``reading``: at the address for readers.

    The one who asks is at the address ``client`` and shows the ``token``, if it has one. Without a
    ``trail`` no decisions are kept.
    """
    rig = rig or Rig()
    rig.planning.leadership.deciding.set()
    waits: list[str] = []
    services = services_of(rig, waits=waits, access=access, trail=trail)
    calls = extender_calls(services)
    app = create_reading_app(services) if reading else create_app(services, calls)
    transport = ASGITransport(app, client=(client, 1))
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with AsyncClient(
        transport=transport, base_url="http://localhost", headers=headers
    ) as asking:
        yield Stand(asking, rig, waits=waits, services=services, app=app)


def services_of(
    rig: Rig,
    *,
    waits: Sequence[str] = (),
    access: Access | None = None,
    trail: AuditTrail | None = None,
) -> ExtenderServices:
    """What calls are answered with; ``waits`` is what readiness waits for."""
    parts, views = rig.parts, views_of(rig)
    return ExtenderServices(
        cache=parts.cache,
        planning=parts.planning,
        reasons=parts.reasons,
        filtering=parts.filtering,
        barrier=parts.barrier,
        binding=parts.binding,
        preemption=parts.preemption,
        feed=parts.feed,
        audit=parts.audit,
        trail=trail or NoTrail(),
        views=views,
        history=HistoryKeeper(views.sources),
        unready=lambda: list(waits),
        notices=parts.configuration.notices,
        metrics=REGISTRY,
        access=access or Access(None, clock=clock),
    )


def views_of(rig: Rig) -> Views:
    """What readers of the rig's whole state are told."""
    return Views(sources_of(rig), slice_s=rig.limits.slice_s)


def sources_of(rig: Rig) -> Sources:
    """What views of the rig look at."""
    parts = rig.parts
    return Sources(
        cache=parts.cache,
        planning=parts.planning,
        reasons=parts.reasons,
        held=parts.barrier.held,
        notices=parts.configuration.notices,
        clock=rig.clock,
    )


def args(name: str = "p", *, nodes: Iterable[str] = ("n1",), **pod: Any) -> dict[str, Any]:
    """The body of Filter and Prioritize for a pod of ours."""
    body = pod_manifest(meta={"name": name}, **pod)
    return {"Pod": body, "Nodes": None, "NodeNames": list(nodes)}


def binding(name: str = "p", *, node: str = "n1") -> dict[str, str]:
    """The body of Bind."""
    return {"PodName": name, "PodNamespace": "default", "PodUID": f"uid-{name}", "Node": node}


def job(
    name: str = "j", *, replicas: int = 2, cpu: str = "2", minimum: int = 0, **spec: Any
) -> dict[str, Any]:
    """A vcjob with one task, whose pods have one container."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    task = {"name": "w", "replicas": replicas, "template": template}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"minAvailable": minimum or replicas, "tasks": [task], **spec},
    }
