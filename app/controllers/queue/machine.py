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


def next_step(standing: QueueFacts, action: Action) -> Wanted:
    """Where ``action`` leads; ParentShut when it cannot be done."""
    shut_above = standing.parent is not None and standing.parent.is_shut
    if action is Action.OPEN:
        if shut_above:
            raise ParentShut
        return Wanted(State.OPEN, _opened(standing))
    if action is Action.CLOSE:
        return Wanted(_closed(standing), standing.mark)
    if shut_above and not standing.state.is_shut:
        return Wanted(_closed(standing), Mark.BY_PARENT)
    if standing.mark is Mark.BY_PARENT and not shut_above:
        return Wanted(State.OPEN, Mark.REOPENED)
    if standing.state is State.CLOSING:
        return Wanted(_closed(standing), standing.mark)
    return Wanted(standing.state, standing.mark)


def _closed(standing: QueueFacts) -> State:
    drained = standing.state is State.CLOSED or not standing.has_groups
    return State.CLOSED if drained else State.CLOSING


def _opened(standing: QueueFacts) -> Mark:
    """What was open already has not been opened."""
    was_shut = standing.state is not State.OPEN or standing.mark is Mark.BY_PARENT
    return Mark.REOPENED if was_shut else standing.mark
