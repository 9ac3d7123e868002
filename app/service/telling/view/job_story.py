"""One job's story: how far it has come, and when it came to each stage.

It is put together of what the cache remembers of the group and its members, and of the decisions
that are kept. These tell of a job that is gone too, and of steps that the cache has forgotten.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from app.cache.cluster import ClusterCache
from app.cache.decisions import state_of
from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member
from app.cache.gangs.story import Step
from app.cache.gangs.trail import job_of
from app.model.decision import DecisionKind, KeptDecision
from app.model.ids import GroupKey, group_key
from app.service.cycle.evictions import Evictions
from app.service.telling.view.history import Run
from app.service.telling.view.jobs import created, started
from app.service.telling.view.rows import JobRow, PlaceInLine, Stage

MEMBERS: Final = 1_000
STEPS: Final = 200
EVICTED: Final = 200
"""How many of these are told."""

_GROUP: Final = "group"
"""Whose step it is that is of the whole group."""
_BEGINS_ANEW: Final = frozenset({"Pending", "Inqueue", "given back"})
"""Steps of a group after which it has no places."""
_ENDS: Final = frozenset({"succeeded", "failed"})


@dataclass(frozen=True, slots=True)
class StageTime:
    """When the job came to a stage; None: it has not, or the time is not known."""

    stage: Stage
    at: float | None
    text: str


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why the job does not go on."""

    cause: str
    reason: str
    outlook: str
    place: PlaceInLine | None


@dataclass(frozen=True, slots=True)
class MemberNow:
    """A pod of the job, since when it is in its state, and the gates that hold it.

    ``trouble`` says why it does not do its work though it has a node; empty: it does.
    """

    pod: str
    role: str
    state: str
    node: str
    since: float | None
    gates: tuple[str, ...]
    trouble: str


@dataclass(frozen=True, slots=True)
class SlotNow:
    """Room that is kept for a member to come."""

    role: str
    node: str


@dataclass(frozen=True, slots=True)
class StoryStep:
    """What happened: ``who`` is ``group`` or the name of a pod."""

    at: float
    who: str
    before: str
    after: str
    by: str
    node: str
    why: str


@dataclass(frozen=True, slots=True)
class Evicted:
    """A pod that was to go for a group (``preemptor``; empty: for none), and how far that came."""

    at: float
    pod: str
    job: str
    queue: str
    node: str
    rule: str
    action: str
    state: str
    preemptor: str


@dataclass(frozen=True, slots=True)
class EvictionsOf:
    """The evictions by the job, for its places, and those of its own pods."""

    by: tuple[Evicted, ...]
    of: tuple[Evicted, ...]


@dataclass(frozen=True, slots=True)
class JobStory:
    """The story of a job; ``job`` is None when it is gone. ``stages`` are all, in their order."""

    key: str
    job: JobRow | None
    stages: tuple[StageTime, ...]
    current: Stage
    why: WhyNot | None
    members: tuple[MemberNow, ...]
    members_total: int
    slots: tuple[SlotNow, ...]
    steps: tuple[StoryStep, ...]
    evictions: EvictionsOf


def find_group(cache: ClusterCache, namespace: str, name: str) -> Group | None:
    """The group of that name, else the latest of a job of that name, else that of such a pod."""
    group = cache.groups.get(group_key(namespace, name))
    if group is not None:
        return group
    there = cache.registry.in_namespace(namespace).values()
    jobs = [group for group in there if job_of(group) == name]
    return max(jobs, key=created) if jobs else cache.registry.of_pod(namespace, name)


def job_story(
    group: Group | None,
    row: JobRow | None,
    decisions: Sequence[KeptDecision],
    *,
    key: GroupKey,
    run: Run | None,
    evictions: Evictions,
) -> JobStory:
    """The story of a group, or of one that is gone.

    ``decisions`` are those that are kept of it, ``run`` how it ran last, as far as that is known.
    """
    members = sorted(group.members.values(), key=_by_name) if group is not None else []
    steps = _steps(group, members, decisions)
    current = row.stage if row is not None else _last_stage(steps, run)
    return JobStory(
        key=key,
        job=row,
        stages=tuple(_stages(_times(group, steps, run), row, current)),
        current=current,
        why=_why(row),
        members=tuple(_member(each) for each in members[:MEMBERS]),
        members_total=len(members),
        slots=tuple(SlotNow(s.role, s.node) for s in (group.slots.values() if group else ())),
        steps=tuple(sorted(steps, key=lambda each: each.at)[-STEPS:]),
        evictions=_evictions(key, decisions, evictions),
    )


def _by_name(member: Member) -> str:
    return member.pod.name


def _why(row: JobRow | None) -> WhyNot | None:
    if row is None or not row.waits:
        return None
    return WhyNot(row.cause, row.reason, row.outlook, row.place)


def _member(member: Member) -> MemberNow:
    pod = member.pod
    return MemberNow(
        pod=pod.key,
        role=pod.role,
        state=state_of(member),
        node=pod.node or member.node,
        since=member.story[-1][0] if member.story else None,
        gates=pod.gates,
        trouble=pod.trouble,
    )


# --- steps ----------------------------------------------------------------------------------------


def _steps(
    group: Group | None, members: Iterable[Member], decisions: Iterable[KeptDecision]
) -> list[StoryStep]:
    """The steps of the group and its pods, each once."""
    found: dict[tuple[str, Step], None] = {}
    for decision in decisions:
        if decision.kind != DecisionKind.EVICT or not decision.pod:
            who = decision.pod or _GROUP
            found.update(((who, tuple(step)), None) for step in decision.story or ())
    if group is not None:
        found.update(((_GROUP, step), None) for step in group.story or ())
    for member in members:
        found.update(((member.pod.name, step), None) for step in member.story or ())
    return [
        StoryStep(at, who, before, after, by, node, why)
        for who, (at, by, _, before, after, node, why) in found
    ]


def _last_stage(steps: Sequence[StoryStep], run: Run | None) -> Stage:
    """How far a job that is gone had come, as far as is known."""
    if run is not None:
        return Stage.ENDED
    known = {each.after for each in steps}
    for stage, words in (
        (Stage.ENDED, {"Completed"} | _ENDS),
        (Stage.RUNNING, {"running", "Running"}),
        (Stage.BOUND, {"bound"}),
        (Stage.HELD, {"assumed", "binding"}),
        (Stage.PLANNED, {"planned", "reserved"}),
        (Stage.ENQUEUED, {"Inqueue"}),
    ):
        if known & words:
            return stage
    return Stage.SUBMITTED


# --- stages ---------------------------------------------------------------------------------------


def _stages(
    times: Mapping[Stage, float], row: JobRow | None, current: Stage
) -> Iterator[StageTime]:
    """Each stage with its time; those after the current one have not been reached now."""
    order = list(Stage)
    for number, stage in enumerate(order):
        reached = number <= order.index(current)
        text = ""
        if stage is Stage.HELD and row is not None and row.held_at_barrier:
            text = f"{row.held_at_barrier} of {row.members.min} members wait for the others"
        yield StageTime(stage, times.get(stage) if reached else None, text)


def _times(
    group: Group | None, steps: Sequence[StoryStep], run: Run | None
) -> Mapping[Stage, float]:
    least = max(group.min_member, 1) if group is not None else 1
    of_group = sorted((each for each in steps if each.who == _GROUP), key=lambda each: each.at)
    times = _times_of_group(of_group)
    begun = times.get(Stage.PLANNED, 0.0)
    for stage, words, count in (
        (Stage.PLANNED, {"planned"}, 1),
        (Stage.HELD, {"assumed"}, 1),
        (Stage.BOUND, {"bound", "running"}, least),
        (Stage.RUNNING, {"running"}, least),
    ):
        at = _reached(steps, words, count, since=begun)
        if at is not None and (stage is not Stage.PLANNED or stage not in times):
            times[stage] = at
    if group is not None:
        times[Stage.SUBMITTED] = created(group)
        began = started(group)
        if began is not None:
            times.setdefault(Stage.RUNNING, began)
        ended = [each.at for each in steps if each.after in _ENDS]
        if ended:
            times.setdefault(Stage.ENDED, max(ended))
    if run is not None:
        times.setdefault(Stage.SUBMITTED, run.submitted)
        times.setdefault(Stage.BOUND, run.begin.at)
        times.setdefault(Stage.RUNNING, run.begin.at)
        if run.ended is not None:
            times.setdefault(Stage.ENDED, run.ended)
    return times


def _times_of_group(steps: Iterable[StoryStep]) -> dict[Stage, float]:
    """What the steps of the group itself tell of its latest attempt, the latest step last."""
    times: dict[Stage, float] = {}
    for step in steps:
        if step.after in _BEGINS_ANEW:
            for stage in (Stage.PLANNED, Stage.RUNNING, Stage.ENDED):
                times.pop(stage, None)
        if step.after == "Inqueue":
            times[Stage.ENQUEUED] = step.at
        elif step.after == "reserved":
            times.setdefault(Stage.PLANNED, step.at)
        elif step.after == "Running":
            times.setdefault(Stage.RUNNING, step.at)
        elif step.after == "Completed":
            times[Stage.ENDED] = step.at
    return times


def _reached(
    steps: Iterable[StoryStep], words: set[str], count: int, *, since: float
) -> float | None:
    """When the ``count``-th pod came to such a state, not before ``since``."""
    first: dict[str, float] = {}
    for step in steps:
        if step.after in words and step.who != _GROUP and step.at >= since:
            first[step.who] = min(first.get(step.who, step.at), step.at)
    return sorted(first.values())[count - 1] if len(first) >= count else None


# --- evictions ------------------------------------------------------------------------------------


def _evictions(
    key: GroupKey, decisions: Iterable[KeptDecision], evictions: Evictions
) -> EvictionsOf:
    """What is kept of evictions by the group and of it, and what the process remembers of them."""
    found: dict[tuple[str, str], Evicted] = {}
    for each in decisions:
        if each.kind == DecisionKind.EVICT and each.pod:
            pod = f"{each.group.partition('/')[0]}/{each.pod}"
            before = found.get((each.plan, pod))
            found[each.plan, pod] = Evicted(
                at=before.at if before is not None else each.at,
                pod=pod,
                job=each.group,
                queue=each.queue,
                node=each.node,
                rule=each.rule,
                action=each.text,
                state=each.cause,
                preemptor=each.preemptor,
            )
    for begun in evictions.decided:
        intent = begun.intent
        for victim in intent.victims:
            pod = f"{victim.namespace}/{victim.name}"
            fate = begun.fates.get(victim.uid)
            found.setdefault(
                (f"{begun.name}@{intent.decided:.6f}", pod),
                Evicted(
                    at=intent.decided,
                    pod=pod,
                    job=victim.gang,
                    queue=victim.queue,
                    node=victim.node,
                    rule=victim.rule,
                    action=intent.action.value,
                    state=fate.value if fate is not None else "",
                    preemptor=intent.preemptor,
                ),
            )
    latest = sorted(found.values(), key=lambda each: each.at)
    return EvictionsOf(
        by=tuple([each for each in latest if each.preemptor == key][-EVICTED:]),
        of=tuple([each for each in latest if each.job == key][-EVICTED:]),
    )
