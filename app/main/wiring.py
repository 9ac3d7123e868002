"""The use cases of the scheduler's side, wired to whatever meets their ports.

Used by ``pumice extender`` with the API-server adapter and by tests with fakes.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from app.cache.audit import Audit
from app.cache.cluster import ClusterCache
from app.cache.snapshots.snapshotter import Snapshotter
from app.model.ids import GroupKey, QueueName
from app.service.activity import Activity
from app.service.calls.barrier import Barrier
from app.service.calls.binding import Binding
from app.service.calls.catching_up import LateGroups
from app.service.calls.filtering import Filtering
from app.service.calls.node_locks import NodeLocks
from app.service.calls.preemption import Preemption
from app.service.configuration import Configuration
from app.service.cycle.allowed_victims import AllowedVictims
from app.service.cycle.changed_domains import GiveBackTorn
from app.service.cycle.cool_down import forgive, give_back_unusable
from app.service.cycle.cycle_log import CycleLog
from app.service.cycle.equal_pods import EqualPods
from app.service.cycle.eta.etas import etas_beside
from app.service.cycle.eviction_progress import EvictionProgress
from app.service.cycle.evictions import Evictions
from app.service.cycle.expiry import Expiry
from app.service.cycle.faulty_groups import FaultyGroups
from app.service.cycle.heirs import Heirs
from app.service.cycle.last_plan import LastPlan
from app.service.cycle.leadership import Leadership
from app.service.cycle.loop import CycleLoop
from app.service.cycle.on_demand import OnDemand
from app.service.cycle.over_limit import GiveBackOverLimit
from app.service.cycle.pace import Pace
from app.service.cycle.parts import PlanningParts
from app.service.cycle.planner_input import PlannerInput
from app.service.cycle.planning_cycle import PlanningCycle
from app.service.cycle.publishing import Publisher
from app.service.cycle.queries import Queries
from app.service.cycle.refused import Refused
from app.service.cycle.simulations import Simulations
from app.service.cycle.stored_intents import StoredIntents
from app.service.cycle.vetoes import Vetoes
from app.service.effects.actuator import Actuator, log_failure
from app.service.effects.corrections import Corrections
from app.service.effects.evictions import EvictionWorker
from app.service.effects.gates import Gates
from app.service.effects.pod_reasons import PodReasons
from app.service.effects.queue_allocation_gates import QueueAllocationGates
from app.service.effects.statuses import StatusWriter
from app.service.intake.comparing import compare
from app.service.intake.feed import Feed
from app.service.intake.http_extender.victims import AskedVictims
from app.service.intake.owners import Owners
from app.service.limits import Limits
from app.service.ports import (
    Binder,
    Clock,
    EventSink,
    Evictor,
    GroupWriter,
    IntentStore,
    NodeAnnotator,
    OwnerReader,
    PodLister,
    PodWriter,
)
from app.service.telling.hiding import Wording
from app.service.telling.reasons import Reasons


class Ports(
    Binder,
    NodeAnnotator,
    Evictor,
    IntentStore,
    OwnerReader,
    PodWriter,
    GroupWriter,
    EventSink,
    PodLister,
    Protocol,
):
    """Everything the scheduler's side needs of the API server."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """The wired use cases."""

    cache: ClusterCache
    configuration: Configuration
    activity: Activity
    barrier: Barrier
    planning: PlanningParts
    reasons: Reasons
    filtering: Filtering
    binding: Binding
    preemption: Preemption
    actuator: Actuator
    evicting: EvictionWorker
    owners: Owners
    feed: Feed
    asked_victims: AskedVictims
    audit: Callable[[], Awaitable[Audit]]


def assemble(
    *,
    ports: Ports,
    clock: Clock,
    limits: Limits,
    schedulers: frozenset[str],
    activity: Activity,
    default_queue: QueueName,
) -> Parts:
    """Build every use case once and connect them."""
    cache = ClusterCache(schedulers=schedulers, default_queue=default_queue, clock=clock)
    configuration = Configuration()
    barrier = Barrier(cache, limits=limits, clock=clock)
    planning = _planning(
        cache,
        store=ports,
        configuration=configuration,
        activity=activity,
        limits=limits,
        clock=clock,
    )
    last_plan, allowed_victims = planning.last_plan, planning.allowed_victims
    reasons = Reasons(
        cache=cache,
        last_plan=last_plan,
        evictions=planning.evictions,
        limits=limits,
        clock=clock,
        wording=Wording(cache, hides=limits.hides_other_namespaces),
    )
    status = StatusWriter(
        cache,
        leadership=planning.leadership,
        last_plan=last_plan,
        reasons=reasons,
        groups=ports,
        events=ports,
        clock=clock,
    )
    pod_reasons = PodReasons(
        cache,
        activity=activity,
        last_plan=last_plan,
        reasons=reasons,
        pods=ports,
        events=ports,
        clock=clock,
        failed=log_failure,
    )
    late_groups = LateGroups(cache, clock=clock)
    filtering = Filtering(
        cache,
        on_demand=planning.on_demand,
        queries=planning.queries,
        last_plan=last_plan,
        expiry=planning.expiry,
        vetoes=planning.vetoes,
        allowed_victims=allowed_victims,
        late_groups=late_groups,
        limits=limits,
        clock=clock,
    )
    corrections = Corrections(
        cache, filtering=filtering, pods=ports, clock=clock, failed=log_failure
    )
    gates = Gates(pods=ports, clock=clock)
    showing = QueueAllocationGates(
        cache,
        last_plan=last_plan,
        pods=ports,
        reasons=pod_reasons,
        gates=gates,
        failed=log_failure,
    )
    actuator = Actuator(
        cache,
        pods=ports,
        status=status,
        reasons=pod_reasons,
        corrections=corrections,
        showing=showing,
        gates=gates,
        limits=limits,
        clock=clock,
    )
    evicting, room = _evicting(
        cache,
        planning,
        ports=ports,
        activity=activity,
        wording=reasons.wording,
        limits=limits,
        clock=clock,
    )
    heirs = Heirs(
        cache, activity=activity, limits=limits, clock=clock, told=planning.publisher.told
    )
    owners = Owners(
        cache, reader=ports, clock=clock, settled=planning.pace.notice, failed=log_failure
    )
    planning.publisher.told.append(actuator.placed)
    planning.cycle.after += [
        actuator.after_cycle,
        owners.after_cycle,
        barrier.settle,
        filtering.after_cycle,
        partial(forgive, cache),
        lambda _changed: heirs.expire(clock()),
        lambda _changed: room.settle(),
        evicting.after_cycle,
    ]
    planning.leadership.stood_by += [
        barrier.settle,
        status.forget,
        actuator.stood_by,
        planning.evictions.stand_by,
    ]

    def settled(changed: Iterable[GroupKey]) -> None:
        planning.leadership.follow()
        heirs.settle()
        room.settle()
        give_back_unusable(cache, changed)
        planning.cycle.torn.give_back()
        barrier.settle(changed)
        actuator.housed()
        planning.loop.settled()

    return Parts(
        cache=cache,
        configuration=configuration,
        activity=activity,
        barrier=barrier,
        planning=planning,
        reasons=reasons,
        filtering=filtering,
        binding=Binding(
            cache,
            activity=activity,
            barrier=barrier,
            binder=ports,
            locks=NodeLocks(ports, clock=clock),
            limits=limits,
            clock=clock,
            arrived=actuator.arrived,
        ),
        preemption=Preemption(
            cache,
            queries=planning.queries,
            allowed_victims=allowed_victims,
            late_groups=late_groups,
            clock=clock,
        ),
        actuator=actuator,
        evicting=evicting,
        owners=owners,
        asked_victims=planning.publisher.asked_victims,
        feed=Feed(cache, activity=activity, clock=clock, settled=settled),
        audit=partial(compare, cache, ports),
    )


def _evicting(
    cache: ClusterCache,
    planning: PlanningParts,
    *,
    ports: Ports,
    activity: Activity,
    wording: Wording,
    limits: Limits,
    clock: Clock,
) -> tuple[EvictionWorker, EvictionProgress]:
    worker = EvictionWorker(
        cache,
        planning.evictions,
        ports=ports,
        activity=activity,
        wording=wording,
        limits=limits,
        clock=clock,
        failed=log_failure,
    )
    room = EvictionProgress(
        cache=cache,
        evictions=planning.evictions,
        activity=activity,
        limits=limits,
        clock=clock,
        publisher=planning.publisher,
    )
    return worker, room


def _planning(
    cache: ClusterCache,
    *,
    store: IntentStore,
    configuration: Configuration,
    activity: Activity,
    limits: Limits,
    clock: Clock,
) -> PlanningParts:
    vetoes, allowed_victims = Vetoes(keep_s=limits.veto_s), AllowedVictims(cache, clock=clock)
    snapshotter, expiry, log = Snapshotter(cache), Expiry(cache, limits), CycleLog()
    refused, pace = Refused(cache), Pace(limits, log)
    last_plan, evictions = LastPlan(cache, refused), Evictions(cache=cache, limits=limits)
    faulty = FaultyGroups(cache)
    torn = GiveBackTorn(cache, evictions, faulty.parts, clock)
    source = PlannerInput(cache, snapshotter, configuration, vetoes, allowed_victims, faulty)
    queries = Queries(
        cache=cache,
        configuration=configuration,
        snapshotter=snapshotter,
        shapes=source.shapes,
        clock=clock,
    )
    equal_pods = EqualPods(
        cache=cache,
        configuration=configuration,
        snapshotter=snapshotter,
        allowed_victims=allowed_victims,
        refused=refused,
    )
    publisher = Publisher(
        cache=cache,
        configuration=configuration,
        snapshotter=snapshotter,
        last_plan=last_plan,
        expiry=expiry,
        evictions=evictions,
        asked_victims=AskedVictims(cache, configuration),
        torn=torn,
        faulty=faulty,
        log=log,
        limits=limits,
    )
    leadership = Leadership(
        cache=cache, activity=activity, expiry=expiry, last_plan=last_plan, pace=pace, clock=clock
    )
    cycle = PlanningCycle(
        cache=cache,
        limits=limits,
        clock=clock,
        input=source,
        expiry=expiry,
        over_limit=GiveBackOverLimit(cache, configuration, snapshotter, faulty.parts),
        torn=torn,
        equal_pods=equal_pods,
        publisher=publisher,
        intents=StoredIntents(evictions=evictions, store=store, leadership=leadership, clock=clock),
        last_plan=last_plan,
        leadership=leadership,
        pace=pace,
        log=log,
    )
    on_demand = OnDemand(
        cache=cache,
        clock=clock,
        input=source,
        queries=queries,
        equal_pods=equal_pods,
        publisher=publisher,
        refused=refused,
        evictions=evictions,
        cycle=cycle,
        pace=pace,
        log=log,
    )
    simulations = Simulations(cache, source, configuration, limits, clock)
    return PlanningParts(
        loop=CycleLoop(cache=cache, limits=limits, pace=pace, leadership=leadership, cycle=cycle),
        cycle=cycle,
        on_demand=on_demand,
        publisher=publisher,
        queries=queries,
        simulations=simulations,
        etas=etas_beside(cycle, simulations),
        last_plan=last_plan,
        leadership=leadership,
        pace=pace,
        expiry=expiry,
        evictions=evictions,
        vetoes=vetoes,
        allowed_victims=allowed_victims,
        log=log,
    )
