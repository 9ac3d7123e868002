"""Writing PodGroup and Queue statuses, and the events that go with them.

What should stand there is worked out when the write's turn comes. A change of phase or counts is
written at once, and so is a condition that turns; a new cause soon, as the first one is often of a
moment in which the pods were just being created; when only a text would change, not more often than
every few seconds. Both are written less often the more groups wait, so that a backlog of whatever
length costs a bounded number of writes.
"""

from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import numpy as np

from app.cache.cluster import ClusterCache
from app.core.gangs.lifecycle import (
    RAN,
    GroupStatus,
    desired_status,
    differs,
    next_phase,
    stamped,
    summary,
    unschedulable_text,
    waits,
)
from app.core.plugins.gang import unmade
from app.core.texts import loan_text
from app.kit.workqueue import Again
from app.model.amounts import CPU, MEMORY, Amounts, amounts
from app.model.conditions import UNSCHEDULABLE
from app.model.gang import Gang
from app.model.ids import GroupKey, QueueName
from app.model.reason import Refusal
from app.model.resources import Vector
from app.model.topology import ALLOCATED
from app.model.workload import GroupPhase, PodGroup, Queue
from app.service.cycle.last_plan import LastPlan
from app.service.cycle.leadership import Leadership
from app.service.effects.failed_writes import again_unless_gone
from app.service.ports import Clock, EventSink, EventType, GroupWriter, WriteError
from app.service.telling.network import network_text
from app.service.telling.reasons import Reasons
from app.telemetry import metrics
from app.wire import patches, reached, times

SETTLING_S = 2.0
"""A change that leaves the phase is written so long after it began: pods come, and start, one by
one, and a gang that has its places runs soon."""
PLACED_SETTLING_S = 5.0
"""How long a gang with places that needs only be bound settles, unless it was said to wait."""
REPLACED_S = 0.5
"""How long a running gang may lack members that do not exist before it is Unknown.

A job makes an evicted pod anew at once, and its policies are not to answer what is over then.
(Volcano looks once a second.) And so long it may have none before it waits again: it is admitted at
once or deleted.
"""
FIRST_LOOK_S = 0.25
"""After so long the planner has looked at a new group."""
TEXT_EVERY_S = 5.0
FIRST_EVENT_AFTER_S = 2.0
"""A refusal that is over sooner (the pods were just being created) is not worth an event."""
FIRST_EVENT_WITHOUT_PODS_S = 10.0
"""How long an admitted group without pods has no event: many are made before their pods are."""
EVENT_EVERY_S = 15.0
_INSTANT_S = 0.001
_NOTHING: Amounts = ((CPU, 0), (MEMORY, 0))
"""What a queue holds that holds nothing: these two are always told, as in Volcano."""
_BECOMES_PENDING = (GroupPhase.NEW, GroupPhase.PENDING)
_IS_TO_RUN = frozenset({GroupPhase.PENDING, GroupPhase.INQUEUE})
TEXTS_PER_S = 20.0
"""All waiting groups together: so many changed texts, and so many events, a second at most."""


@dataclass(frozen=True, slots=True)
class Written:
    """What we last wrote for a group, over which stored version, and when."""

    status: GroupStatus
    over: str
    at: float


@dataclass(frozen=True, slots=True)
class Told:
    """The last event about a waiting group; no text: when it began to wait, untold so far."""

    text: str
    at: float


class StatusWriter:
    """Brings statuses up to date, one object at a time."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        leadership: Leadership,
        last_plan: LastPlan,
        reasons: Reasons,
        groups: GroupWriter,
        events: EventSink,
        clock: Clock,
    ) -> None:
        self._cache = cache
        self._leadership = leadership
        self._last_plan = last_plan
        self._reasons = reasons
        self._groups = groups
        self._events = events
        self._clock = clock
        self._written: dict[GroupKey, Written] = {}
        self._unsettled: dict[GroupKey, float] = {}
        """Since when the status of a group should be another, its phase apart."""
        self._told: dict[GroupKey, Told] = {}
        self._allocated: dict[QueueName, Amounts] | None = None
        """What the queues hold, when it was last counted."""
        self._summed: dict[QueueName, tuple[Amounts, str]] = {}
        """What was last written for a queue, over which stored version."""

    async def write_group(self, key: GroupKey) -> None:
        """Write the PodGroup's status if it should be another; the replica that leads does."""
        if not self._leadership.activity.active:
            self._leadership.follow()  # all groups are looked at when this one leads again
            return
        group, gang = self._cache.groups.get(key), self._cache.registry.view(key)
        if group is None or gang is None:
            for known in (self._written, self._unsettled, self._told):
                known.pop(key, None)
            return
        phase = self._decide_phase(gang)
        stored = group.pod_group
        if stored is None or stored.deleting:
            return
        if phase is stored.phase:
            self._wait_until_settled(key, SETTLING_S)
        refusal = self._reasons.of(group)
        loan = self._last_plan.loans.get(key)
        wanted = desired_status(
            gang,
            stored,
            refusal,
            describe=partial(self._reasons.wording.describe, namespace=stored.namespace),
            loan="" if loan is None else loan_text(loan.borrowed_from, self._named(loan.amount)),
            domain=self._domain_of(gang),
        )
        if not differs(wanted, stored):
            self._unsettled.pop(key, None)
        elif not self._is_written(key, wanted, stored):
            settling_s = self._settling_s(gang, stored, wanted, refusal)
            if settling_s:
                self._unsettled.setdefault(key, self._clock())
                self._wait_until_settled(key, settling_s)
            await self._write(key, stored, wanted)
        await self._tell(key, gang, stored, refusal)
        pause = self._reasons.settle_in_s(group)
        if pause:
            raise Again("members may be on their way", after_s=pause)

    def forget(self) -> None:
        """Another replica writes: what was written here says nothing about what stands there."""
        for known in (self._written, self._unsettled, self._told, self._summed):
            known.clear()
        self._allocated = None

    def stale_queues(self) -> list[QueueName]:
        """Queues whose ``status.allocated`` is not what is stored."""
        self._allocated = sums = self._sums()
        queues = self._cache.queues.items()
        return [name for name, queue in queues if self._is_stale(queue, sums.get(name, _NOTHING))]

    def _is_stale(self, queue: Queue, wanted: Amounts) -> bool:
        """Whether another sum should stand there than does, or than was written over this one."""
        if wanted == queue.allocated:
            return False
        return self._summed.get(queue.name) != (wanted, queue.resource_version)

    async def write_queue(self, name: QueueName) -> None:
        """Write ``status.allocated``: what the queue's members and its children's hold.

        Only the replica that leads does, once it has counted.
        """
        if not self._leadership.activity.active or self._allocated is None:
            return
        queue = self._cache.queues.get(name)
        if queue is None:
            self._summed.pop(name, None)
            return
        allocated = self._allocated.get(name, _NOTHING)
        if not self._is_stale(queue, allocated):
            return
        try:
            await self._groups.patch_queue_status(
                name, patches.queue_allocated(allocated, before=queue.allocated)
            )
        except WriteError as error:
            again_unless_gone(error)
        self._summed[name] = (allocated, queue.resource_version)

    def _decide_phase(self, gang: Gang) -> GroupPhase:
        """The phase from now on; raises `Again` while it may soon be another."""
        phase = next_phase(gang)
        if phase is GroupPhase.UNKNOWN and _may_soon_be_whole(gang):
            self._unsettled.setdefault(gang.key, self._clock())
            self._wait_until_settled(gang.key, REPLACED_S)
        self._cache.decisions.set_phase(gang.key, phase)
        return phase

    def _is_written(self, key: GroupKey, wanted: GroupStatus, stored: PodGroup) -> bool:
        """Whether the same was written already and the watch has not caught up; or texts only."""
        last = self._written.get(key)
        if last is None:
            return False
        if last.status == wanted and last.over == stored.resource_version:
            return True
        shortest_s = TEXT_EVERY_S if _same_causes(wanted, stored) else SETTLING_S
        pause = self._pause(shortest_s) - (self._clock() - last.at)
        if pause > _INSTANT_S and _texts_only(wanted, stored):
            self._unsettled.setdefault(key, self._clock())  # the text settles in this time
            raise Again("texts only", after_s=pause)
        return False

    def _settling_s(
        self, gang: Gang, stored: PodGroup, wanted: GroupStatus, refusal: Refusal | None
    ) -> float:
        """How long this change may wait for the next one; 0: it is written at once."""
        if refusal is None and (stored.phase, wanted.phase) == _BECOMES_PENDING:
            return FIRST_LOOK_S
        if stored.phase in RAN and wanted.phase in _IS_TO_RUN:
            return REPLACED_S
        if wanted.phase is not stored.phase or gang.key not in self._written:
            return 0.0
        has_places = wanted.phase is GroupPhase.INQUEUE and gang.counts.tasks and refusal is None
        return PLACED_SETTLING_S if has_places and not _complains(stored) else SETTLING_S

    def _wait_until_settled(self, key: GroupKey, settling_s: float) -> None:
        """Come back later if the change has only just begun; raises `Again`."""
        if key in self._unsettled:
            pause = self._unsettled[key] + settling_s - self._clock()
            if pause > _INSTANT_S:
                raise Again("not settled", after_s=pause)

    def _pause(self, shortest_s: float) -> float:
        """Seconds between two texts of one group."""
        return max(shortest_s, len(self._last_plan.refusals) / TEXTS_PER_S)

    async def _write(self, key: GroupKey, stored: PodGroup, wanted: GroupStatus) -> None:
        now = self._clock()
        conditions = stamped(
            wanted.conditions, stored, at=times.seconds(now), transition=str(uuid4())
        )
        body = patches.group_status(
            phase=wanted.phase,
            running=wanted.running,
            succeeded=wanted.succeeded,
            failed=wanted.failed,
            conditions=patches.with_conditions(stored.conditions, conditions),
        )
        if wanted.reached != stored.reached:
            body |= reached.annotation(wanted.reached, uid=stored.uid)
        if wanted.domain != stored.domain:
            metadata = body.setdefault("metadata", {"annotations": {}})
            metadata["annotations"][ALLOCATED] = wanted.domain or None
        try:
            await self._groups.patch_pod_group(stored.namespace, stored.name, body)
        except WriteError as error:
            again_unless_gone(error)
        self._unsettled.pop(key, None)
        self._written[key] = Written(wanted, stored.resource_version, now)
        if wanted.phase is GroupPhase.RUNNING and stored.phase is not GroupPhase.RUNNING:
            if stored.phase in _IS_TO_RUN:  # not one that lacked members for a while
                metrics.GROUP_WAIT_SECONDS.observe(max(now - stored.created, 0.0))
            group = self._cache.groups.get(key)
            where = "" if group is None else network_text(self._cache, group)
            text = f"pod group is ready, in {where}" if where else "pod group is ready"
            told = self._reasons.wording.text(text, namespace=stored.namespace)
            await self._event(stored, "Normal", "Scheduled", told)

    async def _tell(
        self, key: GroupKey, gang: Gang, stored: PodGroup, refusal: Refusal | None
    ) -> None:
        """The event of a group that waits: when the reason is new, and now and then again."""
        if refusal is None or not waits(gang.phase):
            self._told.pop(key, None)
            return
        describe = partial(self._reasons.wording.describe, namespace=stored.namespace)
        text = unschedulable_text(gang, refusal, describe=describe)
        now = self._clock()
        last = self._told.setdefault(key, Told("", now))
        pause = self._pause(EVENT_EVERY_S if last.text == text else TEXT_EVERY_S)
        if not last.text:
            awaits_all = gang.inqueue and not gang.counts.tasks
            pause = FIRST_EVENT_WITHOUT_PODS_S if awaits_all else FIRST_EVENT_AFTER_S
        if now - last.at < pause:
            raise Again("told a moment ago", after_s=pause - (now - last.at))
        self._told[key] = Told(text, now)
        if not gang.inqueue and refusal.detail:
            await self._event(stored, "Normal", "Unschedulable", refusal.detail)
        await self._event(stored, "Warning", "Unschedulable", text)
        raise Again("tell again", after_s=self._pause(EVENT_EVERY_S))

    async def _event(
        self, group: PodGroup, event_type: EventType, reason: str, message: str
    ) -> None:
        try:
            await self._events.record_event(
                kind="PodGroup",
                api_version="scheduling.volcano.sh/v1beta1",
                namespace=group.namespace,
                name=group.name,
                uid=group.uid,
                event_type=event_type,
                reason=reason,
                message=message,
            )
        except WriteError as error:
            again_unless_gone(error)

    def _domain_of(self, gang: Gang) -> str:
        """Where all members are that hold room, reserved or not; empty: nowhere."""
        if gang.topology is None:
            return ""
        table = self._cache.node_usage.table()
        places = self._cache.registry.refresh().places.get(gang.key, ())
        rows = {table.index[place.node] for place in places if place.node in table.index}
        return self._cache.network.domains(table).around(np.array(sorted(rows), dtype=np.intp))

    def _named(self, amount: Vector) -> Amounts:
        return self._cache.node_usage.axis.amounts(amount)

    def _sums(self) -> dict[QueueName, Amounts]:
        """Allocated amounts per queue, children counted into every ancestor (volcano.md §4.3)."""
        cache = self._cache
        sums = cache.registry.usage()
        totals = {name: usage.allocated.copy() for name, usage in sums.items()}
        for name, usage in sums.items():
            for above in cache.ancestors(name):
                here = totals.get(above)
                totals[above] = usage.allocated.copy() if here is None else here + usage.allocated
        axis = cache.node_usage.axis
        return {n: amounts(dict(_NOTHING + axis.amounts(total))) for n, total in totals.items()}


def _may_soon_be_whole(gang: Gang) -> bool:
    """Whether the gang is not Unknown yet, and lacks members that may be created soon."""
    return gang.phase is not GroupPhase.UNKNOWN and unmade(gang) is not None


def _complains(stored: PodGroup) -> bool:
    return any(c.type == UNSCHEDULABLE and c.status == "True" for c in stored.conditions)


def _texts_only(wanted: GroupStatus, stored: PodGroup) -> bool:
    """Whether phase, counts and the verdict of every condition stay as they are."""
    verdicts = {condition.type: condition.status for condition in stored.conditions}
    return not summary(wanted, stored) and all(
        verdicts.get(condition.type) == condition.status for condition in wanted.conditions
    )


def _same_causes(wanted: GroupStatus, stored: PodGroup) -> bool:
    """Whether every condition gives the reason that it has."""
    reasons = {condition.type: condition.reason for condition in stored.conditions}
    return all(reasons.get(each.type) == each.reason for each in wanted.conditions)
