"""What the webhook process knows of the cluster: informers for most, a listing for queues."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from app.kit.listings import Listings
from app.kube.answers import decoded
from app.kube.client import ApiClient
from app.kube.config import Connection
from app.kube.errors import KubeError
from app.main.informers import Informers, WatchedKind
from app.main.object_kinds import decoder_for
from app.webhooks.cluster_facts import FOLLOWED, ClusterFacts
from app.wire.kinds import QUEUES, Resource
from app.wire.unstructured import Key, Object, key_of

READ_S: Final = 2.0
"""Well below the webhooks' timeout: an answer by what is remembered is better than none."""

log = logging.getLogger(__name__)

_decode_list = msgspec.json.Decoder(dict[str, Any]).decode


class FactsFeed:
    """Puts what informers bring into the facts."""

    def __init__(self, facts: ClusterFacts) -> None:
        self._facts = facts
        self._resources = {str(resource): resource for resource in FOLLOWED}
        self._listings: Listings[Key] = Listings()

    def upsert(self, kind: str, item: Object) -> None:
        """An object was added, modified or listed."""
        self._listings.show(kind, key_of(item))
        self._facts.put(self._resources[kind], item)

    def remove(self, kind: str, item: Object) -> None:
        """An object was deleted."""
        self._listings.lose(kind, key_of(item))
        self._facts.drop(self._resources[kind], key_of(item))

    def begin_listing(self, kind: str) -> None:
        """A full listing starts."""
        self._listings.begin(kind)

    def end_listing(self, kind: str) -> None:
        """Complete the listing of ``kind``: objects that were not in it are gone."""
        listed = self._listings.end(kind)
        for key in listed.gone if listed is not None else ():
            self._facts.drop(self._resources[kind], key)

    def reject(
        self, kind: str, name: str, message: str, *, uid: str = "", deleted: bool = False
    ) -> None:
        """An object is left out; the informer has told why."""

    def batch_done(self) -> None:
        """Nothing waits for the end of a batch."""


def informers(facts: ClusterFacts, connection: Connection) -> Informers:
    """The threads that keep ``facts`` up to date."""
    followed = [_kind(resource) for resource in FOLLOWED]
    return Informers(followed, connection=connection, feed=FactsFeed(facts))


def _kind(resource: Resource) -> WatchedKind:
    return WatchedKind(str(resource), resource.path(), decoder_for(resource))


class StoredQueues:
    """Queues as the API server has them now."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def queues(self) -> Sequence[Object] | None:
        """All queues; None when they cannot be read."""
        try:
            async with asyncio.timeout(READ_S):
                return await self._read()
        except (KubeError, TimeoutError) as error:
            log.warning("queues not read, judging by those remembered", extra={"why": repr(error)})
            return None

    async def _read(self) -> list[Object]:
        found: list[Object] = []
        async for page in self._client.list(QUEUES.path()):
            found += decoded(page, _decode_list).get("items") or []
        return found
