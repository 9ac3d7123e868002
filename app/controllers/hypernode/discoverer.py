"""Keeps the HyperNodes that were discovered as the labels of the nodes are.

The configuration is read from its ConfigMap each time and looked at again after a while. Only
HyperNodes that carry the mark of this source are touched; when the source is switched off they stay
as they are, as running gangs may be bound to them.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from app.controllers.hypernode import discovery
from app.controllers.hypernode.controller import NAME
from app.controllers.hypernode.discovery import LABEL, SOURCE, Discovery, DiscoveryError
from app.controllers.ports import Api, ApiError, Events, Failure
from app.controllers.requests import GONE, unless
from app.controllers.runtime import ObjectChange
from app.controllers.store import Store
from app.kit.workqueue import Again
from app.wire.kinds import CONFIG_MAPS, HYPER_NODES, NODES, Resource
from app.wire.unstructured import Key, Object, key_of, labels, name, spec, uid

CONF: Final = "volcano-controller.conf"
_LOOK_S: Final = 15.0


class LabelDiscoverer:
    """See the module. There is one key for everything: where the configuration is."""

    name = NAME
    kinds = (NODES, HYPER_NODES)

    def __init__(
        self, stores: Mapping[Resource, Store], *, api: Api, events: Events, config_map: Key
    ) -> None:
        self._stores = stores
        self._api = api
        self._events = events
        self._config_map = config_map
        self._told = ""

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        """Everything, when labels change or a HyperNode of ours does."""
        if change.resource is NODES:
            both = change.old is not None and change.new is not None
            changed = not both or labels(change.old or {}) != labels(change.new or {})
        else:
            changed = labels(change.item).get(SOURCE) == LABEL
        return (self._config_map,) if changed else ()

    async def reconcile(self, key: Key) -> None:
        """Make, change and delete HyperNodes until they are as the labels are."""
        found = await self._configured(key)
        if found is not None and found.topologies is not None:
            nodes = self._stores[NODES].all()
            await self._bring_about(discovery.hyper_nodes(found.topologies, nodes))
        raise Again("the configuration may have changed", after_s=_LOOK_S)

    async def _configured(self, key: Key) -> Discovery | None:
        try:
            config_map = await self._api.get(CONFIG_MAPS, key)
        except ApiError as error:
            if error.failure is Failure.NOT_FOUND:
                return None
            raise
        try:
            found = discovery.read((config_map.get("data") or {}).get(CONF) or "")
        except DiscoveryError as error:
            await self._tell(config_map, "InvalidConfiguration", str(error))
            return None
        if found.unsupported:
            sources = ", ".join(found.unsupported)
            said = f"no HyperNodes are discovered from {sources}; the only source is {LABEL}"
            await self._tell(config_map, "UnsupportedSource", said)
        else:
            self._told = ""
        return found

    async def _tell(self, config_map: Object, reason: str, said: str) -> None:
        """Say something once."""
        if self._told != said:
            self._told = said
            await self._events.record(config_map, "Warning", reason, said)

    async def _bring_about(self, wanted: Mapping[str, Object]) -> None:
        existing = {
            name(item): item
            for item in self._stores[HYPER_NODES].all()
            if labels(item).get(SOURCE) == LABEL
        }
        for item in wanted.values():
            await self._put(item, existing.get(name(item)))
        for gone in existing.keys() - wanted.keys():
            await self._delete(existing[gone])

    async def _put(self, item: Object, stored: Object | None) -> None:
        try:
            if stored is None:
                await self._api.create(HYPER_NODES, item)
            elif _differs(stored, item):
                metadata = {"labels": labels(item), "uid": uid(stored)}
                body = {"metadata": metadata, "spec": spec(item)}
                await self._api.patch(HYPER_NODES, key_of(item), body)
        except ApiError as error:
            if error.failure not in (Failure.EXISTS, Failure.NOT_FOUND, Failure.CONFLICT):
                raise

    async def _delete(self, item: Object) -> None:
        with unless(*GONE):
            await self._api.delete(HYPER_NODES, key_of(item), uid=uid(item))


def _differs(stored: Object, wanted: Object) -> bool:
    """Whether ``stored`` lacks anything that is ``wanted``."""
    before = spec(stored)
    changed = any(before.get(key) != value for key, value in spec(wanted).items())
    return changed or not labels(wanted).items() <= labels(stored).items()
