"""The webhooks beside a stock API server on this machine, asked by it over HTTPS.

What they refuse is refused while they are down, too: a sandbox that takes now and then what it
refuses otherwise would teach nothing.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from app.kube import errors
from app.kube.client import ApiClient
from app.main.sandbox import LOOPBACK, SandboxFailed, opened, part
from app.main.serving.server import Bind
from app.main.webhooks import WebhookProcess
from app.settings.webhooks import WebhookSettings
from app.wire import kinds
from app.wire.documents import Document
from app.wire.kinds import Resource

NAMESPACE: Final = "kube-system"
"""Where the certificate is kept; the API server makes this namespace itself."""
LOOK_EVERY_S: Final = 0.1
PATIENCE_S: Final = 60.0

_PROBE: Final[Document] = {"name": "probe", "namespace": "default"}
_CONTAINERS: Final[Document] = {"containers": [{"name": "c", "image": "none"}]}

REFUSED: Final[tuple[tuple[Resource, Document], ...]] = (
    # By the schema too, in other words: a judge that objects earlier is among those that change.
    (
        kinds.JOBS,
        {
            "metadata": _PROBE,
            "spec": {
                "minAvailable": -1,
                "tasks": [{"name": "t", "replicas": 1, "template": {"spec": _CONTAINERS}}],
            },
        },
    ),
    # Pods are judged only among those that do not change anything.
    (
        kinds.PODS,
        {
            "metadata": {**_PROBE, "annotations": {"volcano.sh/jdb-min-available": "none"}},
            "spec": {"schedulerName": "volcano", **_CONTAINERS},
        },
    ),
)
"""What only the webhooks refuse: one object for each of the two configurations."""


@asynccontextmanager
async def judged(kubeconfig: Path, client: ApiClient) -> AsyncIterator[asyncio.Task[None]]:
    """The webhooks, asked about all that is written from now on."""
    stopping = asyncio.Event()
    with opened(0) as listener:
        settings = WebhookSettings(
            kubeconfig=kubeconfig,
            public_url=f"https://{LOOPBACK}:{listener.getsockname()[1]}",
            webhook_namespace=NAMESPACE,
            leader_elect=False,
            failure_policy="Fail",
            loose_volumes=True,  # as in the embedded one
        )
        bind = Bind(host=LOOPBACK, port=0)
        work = WebhookProcess(settings, client).run(listener, bind, stopping)
        asked = _are_asked(client)
        async with part("the webhooks", work, ready=asked, stopping=stopping) as task:
            yield task


async def _are_asked(client: ApiClient) -> None:
    """Wait until the API server has taken notice, which takes it a moment."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            for resource, item in REFUSED:
                await _refused(client, resource, item)
    except TimeoutError as error:
        why = f"the API server has not asked the webhooks within {PATIENCE_S:g} s"
        raise SandboxFailed(why) from error


async def _refused(client: ApiClient, resource: Resource, item: Document) -> None:
    """Wait until ``item`` is refused, and not by its schema or for a silent webhook."""
    body = {"apiVersion": resource.api_version, "kind": resource.kind, **item}
    path = resource.path(namespace="default")
    while True:
        try:
            await client.create(path, body, params={"dryRun": "All"})
        except errors.KubeError as error:
            if isinstance(error, errors.Forbidden):
                return
        await asyncio.sleep(LOOK_EVERY_S)
