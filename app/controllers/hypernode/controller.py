"""Writes into each HyperNode how many nodes lie below it, and whether it means what it says.

What is wrong with one is told in its conditions and stops nothing: members that are missing, a
HyperNode that is a member of itself, nodes that another one of its tier has too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from app.controllers.ports import Api, ApiError, Clock, Failure
from app.controllers.runtime import ObjectChange
from app.controllers.store import Index, Store
from app.core.topology.problems import OVERLAP, TIER_ORDER, Problem, of_members, problems
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
CONSISTENT: Final = "TreeConsistent"
"""True: the tier is above those of members, and no other one of the tier has such a node."""
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
        self._tiers: dict[str, int] = {}
        self._wrong: Mapping[str, Sequence[Problem]] | None = None

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        """All, when it may matter to any; else the one that has changed."""
        if self._follow(change):
            self._wrong = None
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
            self._tiers.pop(name(item), None)
            return self._tree.drop(name(item))
        tier = int(spec(item).get("tier") or 0)
        moved = self._tiers.get(name(item)) != tier
        self._tiers[name(item)] = tier
        return self._tree.put(name(item), labels(item), members_of(spec(item))) or moved

    def _problems(self) -> Mapping[str, Sequence[Problem]]:
        """What is wrong with which HyperNodes; worked out once for all after a change."""
        if self._wrong is None:
            self._wrong = problems(self._tree, self._tiers)
        return self._wrong

    def _conditions(self, item: Object, below: Below) -> list[Object]:
        """Foreign conditions, and ours; the time of each is that of its last change of status."""
        problems_of_it = self._problems().get(name(item), ())
        ours = {RESOLVED: judged(below), CONSISTENT: in_tree(problems_of_it)}
        before: list[dict[str, Any]] = list(status(item).get("conditions") or ())
        found = [each for each in before if each.get("type") not in ours]
        for kind, (value, reason, message) in ours.items():
            old = next((each for each in before if each.get("type") == kind), {})
            same = old.get("status") == value
            since = old.get("lastTransitionTime") if same else None
            found.append(
                {
                    "type": kind,
                    "status": value,
                    "reason": reason,
                    "message": message,
                    "lastTransitionTime": since or times.seconds(self._clock()),
                    "observedGeneration": metadata(item).get("generation") or 0,
                }
            )
        return found


def judged(below: Below) -> tuple[str, str, str]:
    """Status, reason and message of the condition."""
    problem = next(of_members(below), None)
    if problem is not None:
        return "False", problem.reason, problem.message
    return "True", "Resolved", "every member was found"


def in_tree(found: Sequence[Problem]) -> tuple[str, str, str]:
    """Status, reason and message of the condition that tells of the HyperNode's place."""
    for problem in found:
        if problem.reason in (OVERLAP, TIER_ORDER):
            return "False", problem.reason, problem.message
    return "True", "Consistent", "no other HyperNode of its tier has a node of it"
