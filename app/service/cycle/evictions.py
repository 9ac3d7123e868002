"""The eviction plans that have begun: the one place that owns their life.

A plan is taken up when the live cluster still bears it (:mod:`app.service.cycle.bearable_plans`),
and goes the steps of :mod:`app.service.cycle.begun_eviction`. The writer to the API server
(:mod:`app.service.effects.evictions`) asks here what is to be done and says what came of it; that
the victims have gone, and that the room is there, is seen by
:mod:`app.service.cycle.eviction_progress`.

Until a replica that leads has seen which plans are stored it plans nothing: room that looks free
may be that of a gang that others were evicted for.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.story import Stimulus
from app.model.decision import DecisionKind
from app.model.eviction import EvictionAction, EvictionPlan, IntendedPlace, Intent, VictimPod
from app.model.gang import Gang
from app.model.ids import GroupKey, PodUid
from app.service.cycle.begun_eviction import BegunEviction, Fate, Step
from app.service.cycle.eviction_pauses import EvictionGuard, Pauses
from app.service.cycle.places_left import places_left
from app.service.limits import Limits
from app.telemetry import metrics
from app.wire.intents import StoredIntent, read_intents

log = logging.getLogger(__name__)

REMEMBERED: Final = 64
"""How many decisions are kept for users, with their certificates."""
GROUP_GONE: Final = "the group is gone"

_UNGUARDED: Final = frozenset({EvictionAction.OVER_CAPABILITY, EvictionAction.REVOKE})
"""Actions by which a job may lose pods as often as it takes."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What an event of a preemptor's PodGroup says."""

    group: GroupKey
    text: str
    is_warning: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class Evictions:
    """``listeners`` are told the name of a plan when something of it is to be written."""

    cache: ClusterCache
    limits: Limits
    loaded: bool = False
    """Whether this replica knows which plans are stored, since it leads."""
    listeners: list[Callable[[str], None]] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    """For the events, which are written elsewhere."""
    plans: dict[str, BegunEviction] = field(default_factory=dict)
    """By the name of the intent; those that ended stay until that is deleted."""
    decided: deque[BegunEviction] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    """The latest decisions, the latest last."""
    guard: EvictionGuard = field(default_factory=EvictionGuard)
    pauses: Pauses = field(init=False)
    stuck: dict[PodUid, float] = field(default_factory=dict)
    """Pods that do not go, and since when this is known."""
    had_second_search: dict[GroupKey, str] = field(default_factory=dict)
    """Preemptors, with their UIDs, for which other victims were looked for, as some did not go."""

    def __post_init__(self) -> None:
        self.pauses = Pauses(self.limits)

    # --- plans begin -----------------------------------------------------------------------------

    def begin(
        self, plan: EvictionPlan, gang: Gang | None, *, now: float, generation: int
    ) -> BegunEviction:
        """Take up a plan that the live cluster bears; ``gang`` is its preemptor as planned."""
        intent = _intent(plan, gang, now=now, generation=generation)
        begun = BegunEviction(intent_name(intent), intent, gang, now)
        self._take(begun, plan, now)
        if not intent.victims:
            return begun
        metrics.EVICTION_PLANS.labels(intent.action, Step.DECIDED).inc()
        if intent.action not in _UNGUARDED:
            self.guard.note(self._taker(plan), self.jobs_of(intent.victims), now=now)
        if intent.preemptor:
            pods = "pod" if len(intent.victims) == 1 else "pods"
            groups = len({victim.gang for victim in intent.victims})
            self.notices.append(
                Notice(
                    intent.preemptor,
                    f"evicts {len(intent.victims)} {pods} of {groups} "
                    f"{'group' if groups == 1 else 'groups'} for {len(intent.places)} "
                    f"{'place' if len(intent.places) == 1 else 'places'} ({intent.action})",
                )
            )
        return begun

    def pauses_for(self, plan: EvictionPlan, *, now: float) -> bool:
        """Whether no pods are to be evicted for the group of the plan now.

        It pauses from now on if its victims are of a job that lost pods again and again. Where pods
        are shuffled, those of that job stay for this round.
        """
        key = plan.preemptor
        if not self.loaded or self.pauses.of(key, now=now) is not None:
            return True
        if plan.action in _UNGUARDED:
            return False
        job = self.guard.refuses(self._taker(plan), self.jobs_of(plan.victims), now=now)
        if job:
            metrics.EVICTIONS_GUARDED.inc()
            if key:
                self.pause(key, f"{job} has lost pods again and again", now=now)
            else:
                self.cache.pipelined.shuffled = now
        return bool(job)

    def _taker(self, plan: EvictionPlan) -> str:
        """What the guard counts the plan for: the job of its preemptor, or its action."""
        return self.job_of(plan.preemptor) if plan.preemptor else plan.action.value

    def pause(self, key: GroupKey, why: str, *, now: float) -> None:
        """Let no pods be evicted for a group for a while, longer each time in a row."""
        self.pauses.start(key, why=why, now=now)
        self.cache.pipelined.paused |= {key}
        self.notices.append(Notice(key, f"no pods are evicted for it: {why}", is_warning=True))

    def take_up(self, stored: Mapping[str, str], *, now: float) -> None:
        """Go on with the plans that are stored, as a process before this one left them."""
        self.loaded = True
        found = read_intents(stored)
        known = {part for each in found.values() for part in each.names}
        for name in sorted(stored.keys() - known):
            log.warning("not an intent of an eviction, or not all of it", extra={"intent": name})
        for name, each in sorted(found.items()):
            if name not in self.plans:
                self._go_on(name, each, now)

    def _go_on(self, name: str, stored: StoredIntent, now: float) -> None:
        intent = stored.intent
        gang = self.cache.registry.view(intent.preemptor) if intent.preemptor else None
        group = self.cache.groups.get(intent.preemptor)
        begun = BegunEviction(name, intent, gang, now, Step.WRITTEN, stored.names, stored=True)
        if intent.preemptor and (group is None or gang is None or gang.uid != intent.uid):
            self._let_go(begun, GROUP_GONE, now)
            return
        places = places_left(self.cache, intent, gang) if gang is not None else ()
        if places is None:
            self._let_go(begun, "what its slots request is not known", now)
            return
        if gang is not None and not places:
            self._let_go(begun, "its members have places", now)
            return
        if any(self.cache.pipelined.is_victim(victim.uid) for victim in intent.victims):
            self._let_go(begun, "its victims go for another group", now)
            return
        plan = EvictionPlan(
            intent.action,
            intent.preemptor,
            intent.victims,
            places,
            admits=intent.admits,
            certificate=intent.certificate,
        )
        self._take(begun, plan, now)
        begun.evicted = sum(fate is Fate.GOING for fate in begun.fates.values())

    def _let_go(self, begun: BegunEviction, why: str, now: float) -> None:
        """Nothing is left to do for a stored plan but to delete its intent."""
        self.plans[begun.name] = begun
        begun.go(Step.GIVEN_UP, now=now, why=why)
        self._tell(begun.name)

    def _take(self, begun: BegunEviction, plan: EvictionPlan, now: float) -> None:
        self.plans[begun.name] = begun
        if plan.victims:
            self.decided.append(begun)
        if plan.action is EvictionAction.SHUFFLE:
            self.cache.pipelined.shuffled = begun.intent.decided
        if plan.action is EvictionAction.REVOKE:
            self.cache.pipelined.revoked = begun.intent.decided
        self.cache.pipelined.begin(begun.name, plan)
        holders = self.cache.node_usage.holders
        begun.there = frozenset().union(*(holders(place.node) for place in plan.places))
        for victim in begun.intent.victims:
            begun.fates[victim.uid] = Fate.TO_GO
            begun.fate_since[victim.uid] = now
            member = self.cache.members.get(victim.uid)
            if member is None or member.pod.deleting:
                begun.meets(victim.uid, Fate.GOING, now=now)
            if member is not None:
                why = f"for {begun.intent.preemptor}, {victim.rule} allows it"
                self.cache.decisions.note_member(
                    member, begun.intent.action, by=Stimulus.EVICTION, why=why
                )
            self._keep(begun, victim, "taken up" if begun.stored else "decided")
        self._note(begun, begun.step, f"victims: {len(begun.intent.victims)}")
        self._tell(begun.name)

    # --- what the API server says ----------------------------------------------------------------

    def on_storing(self, begun: BegunEviction, names: Iterable[str]) -> None:
        """The intent is about to be stored as ``names``: from now on any of them may be there."""
        begun.names = tuple(names)

    def on_stored(self, begun: BegunEviction, *, now: float) -> None:
        """The intent is stored."""
        begun.stored = True
        if begun.step is Step.DECIDED:
            self._go(begun, Step.WRITTEN, now=now)
        self._tell(begun.name)

    def on_deleted(self, begun: BegunEviction) -> None:
        """The intent is there no more."""
        if self.plans.get(begun.name) is begun:
            del self.plans[begun.name]

    def to_evict(self, uid: PodUid) -> tuple[BegunEviction, VictimPod] | None:
        """The victim that is to be evicted now, and its plan; None: it is not, or not any more."""
        for begun in self.plans.values():
            victim = begun.is_to_evict(uid)
            if victim is not None and uid in self.cache.members:
                return begun, victim
        return None

    def on_evicting(self, begun: BegunEviction, *, now: float) -> None:
        """A victim is about to be evicted."""
        if begun.step is Step.WRITTEN:
            self._go(begun, Step.EVICTING, now=now)

    def on_evicted(self, begun: BegunEviction, victim: VictimPod, *, now: float) -> None:
        """The API server has accepted an eviction."""
        begun.evicted += 1
        begun.meets(victim.uid, Fate.GOING, now=now)
        metrics.EVICTIONS.labels(begun.intent.action, victim.rule).inc()
        member = self.cache.members.get(victim.uid)
        if member is not None:
            why = f"for {begun.intent.preemptor}" if begun.intent.preemptor else ""
            self.cache.decisions.note_member(member, "evicted", by=Stimulus.EVICTION, why=why)
        self._keep(begun, victim, "evicted")

    def on_kept(self, begun: BegunEviction, victim: VictimPod, fate: Fate, *, now: float) -> None:
        """The API server does not let a victim go, for now or at all."""
        begun.meets(victim.uid, fate, now=now)

    def on_gone(self, begun: BegunEviction, victim: VictimPod, *, now: float) -> None:
        """There is no such pod: the watch will show it."""
        begun.meets(victim.uid, Fate.GOING, now=now)

    # --- plans end -------------------------------------------------------------------------------

    def on_placed(self, begun: BegunEviction, *, now: float) -> None:
        """The places are reserved."""
        self.cache.pipelined.end(begun.name)
        self._go(begun, Step.PLACED, now=now)

    def on_bound(self, begun: BegunEviction, *, now: float) -> None:
        """End the plan: its gang has its minimum on nodes, or the plan had no gang."""
        self.cache.pipelined.end(begun.name)
        self.pauses.forgive(begun.intent.preemptor)
        self.had_second_search.pop(begun.intent.preemptor, None)
        self._go(begun, Step.BOUND, now=now)
        self._end(begun)

    def give_up(self, begun: BegunEviction, why: str, *, now: float, wasted: str = "") -> None:
        """Spare the victims that have not been asked to go.

        ``wasted`` is the metric label of why the others went in vain; empty: they did not.
        """
        self.cache.pipelined.end(begun.name)
        self._go(begun, Step.GIVEN_UP, now=now, why=why)
        if wasted and begun.evicted and begun.intent.preemptor:
            metrics.EVICTIONS_WASTED.labels(wasted).inc(begun.evicted)
            self.pause(begun.intent.preemptor, f"evictions were in vain, {why}", now=now)
        self.cache.signals.note_dirty()
        self._end(begun)

    def leave_alone(self, uid: PodUid, *, now: float) -> None:
        """A victim does not go: no plan counts on it until it has gone."""
        self.stuck[uid] = now
        self.cache.pipelined.stuck = frozenset(self.stuck)

    def stand_by(self) -> None:
        """Another replica leads: it has the plans from the API server, and nothing is deleted."""
        for name in self.plans:
            self.cache.pipelined.end(name)
        self.plans.clear()
        self.notices.clear()
        self.stuck.clear()
        self.had_second_search.clear()
        self.pauses = Pauses(self.limits)
        self.cache.pipelined.stuck, self.cache.pipelined.paused = frozenset(), frozenset()
        self.loaded = False

    def _end(self, begun: BegunEviction) -> None:
        if begun.names:
            self._tell(begun.name)
        else:
            self.on_deleted(begun)

    # --- how they stand --------------------------------------------------------------------------

    def of(self, key: GroupKey) -> BegunEviction | None:
        """The plan whose victims a group waits for."""
        name = self.cache.pipelined.preemptors().get(key)
        return None if name is None else self.plans.get(name)

    def under_way(self) -> Iterator[BegunEviction]:
        """The plans that have not ended."""
        return (begun for begun in list(self.plans.values()) if not begun.ended)

    def job_of(self, key: GroupKey) -> str:
        """What owns a group, which may be made anew with another name; else the group."""
        group = self.cache.groups.get(key)
        return key if group is None else _owner(group) or key

    def jobs_of(self, victims: Iterable[VictimPod]) -> list[str]:
        """What owns these pods, each once."""
        return list(dict.fromkeys(self.job_of(victim.gang) for victim in victims))

    def _go(self, begun: BegunEviction, step: Step, *, now: float, why: str = "") -> None:
        begun.go(step, now=now, why=why)
        if begun.intent.victims:
            metrics.EVICTION_PLANS.labels(begun.intent.action, step).inc()
        self._note(begun, step, why)

    def _note(self, begun: BegunEviction, step: Step, why: str) -> None:
        intent = begun.intent
        group = self.cache.groups.get(intent.preemptor)
        if group is not None:
            self.cache.decisions.note_group(
                group,
                f"eviction {step}",
                by=Stimulus.EVICTION,
                why=why,
                generation=intent.generation,
                kind=DecisionKind.EVICT,
            )
            self.cache.signals.note_group(group.key)
        log.info(
            "eviction plan",
            extra={
                "step": step.value,
                "group": intent.preemptor,
                "action": intent.action.value,
                "victims": len(intent.victims),
                "why": why,
            },
        )

    def _keep(self, begun: BegunEviction, victim: VictimPod, cause: str) -> None:
        """Tell the audit trail how far the eviction of a victim has come."""
        group, member = self.cache.groups.get(victim.gang), self.cache.members.get(victim.uid)
        trail, plan = self.cache.decisions.trail, begun.name
        trail.of_victim(victim, begun.intent, group, member, cause=cause, plan=plan)

    def _tell(self, name: str) -> None:
        for tell in self.listeners:
            tell(name)


def intent_name(intent: Intent) -> str:
    """What an intent is called: by the UID of its group, and so one for each."""
    if intent.uid:
        return f"pumice-eviction-{intent.uid}"
    return f"pumice-{intent.action}-{intent.victims[0].uid}"


def _intent(plan: EvictionPlan, gang: Gang | None, *, now: float, generation: int) -> Intent:
    return Intent(
        action=plan.action,
        preemptor=plan.preemptor,
        uid="" if gang is None else gang.uid,
        victims=plan.victims,
        places=tuple(
            IntendedPlace(p.task.uid, p.task.name, p.task.role, p.node, p.exchange)
            for p in plan.places
        ),
        admits=plan.admits,
        generation=generation,
        decided=now,
        certificate=plan.certificate,
    )


def _owner(group: Group) -> str:
    if group.pod_group is not None:
        return group.pod_group.owner_uid
    owners = (m.pod.owner.uid for m in group.members.values() if m.pod.owner is not None)
    return next(owners, "")
