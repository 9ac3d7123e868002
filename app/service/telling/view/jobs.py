"""Rows of jobs, and of what is to come of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member, MemberState
from app.cache.gangs.members import Stage as MemberStage
from app.cache.gangs.trail import job_of
from app.cache.gangs.views import group_priority
from app.core.texts import describe
from app.model.amounts import PODS, Amounts
from app.model.ids import GroupKey
from app.model.plan import Collected
from app.model.reason import Cause
from app.model.workload import GroupPhase
from app.service.cycle.begun_eviction import BegunEviction
from app.service.telling.reasons import Reasons
from app.service.telling.troubles import trouble_of
from app.service.telling.view.rows import (
    Estimate,
    FutureRow,
    JobRow,
    MembersOf,
    PlaceInLine,
    Stage,
)

_SINGLE: Final = "Pod"
_UNOWNED: Final = "PodGroup"
_BEGUN: Final = (GroupPhase.RUNNING, GroupPhase.UNKNOWN)
_STARTED: Final = frozenset({Stage.BOUND, Stage.RUNNING, Stage.ENDED})


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """What is told of jobs and is not in their groups, as of one moment.

    ``lines`` has the places of groups that wait, ``held`` how many Bind calls of groups wait at the
    barrier, ``evicting`` the plans that wait for victims, by preemptor. ``estimate`` gives when a
    group is expected to start, if that is known.
    """

    lines: Mapping[GroupKey, PlaceInLine]
    held: Mapping[GroupKey, int]
    evicting: Mapping[GroupKey, BegunEviction]
    estimate: Callable[[GroupKey], Estimate | None]


def job_row(cache: ClusterCache, reasons: Reasons, group: Group, around: Around) -> JobRow:
    """The row of one group."""
    key = group.key
    refusal = reasons.of(group)
    stage = stage_of(group)
    begun = around.evicting.get(key)
    outlook = "" if refusal is None else "not yet" if refusal.never is None else "never"
    kind, owner = _owner(group)
    return JobRow(
        key=key,
        namespace=group.namespace,
        group="" if group.solo else key.partition("/")[2],
        name=job_of(group),
        kind=kind,
        owner=owner,
        queue=group.queue,
        phase=group.phase.value or "Pending",
        stage=stage,
        members=members_of(group),
        priority=group_priority(group, cache.registry.classes),
        created=created(group),
        started=started(group) if stage in _STARTED else None,
        held=total(group.counted.held),
        asked=asked(group),
        waits=refusal is not None,
        cause="" if refusal is None else refusal.cause.value,
        reason="" if refusal is None else describe(refusal),
        outlook=outlook,
        place=around.lines.get(key) if refusal is not None else None,
        held_at_barrier=around.held.get(key, 0),
        evicting=0 if begun is None else len(cache.pipelined.going(begun.name)),
        trouble=trouble_of(group),
        eta=around.estimate(key) if refusal is not None else None,
    )


def faulty_row(group: Group, place: str) -> JobRow:
    """The row of one group of which no row can be made, by an error at that ``place`` in the code.

    It tells what needs no working out.
    """
    count = len(group.members)
    return JobRow(
        key=group.key,
        namespace=group.namespace,
        group="" if group.solo else group.key.partition("/")[2],
        name=group.key.partition("/")[2],
        kind="",
        owner="",
        queue=group.queue,
        phase=group.phase.value or "Pending",
        stage=Stage.SUBMITTED,
        members=MembersOf(0, count, count, *[0] * 8),
        priority=0,
        created=0.0,
        started=None,
        held={},
        asked={},
        waits=True,
        cause=Cause.PLANNING_FAILED.value,
        reason=f"its row cannot be made ({place}); the log of the extender has the error",
        outlook="",
        place=None,
        held_at_barrier=0,
        evicting=0,
        trouble="",
        eta=None,
    )


def stage_of(group: Group) -> Stage:
    """How far the group has come, as it is now."""
    of = group.counted.kinds
    ended = of[MemberState.SUCCEEDED] + of[MemberState.FAILED]
    if group.phase is GroupPhase.COMPLETED or (ended and ended == len(group.members)):
        return Stage.ENDED
    if group.on_nodes and (group.reached_minimum or group.phase in _BEGUN):
        return Stage.RUNNING if of[MemberState.RUNNING] else Stage.BOUND
    if group.on_nodes or group.counted.arrivals.at_bind:
        return Stage.HELD
    if group.has_reservations:
        return Stage.PLANNED
    if group.phase in (GroupPhase.NEW, GroupPhase.PENDING):
        return Stage.SUBMITTED
    return Stage.ENQUEUED


def members_of(group: Group) -> MembersOf:
    """How many members are in which state."""
    of = group.counted.kinds
    return MembersOf(
        min=group.min_member,
        total=len(group.members),
        waiting=of[MemberState.WAITING],
        gated=of[MemberState.GATED],
        placed=of[MemberState.PLACED],
        bound=of[MemberState.BOUND],
        running=of[MemberState.RUNNING],
        releasing=of[MemberState.RELEASING] + of[MemberState.RELEASING_PLACED],
        succeeded=of[MemberState.SUCCEEDED],
        failed=of[MemberState.FAILED],
        slots=len(group.slots),
    )


def created(group: Group) -> float:
    """When the PodGroup, or else the first pod, was created."""
    if group.pod_group is not None:
        return group.pod_group.created
    return min((member.pod.created for member in group.members.values()), default=0.0)


def started(group: Group) -> float | None:
    """When the group began to run, as far as its story or its pods tell; None: they do not."""
    running = GroupPhase.RUNNING.value
    told = [step[0] for step in group.story or () if step[4] == running]
    if told:
        return told[-1]
    times = (member.pod.started for member in group.members.values())
    return min((at for at in times if at), default=None)


def total(requests: Mapping[Amounts, int]) -> dict[str, int]:
    """The sum of so many of each request."""
    if len(requests) == 1:
        [(request, count)] = requests.items()
        return {name: amount * count for name, amount in request if amount}
    found: dict[str, int] = {}
    for request, count in requests.items():
        for name, amount in request:
            found[name] = found.get(name, 0) + amount * count
    return {name: amount for name, amount in found.items() if amount}


def asked(group: Group) -> dict[str, int]:
    """What the group holds and waits for, and at least what its minimum takes."""
    counted = group.counted
    found: dict[str, int] = {}
    for requests in (counted.held, counted.wanted, counted.gated):
        for name, amount in total(requests).items():
            found[name] = found.get(name, 0) + amount
    if group.pod_group is not None and group.phase is not GroupPhase.COMPLETED:
        least = [*(group.pod_group.min_resources or ()), (PODS, group.min_member)]
        for name, amount in least:
            if amount > found.get(name, 0):
                found[name] = amount
    return found


def _owner(group: Group) -> tuple[str, str]:
    """The kind of the job, and the owner that jobs are told apart by."""
    if group.pod_group is None:
        first = next(iter(group.members.values()), None)
        owner = first.pod.owner if first is not None else None
        return _SINGLE, f"{owner.kind} {owner.name}" if owner is not None else ""
    kind = group.pod_group.owner_kind
    return kind or _UNOWNED, f"{kind} {job_of(group)}" if kind else ""


# --- what is to come ------------------------------------------------------------------------------


def future_rows(
    cache: ClusterCache, collected: Iterable[Collected], evicting: Mapping[GroupKey, BegunEviction]
) -> Iterator[FutureRow]:
    """What is decided and has not happened: places that are to be used, and room that is kept."""
    for key in list(cache.registry.reserved):
        group = cache.groups.get(key)
        if group is not None and key not in evicting:
            yield _planned(group)
    for key, begun in evicting.items():
        yield _evicting(cache, key, begun)
    for kept in collected:
        group = cache.groups.get(kept.gang)
        if group is not None:
            yield _collecting(cache, group, kept)


def _planned(group: Group) -> FutureRow:
    placed = [m for m in group.members.values() if m.kind is MemberState.PLACED]
    nodes = {m.node for m in placed} | {slot.node for slot in group.slots.values()}
    since = [_since(m) for m in placed] + [slot.since for slot in group.slots.values()]
    requests: dict[Amounts, int] = {}
    for request in (
        *(m.pod.shape.requests for m in placed),
        *(slot.request for slot in group.slots.values()),
    ):
        requests[request] = requests.get(request, 0) + 1
    members = len(placed) + len(group.slots)
    return FutureRow(
        key=f"planned {group.key}",
        kind="planned",
        job=group.key,
        queue=group.queue,
        since=min(since, default=0.0),
        at=None,
        pods=members,
        nodes=len(nodes),
        amounts=total(requests),
        text=f"has {_many(members, 'place')} on {_many(len(nodes), 'node')}",
    )


def _since(member: Member) -> float:
    """When the member got the place that it has."""
    planned = MemberStage.PLANNED.value
    steps = member.story or ()
    return next((step[0] for step in reversed(steps) if step[4] == planned), member.since)


def _evicting(cache: ClusterCache, key: GroupKey, begun: BegunEviction) -> FutureRow:
    places = cache.pipelined.placements(begun.name)
    going = len(cache.pipelined.going(begun.name))
    group = cache.groups.get(key)
    requests: dict[Amounts, int] = {}
    for place in places:
        request = place.task.shape.requests
        requests[request] = requests.get(request, 0) + 1
    nodes = {place.node for place in places}
    return FutureRow(
        key=f"evicting {key}",
        kind="evicting",
        job=key,
        queue=group.queue if group is not None else "",
        since=begun.intent.decided,
        at=None,
        pods=len(places),
        nodes=len(nodes),
        amounts=total(requests),
        text=f"gets {_many(len(places), 'place')} on {_many(len(nodes), 'node')} "
        f"when {_many(going, 'evicted pod')} {'has' if going == 1 else 'have'} gone",
    )


def _collecting(cache: ClusterCache, group: Group, kept: Collected) -> FutureRow:
    axis = cache.node_usage.axis
    amount = sum((vector for _, vector in kept.nodes), start=cache.node_usage.vector(()))
    return FutureRow(
        key=f"collecting {group.key}",
        kind="collecting",
        job=group.key,
        queue=group.queue,
        since=group.collecting_since,
        at=None,
        pods=0,
        nodes=len(kept.nodes),
        amounts=dict(axis.amounts(amount)),
        text=f"free room of {_many(len(kept.nodes), 'node')} is kept until it is enough",
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
