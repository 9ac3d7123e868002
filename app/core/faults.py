"""Errors that no code expects, told with the group or the queue that was looked at.

One group that the planner, or a plugin, fails at must not keep all others from their places. So
whatever looks at a group does it inside :class:`LookingAt`, and the planner plans again without
that group (:func:`app.core.planner.plan_around_faults`). Nor must what a plan does for no group
that waits, an :class:`Upkeep`: the planner plans again without it.

A plugin that cannot be opened, a :class:`PluginFault`, has no say in that plan. A plugin that only
says what is better is done without. What any other would say of nodes, queues and victims is not
known then: without it pods might come to places that they may not have, so no group is given any,
and each group that waits is told why.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from types import TracebackType
from typing import Final

from app.model.gang import Gang
from app.model.ids import GroupKey, QueueName
from app.model.plan import Plan
from app.model.reason import Cause, Refusal
from app.model.snapshot import Snapshot

MOST_FAULTS: Final = 4
"""After so many in one plan, all groups of the queues that they are of are left out."""


class Fault(Exception):
    """A part of planning failed. The error itself is the ``__cause__``."""

    @property
    def place(self) -> str:
        """``KeyError in app.core.plugins.priority:33``, without what the error says of objects."""
        return place_of(self.__cause__ or self)


class PlanningFault(Fault):
    """Planning failed while it looked at one group, or at all groups of ``queue``."""

    def __init__(self, *, group: GroupKey | None = None, queue: QueueName | None = None) -> None:
        super().__init__(f"group {group}" if group is not None else f"queue {queue}")
        self.group = group
        self.queue = queue

    @property
    def refusal(self) -> Refusal:
        """What a group is told that is left out for it."""
        text = f"planning failed at this group ({self.place}); all others are planned without it"
        return Refusal(Cause.PLANNING_FAILED, detail=text)

    def blames(self, gang: Gang) -> bool:
        """Whether planning is to go on without ``gang``."""
        return gang.key == self.group or gang.queue == self.queue


class LookingAt:
    """Inside, an unexpected error is a :class:`PlanningFault` of that gang, or of that queue."""

    __slots__ = ("gang", "queue")

    def __init__(self, gang: Gang | None = None, *, queue: QueueName | None = None) -> None:
        self.gang = gang
        self.queue = queue

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, PlanningFault):
            group = None if self.gang is None else self.gang.key
            raise PlanningFault(group=group, queue=self.queue) from error


class Upkeep(StrEnum):
    """What a plan does for no group that waits; the value is the metric label."""

    OVER_CAPABILITY = "overCapability"
    """Queues give up what they hold beyond their capability."""
    REVOKE = "revoke"
    """Pods leave nodes of a zone that closes."""
    SHUFFLE = "shuffle"
    """Pods move to other nodes."""
    LOANS = "loans"
    """What groups hold beyond the share of their queue is counted."""
    OVER_LIMIT = "overLimit"
    """Reservations are given back that queues may not hold any more."""
    EXPIRY = "expiry"
    """Reservations are given back that were not used in time."""
    TORN = "torn"
    """Reservations are given back that are in no common domain of the network any more."""


class UpkeepFault(Fault):
    """Planning failed at an ``upkeep``."""

    def __init__(self, upkeep: Upkeep) -> None:
        super().__init__(upkeep.value)
        self.upkeep = upkeep


@contextmanager
def doing(upkeep: Upkeep) -> Iterator[None]:
    """Inside, an unexpected error is an `UpkeepFault`, be it of a group: none of them waits."""
    try:
        yield
    except Exception as error:
        raise UpkeepFault(upkeep) from error


class PluginFault(Fault):
    """The ``plugin`` of that name could not be opened.

    ``needed``: without it no group may have a place.
    """

    def __init__(self, plugin: str, *, needed: bool) -> None:
        super().__init__(f"plugin {plugin}")
        self.plugin = plugin
        self.needed = needed

    @property
    def refusal(self) -> Refusal:
        """What every group is told that waits, when planning cannot do without the plugin."""
        text = f"plugin {self.plugin} failed ({self.place}); no group has a place until it works"
        return Refusal(Cause.PLANNING_FAILED, detail=text)


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A ``plan`` of a ``snapshot`` in which those that planning failed at wait for nothing.

    ``faults`` has each of these with the error, ``left_out`` the upkeep that failed, ``unopened``
    the plugins, by name, that could not be opened.
    """

    snapshot: Snapshot
    plan: Plan
    faults: Mapping[GroupKey, PlanningFault]
    left_out: Mapping[Upkeep, UpkeepFault]
    unopened: Mapping[str, PluginFault]

    def with_refusals(self) -> Plan:
        """The plan, in which the groups with faults have a reason too."""
        failed = {key: fault.refusal for key, fault in self.faults.items()}
        return replace(self.plan, refused={**self.plan.refused, **failed}) if failed else self.plan


def place_of(error: BaseException) -> str:
    """Where in the code an error is, without what it says of objects."""
    if isinstance(error, PlanningFault | PluginFault) and error.__cause__ is not None:
        return place_of(error.__cause__)
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    where = "" if at is None else f" in {at.tb_frame.f_globals['__name__']}:{at.tb_lineno}"
    return f"{type(error).__name__}{where}"
