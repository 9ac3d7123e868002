"""Writes into each HyperNode how many nodes lie below it, and whether it means what it says."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from app.controllers.ports import Api, ApiError, Clock, Failure
from app.controllers.runtime import ObjectChange
from app.controllers.store import Index, Store
from app.core.topology.problems import of_members
from app.core.topology.tree import Below, Tree
from app.kit.workqueue import Again
from app.wire import times
from app.wire.kinds import CONFIG_MAPS, HYPER_NODES, NODES, Resource
from app.wire.objects.hyper_nodes import members_of
from app.wire.unstructured import (
    Key,
    Object,
    is_deleting,
    key_of,
    labels,
    metadata,
    name,
    spec,
    status,
    version,
)

NAME: Final = "hyperNode-controller"
INDEXES: Final[Mapping[Resource, Mapping[str, Index]]] = {
    HYPER_NODES: {},
    NODES: {},
    CONFIG_MAPS: {},
}
"""How this controller finds objects in the stores."""

RESOLVED: Final = "MembersResolved"
_ALL: Final = Key("", "*")
"""No name: stands for all of them."""


class HyperNodeController:
    """See the module. A change of what is below may concern every HyperNode: all are looked at."""

    name = NAME
    kinds = (HYPER_NODES, NODES)

    def __init__(self, stores: Mapping[Resource, Store], *, api: Api, clock: Clock) -> None:
        self._stores = stores
        self._api = api
        self._clock = clock
        self._tree = Tree()

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        """All, when it may matter to any; else the one that has changed."""
        if self._follow(change):
            return (_ALL,)
        return (key_of(change.item),) if change.resource is HYPER_NODES else ()

    async def reconcile(self, key: Key) -> None:
        """Write the statuses that say something else than before."""
        store = self._stores[HYPER_NODES]
        items = store.all() if key == _ALL else filter(None, [store.get(key)])
        behind = [item for item in items if not await self._is_written(item)]
        if behind:
            raise Again("the watch is behind")

    async def _is_written(self, item: Object) -> bool:
        """Whether the status is as it should be now; False: it was not the latest we know."""
        if is_deleting(item):
            return True
        below = self._tree.below(name(item))
        wanted = {
            "nodeCount": len(below.nodes),
            "conditions": self._conditions(item, below),
        }
        if wanted == status(item):
            return True
        body = {"metadata": {"resourceVersion": version(item)}, "status": wanted}
        try:
            await self._api.patch(HYPER_NODES, key_of(item), body, subresource="status")
        except ApiError as error:
            if error.failure in (Failure.CONFLICT, Failure.NOT_FOUND):
                return error.failure is Failure.NOT_FOUND
            raise
        return True

    def _follow(self, change: ObjectChange) -> bool:
        item = change.item
        if change.resource is NODES:
            if change.new is None:
                return self._tree.drop_node(name(item))
            return self._tree.put_node(name(item), labels(item))
        if change.new is None:
            return self._tree.drop(name(item))
        return self._tree.put(name(item), labels(item), members_of(spec(item)))

    def _conditions(self, item: Object, below: Below) -> list[Object]:
        """Foreign conditions, and ours; its time is that of the last change of its status."""
        value, reason, message = judged(below)
        before: list[dict[str, Any]] = list(status(item).get("conditions") or ())
        old = next((each for each in before if each.get("type") == RESOLVED), {})
        same = old.get("status") == value
        since = old.get("lastTransitionTime") if same else None
        ours = {
            "type": RESOLVED,
            "status": value,
            "reason": reason,
            "message": message,
            "lastTransitionTime": since or times.seconds(self._clock()),
            "observedGeneration": metadata(item).get("generation") or 0,
        }
        return [*(each for each in before if each.get("type") != RESOLVED), ours]


def judged(below: Below) -> tuple[str, str, str]:
    """Status, reason and message of the condition."""
    problem = next(of_members(below), None)
    if problem is not None:
        return "False", problem.reason, problem.message
    return "True", "Resolved", "every member was found"
