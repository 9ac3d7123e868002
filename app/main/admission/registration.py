"""Keeping the API server told of the webhooks.

What is registered is applied again every minute, so a configuration that is deleted or changed
comes back; applying what is there already writes nothing.
"""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from app.controllers.ports import Api, ApiError, Patch
from app.main.conf_file import Stamp, stamp
from app.settings.webhooks import WebhookSettings
from app.webhooks.admission import Webhook
from app.webhooks.configurations import Endpoint, Registration
from app.webhooks.resource_groups import ResourceGroup
from app.wire import kinds
from app.wire.unstructured import key_of

log = logging.getLogger(__name__)

AGAIN_S: Final = 60.0
LOOK_EVERY_S: Final = 1.0


class Registrar:
    """Writes the webhook configurations, from the moment requests can be answered."""

    def __init__(self, api: Api, registration: Registration | None, ready: asyncio.Event) -> None:
        """``registration`` None: the webhooks are registered by other means."""
        self._api = api
        self._registration = registration
        self._ready = ready
        self._told = b""

    async def register(self, authority: bytes) -> None:
        """Tell the API server whose certificates to trust (PEM); raises ApiError."""
        await self._ready.wait()
        if self._registration is None:
            return
        for resource, item in self._registration.objects(authority):
            await self._api.patch(resource, key_of(item), item, how=Patch.APPLY)
        if authority != self._told or not authority:
            log.info("webhooks registered", extra={"count": len(self._registration.webhooks)})
        self._told = authority

    async def follow_file(self, path: Path | None) -> None:
        """Register with what the authority's file holds, now and whenever it changes."""
        while True:
            seen = _stamp(path)
            try:
                await self.register(_bytes_of(path))
            except (ApiError, OSError) as error:
                log.warning("webhooks not registered", extra={"why": str(error)})
                await asyncio.sleep(LOOK_EVERY_S)
                continue
            await _changed(path, seen)


async def _changed(path: Path | None, seen: Stamp) -> None:
    """Wait until the file is another, or it is time anyway."""
    for _ in range(round(AGAIN_S / LOOK_EVERY_S)):
        await asyncio.sleep(LOOK_EVERY_S)
        if _stamp(path) != seen:
            return


def _stamp(path: Path | None) -> Stamp:
    return None if path is None else stamp(path)


def _bytes_of(path: Path | None) -> bytes:
    return b"" if path is None else path.read_bytes()


def registration_of(
    settings: WebhookSettings,
    webhooks: Sequence[Webhook],
    groups: tuple[ResourceGroup, ...] | None,
) -> Registration | None:
    """The registration that these settings ask for.

    Pods are only asked about when there is something to change in them.
    """
    if not settings.register_webhooks:
        return None
    changes_pods = groups is not None or settings.gate_pods or settings.queue_gates()
    return Registration(
        webhooks=[
            webhook
            for webhook in webhooks
            if changes_pods or webhook.mutate is None or webhook.resource != kinds.PODS
        ],
        place=Endpoint(
            url=settings.public_url,
            namespace=settings.webhook_namespace,
            service=settings.webhook_service_name,
            port=settings.webhook_service_port,
        ),
        name=settings.webhook_configuration_name,
        failure_policy=settings.failure_policy,
        schedulers=settings.schedulers(),
        any_pod=groups is not None,
    )
