"""Groups as they would be: for questions about jobs that do not exist, and about lost nodes.

An imagined group is made with the same parts as a real one and is never filed anywhere, so that the
planner cannot tell it apart and the cache does not change.
"""

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from app.cache.gangs.gang_views import GangViews
from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member
from app.cache.gangs.registry import Registry
from app.cache.gangs.views import ToVector, gang_view, task_of
from app.core.sums import part_of, with_part, without_part
from app.model.amounts import Amounts
from app.model.gang import Gang
from app.model.ids import NO_NODE, GroupKey, NodeName, QueueName
from app.model.job import Template
from app.model.pod import TERMINAL, Pod
from app.model.resources import ResourceAxis, Vector
from app.model.snapshot import QueueUsage, Snapshot
from app.model.workload import PodGroup

_PIECE: Final = 16
"""Pods that are added between two steps: a third of a millisecond."""


class UnknownResource(ValueError):
    """What is asked for is a resource that no node, queue or pod of the cluster names."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(sorted(names))
        super().__init__(f"no node has {', '.join(self.names)}")


@dataclass(frozen=True, slots=True, eq=False)
class Imagined:
    """A group as it would be, and the view that the planner gets of it."""

    group: Group
    view: Gang


def on_axis(axis: ResourceAxis) -> ToVector:
    """Amounts as vectors on ``axis``, which does not grow by it.

    What it returns raises `UnknownResource`.
    """

    def vector(values: Amounts) -> Vector:
        unknown = {name for name, _ in values} - axis.index.keys()
        if unknown:
            raise UnknownResource(unknown)
        return axis.vector(values)

    return vector


def imagine(
    registry: Registry,
    *,
    pod_group: PodGroup | None,
    pods: Iterable[Pod],
    templates: Mapping[str, Template],
    vector: ToVector,
) -> Generator[None, None, Imagined]:
    """The group of ``pod_group`` (None: of the one single pod) with ``pods`` that wait.

    It is made in steps, between which the cluster may change: nothing of that is looked at but the
    queue that its namespace names. Raises `UnknownResource`.
    """
    waiting = list(pods)
    key = pod_group.key if pod_group is not None else waiting[0].group
    group = Group(key=key, solo=pod_group is None, default_queue=registry.default_queue)
    group.namespace_queue = registry.queue_of(group.namespace)
    group.follow(pod_group)
    group.templates = templates
    if pod_group is not None:
        group.phase = pod_group.phase
        vector(pod_group.min_resources or ())
    for number, pod in enumerate(waiting, 1):
        group.add(Member(pod, key, task_of(pod, vector)))
        if number % _PIECE == 0:
            yield
    return Imagined(group, gang_view(group, vector=vector, classes=registry.classes))


def without_nodes(
    registry: Registry, group: Group, gone: Collection[NodeName], *, vector: ToVector
) -> Imagined:
    """``group`` as it would be once its pods of the nodes ``gone`` wait again.

    Their owner makes them anew. DaemonSets make none elsewhere, and pods that are over or terminate
    stay what they are.
    """
    copy = replace(group, members={}, waiting={}, counted=type(group.counted)(), role_shapes={})
    copy.slots, copy.open_slots = {}, type(group.open_slots)()
    for member in group.members.values():
        moved = _made_anew(member, vector) if _is_lost(member, gone) else replace(member)
        if moved is not None:
            copy.add(moved)
    for slot in group.slots.values():
        if slot.node not in gone:
            copy.add_slot(slot)
    copy.reached = Counter(group.reached)
    return Imagined(copy, gang_view(copy, vector=vector, classes=registry.classes))


def _is_lost(member: Member, gone: Collection[NodeName]) -> bool:
    pod = member.pod
    return member.charged_node in gone and not pod.deleting and pod.status not in TERMINAL


def _made_anew(member: Member, vector: ToVector) -> Member | None:
    pod = member.pod
    if pod.is_of_daemon_set or pod.is_static:
        return None
    fresh = replace(
        pod, node=NO_NODE, phase="Pending", started=0.0, nominated=NO_NODE, pinned=NO_NODE
    )
    return Member(fresh, member.group, task_of(fresh, vector))


def views_with(registry: Registry, imagined: Iterable[Imagined]) -> GangViews:
    """The views in which these groups stand in place of those of their names, or beside them."""
    found = registry.refresh().copy()
    for each in imagined:
        wanting = each.group.wants_planning
        found.put(each.view, pending=wanting, places=registry.places(each.group))
    return found


def usage_with(
    usage: Mapping[QueueName, QueueUsage],
    views: Mapping[GroupKey, Gang],
    gangs: Iterable[Gang],
) -> dict[QueueName, QueueUsage]:
    """What queues amount to with these gangs in place of what ``views`` has of their names."""
    found = dict(usage)
    for gang in gangs:
        before = views.get(gang.key)
        if before is not None:
            found[before.queue] = without_part(found[before.queue], part_of(before)[1])
        queue, part = part_of(gang)
        found[queue] = with_part(found.get(queue), part)
    return found


def instead(snapshot: Snapshot, gang: Gang) -> Snapshot:
    """``snapshot`` with ``gang`` in place of the one of its key; it waits for a decision."""

    def put(gangs: Iterable[Gang], *, filed: bool) -> tuple[Gang, ...]:
        others = [each for each in gangs if each.key != gang.key]
        return tuple([*others, gang] if filed else others)

    return replace(
        snapshot,
        gangs={**snapshot.gangs, gang.key: gang},
        pending=put(snapshot.pending, filed=True),
        awaited=put(snapshot.awaited, filed=gang.is_awaited),
        torn=put(snapshot.torn, filed=gang.partial),
        shown=put(snapshot.shown, filed=False),
        usage=usage_with(snapshot.usage, snapshot.gangs, [gang]),
    )
