"""Eviction plans that have begun, for people: in ``/explain``, ``/debug`` and the reasons."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Member
from app.core.actions.begun import waits_for
from app.model.eviction import VictimPod
from app.model.gang import Gang
from app.model.ids import GroupKey
from app.model.reason import Refusal
from app.service.cycle.begun_eviction import KEPT_FOR_NOW, BegunEviction, Fate
from app.service.cycle.evictions import Evictions
from app.wire import times

_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class VictimView:
    """A pod that is to go, by which rule, and how far that has come; ``gone``: its room is free."""

    pod: str
    uid: str
    node: str
    group: str
    queue: str
    rule: str
    state: str
    since: float


@dataclass(frozen=True, slots=True)
class EvictionView:
    """A plan: for which group, how far it has come since when, and what it was decided on.

    ``places`` are the names of members (empty: of one to come) with their nodes.
    """

    intent: str
    action: str
    group: str
    step: str
    since: float
    decided: float
    generation: int
    why: str
    victims: tuple[VictimView, ...]
    places: tuple[tuple[str, str], ...]
    certificate: Mapping[str, Any]


def view_of(cache: ClusterCache, begun: BegunEviction) -> EvictionView:
    """The plan as it is now."""
    intent, charges = begun.intent, cache.node_usage.charges
    victims = tuple(
        VictimView(
            pod=f"{victim.namespace}/{victim.name}",
            uid=victim.uid,
            node=victim.node,
            group=victim.gang,
            queue=victim.queue,
            rule=victim.rule,
            state=begun.fates[victim.uid].value if victim.uid in charges else "gone",
            since=begun.fate_since[victim.uid],
        )
        for victim in intent.victims
    )
    return EvictionView(
        intent=begun.name,
        action=intent.action.value,
        group=intent.preemptor,
        step=begun.step.value,
        since=begun.since,
        decided=intent.decided,
        generation=intent.generation,
        why=begun.why,
        victims=victims,
        places=tuple((place.name if place.uid else "", place.node) for place in intent.places),
        certificate=intent.certificate,
    )


def views_of(cache: ClusterCache, evictions: Evictions, key: GroupKey) -> list[EvictionView]:
    """The plans under way for a group, and those that take pods of it."""
    return [
        view_of(cache, begun)
        for begun in evictions.under_way()
        if key == begun.intent.preemptor or any(v.gang == key for v in begun.intent.victims)
    ]


def of_tenant(view: EvictionView, namespace: str) -> EvictionView:
    """The plan for readers of one namespace; names like ``namespace/name`` are still in it.

    UIDs of others' pods are left out, and so is the certificate, which names all that was seen. Of
    a plan for no group of that namespace ``intent`` (it has a UID), ``places`` (they have names of
    pods) and ``why`` (it may have both) are left out as well.
    """

    def told(victim: VictimView) -> VictimView:
        is_own = victim.pod.startswith(f"{namespace}/")
        return victim if is_own else replace(victim, uid="")

    view = replace(view, certificate={}, victims=tuple(map(told, view.victims)))
    if view.group.startswith(f"{namespace}/"):
        return view
    return replace(view, intent="", places=(), why="")


def state_of_evictions(cache: ClusterCache, evictions: Evictions, *, now: float) -> dict[str, Any]:
    """The plans under way, the groups that no pods are evicted for, and pods that do not go."""
    return {
        "begun": [view_of(cache, begun) for begun in evictions.under_way()],
        "paused": dict(sorted(evictions.pauses.active(now=now).items())),
        "stuck": {
            uid: {"pod": member.pod.key, "since": since}
            for uid, since in evictions.stuck.items()
            if (member := cache.members.get(uid)) is not None
        },
        "decisionsByVictimsJob": evictions.guard.counts(now=now),
        "storedIntentsKnown": evictions.loaded,
    }


def pipelined(cache: ClusterCache, begun: BegunEviction, gang: Gang) -> Refusal:
    """Why the plan's preemptor waits: how many pods have to go, and which of them do not."""
    going = cache.pipelined.going(begun.name)
    names = [f"{victim.namespace}/{victim.name}" for victim in going]
    waits = waits_for(gang, names)
    late = [text for victim in going if (text := _why_late(begun, victim))]
    if not late:
        return waits
    more = f" and {len(late) - _NAMED} more" if len(late) > _NAMED else ""
    return _with(waits, ", ".join(late[:_NAMED]) + more)


def _why_late(begun: BegunEviction, victim: VictimPod) -> str:
    fate, since = begun.fates[victim.uid], times.seconds(int(begun.fate_since[victim.uid]))
    name = f"{victim.namespace}/{victim.name}"
    if fate in (*KEPT_FOR_NOW, Fate.REFUSED):
        return f"{name} is {fate.value} since {since}"
    return f"{name} does not go, asked to since {since}" if victim.uid in begun.late else ""


def of_member(cache: ClusterCache, told: Refusal, begun: BegunEviction, member: Member) -> Refusal:
    """What ``told`` says of the group for one member that has a place."""
    nodes = (p.node for p in cache.pipelined.placements(begun.name) if p.task.uid == member.pod.uid)
    node = next(nodes, None)
    if node is None:
        return told
    return _with(
        told,
        f"Pod {member.pod.key} can possibly be assigned to {node}, "
        "once resource is released and minAvailable is satisfied",
        first=True,
    )


def _with(refusal: Refusal, text: str, *, first: bool = False) -> Refusal:
    detail = f"{text}; {refusal.detail}" if first else f"{refusal.detail}; {text}"
    return replace(refusal, detail=detail)
