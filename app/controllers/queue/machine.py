"""The states of a queue (volcano.md §4.3).

========  =============  =================================  =====================
state     OpenQueue      CloseQueue                         otherwise
========  =============  =================================  =====================
Open      Open           Closed, with groups Closing        Open
Closing   Open           Closed, with groups Closing        the same
Closed    Open           Closed                             Closed
Unknown   Open           Closed, with groups Closing        Unknown
========  =============  =================================  =====================

A queue follows its parent: when that is shut it shuts, and when that opens again it does too, if it
was the parent that had shut it. What is opened is marked as not shut by its parent.
"""

from dataclasses import dataclass
from enum import Enum


class State(Enum):
    """``status.state``; a queue without one is Open."""

    OPEN = "Open"
    CLOSING = "Closing"
    CLOSED = "Closed"
    UNKNOWN = "Unknown"

    @property
    def is_shut(self) -> bool:
        """Whether the queue takes no new groups."""
        return self in (State.CLOSING, State.CLOSED)


class Action(Enum):
    """What is asked of a queue; the first two by a Command."""

    OPEN = "OpenQueue"
    CLOSE = "CloseQueue"
    SYNC = "SyncQueue"


class Mark(Enum):
    """The annotation ``volcano.sh/closed-by-parent``."""

    NONE = ""
    BY_PARENT = "true"
    REOPENED = "false"


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """A queue as it is. ``parent`` is None for the root and when the parent does not exist."""

    state: State
    has_groups: bool
    parent: State | None
    mark: Mark


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a queue's state should be."""

    state: State
    mark: Mark


class ParentShut(Exception):
    """A queue cannot be opened below a queue that is shut."""


def next_step(facts: QueueFacts, action: Action) -> Wanted:
    """Where ``action`` leads; ParentShut when it cannot be done."""
    shut_above = facts.parent is not None and facts.parent.is_shut
    if action is Action.OPEN:
        if shut_above:
            raise ParentShut
        return Wanted(State.OPEN, _opened(facts))
    if action is Action.CLOSE:
        return Wanted(_closed(facts), facts.mark)
    if shut_above and not facts.state.is_shut:
        return Wanted(_closed(facts), Mark.BY_PARENT)
    if facts.mark is Mark.BY_PARENT and not shut_above:
        return Wanted(State.OPEN, Mark.REOPENED)
    if facts.state is State.CLOSING:
        return Wanted(_closed(facts), facts.mark)
    return Wanted(facts.state, facts.mark)


def _closed(facts: QueueFacts) -> State:
    drained = facts.state is State.CLOSED or not facts.has_groups
    return State.CLOSED if drained else State.CLOSING


def _opened(facts: QueueFacts) -> Mark:
    """What was open already has not been opened."""
    was_shut = facts.state is not State.OPEN or facts.mark is Mark.BY_PARENT
    return Mark.REOPENED if was_shut else facts.mark
