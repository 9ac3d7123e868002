"""Why is it waiting: the same reason everywhere, as a value.

``/explain`` renders these, the conditions and events carry the same sentence. Everything is read
off the cache and the last plan when asked for. What happened before is told too: the cache keeps
the latest steps of each member and gang (:mod:`app.cache.gangs.story`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member, MemberState, Slot
from app.cache.gangs.missing import knows
from app.cache.gangs.prebind import longest_in_prebind
from app.cache.gangs.story import MEMBER_STEPS, StoryEntry, entries
from app.core.gangs.lifecycle import kept_text
from app.core.resource_names import told, unknown
from app.core.texts import describe
from app.model.funnel import Funnel
from app.model.ids import GroupKey, QueueName
from app.model.reason import Refusal
from app.service.cycle.queries import Queries
from app.service.telling.affinity_followers import must_follow
from app.service.telling.evicting import EvictionView, views_of
from app.service.telling.network import network_text
from app.service.telling.reasons import Reasons, prebind_text
from app.service.telling.troubles import trouble_of

_TOLD_IN_FULL: Final = 100
"""Of larger gangs each member tells its latest step only: there are thousands."""


@dataclass(frozen=True, slots=True)
class MemberStory:
    """One pod: how far it has come and where it is to run."""

    pod: str
    role: str
    stage: str
    node: str
    gates: tuple[str, ...]
    verdict: str
    """Of a member that waits: whether it fits somewhere as things are."""
    trouble: str
    """Tells why the pod does not do its work though it has a node, as its kubelet reports."""
    story: tuple[StoryEntry, ...]
    """The member's latest steps, the latest last; of a member of a large gang only that one."""


@dataclass(frozen=True, slots=True)
class Story:
    """One group: whether it may run, and if not why, with the numbers of the reason."""

    group: str
    queue: str
    phase: str
    summary: str
    min_member: int
    counts: Mapping[str, int]
    slots: Mapping[str, tuple[str, ...]]
    reason: Refusal | None
    story: tuple[StoryEntry, ...]
    """The latest steps of the gang, or of the single pod, the latest last."""
    members: tuple[MemberStory, ...]
    trouble: str = ""
    """How many members do not do their work though they have nodes, and why the first does not."""
    network: str = ""
    """The domain that has all members with room, and what is in the way of a closer one."""
    funnels: tuple[Funnel, ...] = ()
    """How the nodes narrow down for the members that the group lacks."""
    evictions: tuple[EvictionView, ...] = ()
    """Plans under way that evict pods for the group, or of it."""
    notes: tuple[str, ...] = ()
    """Limits of its queue, and of queues above it, of resources that no node has."""


def explain_group(
    cache: ClusterCache, reasons: Reasons, key: GroupKey, *, queries: Queries
) -> Story | None:
    """The story of a group; None when there is none of that name."""
    group = cache.groups.get(key)
    if group is None:
        return None
    refusal = reasons.of(group)
    members = sorted(group.members.values(), key=_by_name)
    steps = members[0].story if group.solo and members else group.story
    shown = MEMBER_STEPS if len(members) <= _TOLD_IN_FULL else 1
    narrowed = _funnels(cache, group, queries)
    return Story(
        group=group.key,
        queue=group.queue,
        phase=group.phase.value or "Pending",
        summary=_summary(group, refusal),
        min_member=group.min_member,
        counts={kind.value: count for kind, count in group.counted.kinds.items() if count},
        slots=slots_of(group),
        reason=refusal,
        story=entries(steps),
        trouble=trouble_of(group),
        network=network_text(cache, group),
        members=tuple(_member(member, narrowed, shown=shown) for member in members),
        funnels=narrowed,
        evictions=tuple(views_of(cache, reasons.evictions, key)),
        notes=tuple(_notes(cache, group.queue)),
    )


def _notes(cache: ClusterCache, queue: QueueName) -> Iterator[str]:
    axis, total = cache.node_usage.axis, cache.total()
    there = {name for name, amount in zip(axis.names, total.tolist(), strict=True) if amount}
    line = (queue, *cache.ancestors(queue)) if queue in cache.queues else ()
    for name in line:
        one = cache.queues[name]
        limits = {
            "capability": one.capability,
            "deserved": one.deserved,
            "guarantee": one.guarantee,
        }
        for kind, amounts in limits.items():
            for resource, meant in unknown((each for each, _ in amounts), there):
                yield f"{kind} of queue {name}: {told(resource, meant)}"


def _funnels(cache: ClusterCache, group: Group, queries: Queries) -> tuple[Funnel, ...]:
    if not group.wants_planning:
        return ()
    view = cache.registry.view(group.key)
    return queries.funnels(view) if view is not None else ()


def slots_of(group: Group) -> dict[str, tuple[str, ...]]:
    """Role -> nodes where room is kept for members that do not exist yet."""
    return _by_role(group.slots.values())


def slots_to_pin(cache: ClusterCache, group: Group) -> dict[str, tuple[str, ...]]:
    """Slots that members may be created pinned to; others have to come by the gate.

    The watch of jobs may be later than that of PodGroups. Room that is kept for a job's members
    before that is for pods of which nothing tells where they may not go.
    """
    behind = must_follow(cache, group)
    slots = [
        slot
        for slot in group.slots.values()
        if slot.shape.bears_pin and (not group.is_of_a_job or knows(group, slot))
    ]
    return _by_role(slot for slot in slots if slot.holder not in behind)


def _by_role(slots: Iterable[Slot]) -> dict[str, tuple[str, ...]]:
    nodes: dict[str, list[str]] = {}
    for slot in slots:
        nodes.setdefault(slot.role, []).append(slot.node)
    return {role: tuple(sorted(names)) for role, names in sorted(nodes.items())}


def _summary(group: Group, refusal: Refusal | None) -> str:
    if refusal is not None:
        return describe(refusal)
    if group.wants_planning:
        return "waiting for the next planning cycle"
    if group.slots:
        return kept_text(len(group.slots))
    if group.has_reservations:
        preparing = longest_in_prebind(group)
        waits_for = prebind_text(preparing) if preparing else "waiting for kube-scheduler to bind"
        return f"has its places; {waits_for}"
    return "nothing is missing"


def _by_name(member: Member) -> str:
    return member.pod.name


def _member(member: Member, narrowed: Sequence[Funnel], *, shown: int) -> MemberStory:
    return MemberStory(
        pod=member.pod.key,
        role=member.pod.role,
        stage=member.stage.value if not member.pod.node else member.kind.value,
        node=member.pod.node or member.node,
        gates=member.pod.gates,
        verdict=_verdict(member, narrowed),
        trouble=member.pod.trouble,
        story=entries(member.story)[-shown:],
    )


def _verdict(member: Member, narrowed: Sequence[Funnel]) -> str:
    if member.kind is not MemberState.WAITING:
        return ""
    alike = [each for each in narrowed if each.role == member.pod.role]
    if not alike:
        return "not tried"
    fit, lacking = sum(each.fit for each in alike), sum(each.lacking for each in alike)
    if not fit:
        return "no node has room"
    return "fits, the group does not" if fit >= lacking else f"room for {fit} of {lacking}"
