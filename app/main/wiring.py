"""The use cases of the scheduler's side, wired to whatever meets their ports.

Used by ``pumice extender`` with the API-server adapter and by tests with fakes.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from app.cache.audit import Audit
from app.cache.cluster import ClusterCache
from app.model.ids import GroupKey, QueueName
from app.service.activity import Activity
from app.service.calls.barrier import Barrier
from app.service.calls.binding import Binding
from app.service.calls.catching_up import LateGroups
from app.service.calls.filtering import Filtering
from app.service.calls.preemption import Preemption
from app.service.configuration import Configuration
from app.service.cycle.allowed_victims import AllowedVictims
from app.service.cycle.cool_down import forgive, give_back_unusable
from app.service.cycle.heirs import Heirs
from app.service.cycle.planning import Planning
from app.service.cycle.vetoes import Vetoes
from app.service.effects.actuator import Actuator, log_failure
from app.service.effects.corrections import Corrections
from app.service.effects.gates import Gates
from app.service.effects.pod_reasons import PodReasons
from app.service.effects.queue_allocation_gates import QueueAllocationGates
from app.service.effects.statuses import StatusWriter
from app.service.intake.comparing import compare
from app.service.intake.feed import Feed
from app.service.intake.owners import Owners
from app.service.limits import Limits
from app.service.ports import (
    Binder,
    Clock,
    EventSink,
    GroupWriter,
    OwnerReader,
    PodLister,
    PodWriter,
)


class Ports(Binder, OwnerReader, PodWriter, GroupWriter, EventSink, PodLister, Protocol):
    """Everything the scheduler's side needs of the API server."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """The wired use cases."""

    cache: ClusterCache
    configuration: Configuration
    activity: Activity
    barrier: Barrier
    planning: Planning
    filtering: Filtering
    binding: Binding
    preemption: Preemption
    actuator: Actuator
    owners: Owners
    feed: Feed
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
    cache = ClusterCache(schedulers=schedulers, default_queue=default_queue)
    configuration = Configuration()
    barrier = Barrier(cache, limits=limits, clock=clock)
    allowed_victims = AllowedVictims(cache, clock=clock)
    planning = Planning(
        cache=cache,
        configuration=configuration,
        activity=activity,
        vetoes=Vetoes(keep_s=limits.veto_s),
        allowed_victims=allowed_victims,
        limits=limits,
        clock=clock,
    )
    status = StatusWriter(cache, planning=planning, groups=ports, events=ports, clock=clock)
    reasons = PodReasons(
        cache, planning=planning, pods=ports, events=ports, clock=clock, failed=log_failure
    )
    late_groups = LateGroups(cache, clock=clock)
    filtering = Filtering(
        cache,
        planning=planning,
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
        cache, planning=planning, pods=ports, reasons=reasons, gates=gates, failed=log_failure
    )
    actuator = Actuator(
        cache,
        pods=ports,
        status=status,
        reasons=reasons,
        corrections=corrections,
        showing=showing,
        gates=gates,
        limits=limits,
        clock=clock,
    )
    heirs = Heirs(cache, activity=activity, limits=limits, clock=clock, told=planning.published)
    owners = Owners(cache, reader=ports, clock=clock, settled=planning.notice, failed=log_failure)
    planning.published.append(actuator.placed)
    planning.after += [
        actuator.after_cycle,
        owners.after_cycle,
        barrier.settle,
        filtering.after_cycle,
        partial(forgive, cache),
        lambda _changed: heirs.expire(clock()),
    ]
    planning.stood_by += [barrier.settle, status.forget, actuator.stood_by]

    def settled(changed: Iterable[GroupKey]) -> None:
        planning.follow_lead()
        heirs.settle()
        give_back_unusable(cache, changed)
        barrier.settle(changed)
        actuator.housed()
        if planning.has_news:
            planning.notice()

    return Parts(
        cache=cache,
        configuration=configuration,
        activity=activity,
        barrier=barrier,
        planning=planning,
        filtering=filtering,
        binding=Binding(
            cache,
            activity=activity,
            barrier=barrier,
            binder=ports,
            limits=limits,
            clock=clock,
            arrived=actuator.arrived,
        ),
        preemption=Preemption(
            cache,
            planning=planning,
            allowed_victims=allowed_victims,
            late_groups=late_groups,
            clock=clock,
        ),
        actuator=actuator,
        owners=owners,
        feed=Feed(cache, activity=activity, clock=clock, settled=settled),
        audit=partial(compare, cache, ports),
    )
