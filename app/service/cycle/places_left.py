"""Which places of a stored eviction plan its preemptor still waits for.

The process before this one may have given members of the preemptor their places already. Equal
members may have exchanged nodes since the plan was stored, and members may have come for slots. So
what counts is where members are: a member that has a node has the place there, whosever it was, and
a member that waits and was told a node keeps that one.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Member
from app.model.amounts import is_best_effort
from app.model.eviction import IntendedPlace, Intent, PipelinedPlace
from app.model.gang import Gang, Task
from app.model.ids import NO_NODE, NodeName, PodUid


def places_left(
    cache: ClusterCache, intent: Intent, gang: Gang
) -> tuple[PipelinedPlace, ...] | None:
    """The places that are still to be given; None: what a slot is for is not known."""
    places = []
    for place in intent.places:
        member = cache.members.get(place.uid)
        task = member.task if member is not None else _slot(cache, place, gang)
        if task is None:
            return None
        places.append(PipelinedPlace(task, place.node, place.exchange))
    newcomers = _newcomers(cache, intent)
    left: list[PipelinedPlace] = []
    while places:
        alike = [each for each in places if each is places[0] or _are_alike(each, places[0])]
        places = [each for each in places if each not in alike]
        shape = alike[0].task.shape
        at_slots = [m.charged_node for m in newcomers if m.pod.shape.fits_like(shape)]
        left += _left_of(alike, cache, at_slots)
    return tuple(left)


def _slot(cache: ClusterCache, place: IntendedPlace, gang: Gang) -> Task | None:
    shape = gang.role_shapes.get(place.role)
    if shape is None:
        return None
    return Task(
        uid=PodUid(""),
        name=place.name,
        role=place.role,
        shape=shape,
        request=cache.node_usage.vector(shape.requests),
        priority=0,
        created=0.0,
        best_effort=is_best_effort(shape.requests),
    )


def _newcomers(cache: ClusterCache, intent: Intent) -> list[Member]:
    """Members that have a node, and were created since the plan was decided."""
    named = {place.uid for place in intent.places}
    group = cache.groups[intent.preemptor]
    return [
        member
        for uid, member in group.members.items()
        if uid not in named and member.charged_node and member.pod.created >= int(intent.decided)
    ]


def _are_alike(one: PipelinedPlace, other: PipelinedPlace) -> bool:
    """Whether their members may have exchanged their nodes."""
    alike = one.task.shape.fits_like(other.task.shape)
    return alike and one.exchange.allows(other.exchange)


def _left_of(
    alike: Sequence[PipelinedPlace], cache: ClusterCache, at_slots: Sequence[NodeName]
) -> list[PipelinedPlace]:
    """The places of equal members that still wait, each with the node that is left for it.

    ``at_slots`` are the nodes of members that may have come for the slots among them.
    """
    nodes = Counter(place.node for place in alike)
    waiting, elsewhere = [], []
    for place in alike:
        member = cache.members.get(place.task.uid)
        node = member.charged_node if member is not None else NO_NODE
        if not node:
            waiting.append(place)
        elif not _take(nodes, node):
            elsewhere.append(place)  # the member was moved to free room
    for node in at_slots:
        slot = next((place for place in waiting if place.task.is_slot), None)
        if slot is not None and _take(nodes, node):
            waiting.remove(slot)
    for place in elsewhere:
        _take(nodes, place.node)
    told, untold = {}, []
    for place in waiting:
        node = place.task.pinned or place.task.nominated
        if _take(nodes, node):
            told[place.task.uid] = node
        else:
            untold.append(place)
    own = {id(place) for place in untold if _take(nodes, place.node)}
    rest = nodes.elements()
    return [
        replace(
            place, node=told.get(place.task.uid) or (place.node if id(place) in own else next(rest))
        )
        for place in waiting
    ]


def _take(nodes: Counter[NodeName], node: NodeName) -> bool:
    if not nodes[node]:
        return False
    nodes[node] -= 1
    return True
