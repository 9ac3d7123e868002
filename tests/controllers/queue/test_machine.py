"""Every cell of the table of queue states, and what holds for all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.controllers.queue.machine import (
    Action,
    Mark,
    ParentShut,
    QueueFacts,
    State,
    Wanted,
    next_step,
)

_CELLS = {
    # state: (opened, closed without groups, closed with groups, synced without, synced with)
    State.OPEN: (State.OPEN, State.CLOSED, State.CLOSING, State.OPEN, State.OPEN),
    State.CLOSING: (State.OPEN, State.CLOSED, State.CLOSING, State.CLOSED, State.CLOSING),
    State.CLOSED: (State.OPEN, State.CLOSED, State.CLOSED, State.CLOSED, State.CLOSED),
    State.UNKNOWN: (State.OPEN, State.CLOSED, State.CLOSING, State.UNKNOWN, State.UNKNOWN),
}
_TABLE = [
    pytest.param(state, action, has_groups, wanted, id=f"{state.value} {action.value} {has_groups}")
    for state, cells in _CELLS.items()
    for (action, has_groups), wanted in zip(
        [
            (Action.OPEN, False),
            (Action.CLOSE, False),
            (Action.CLOSE, True),
            (Action.SYNC, False),
            (Action.SYNC, True),
        ],
        cells,
        strict=True,
    )
]


@pytest.mark.parametrize(("state", "action", "has_groups", "wanted"), _TABLE)
def test_an_action_leads_to_a_state(
    state: State, action: Action, has_groups: bool, wanted: State
) -> None:
    for parent in (None, State.OPEN, State.UNKNOWN):
        facts = QueueFacts(state, has_groups=has_groups, parent=parent, mark=Mark.NONE)

        assert next_step(facts, action).state is wanted


@pytest.mark.parametrize("mark", list(Mark))
@pytest.mark.parametrize("state", [State.CLOSING, State.CLOSED, State.UNKNOWN])
def test_what_is_opened_is_marked_as_not_shut_by_its_parent(state: State, mark: Mark) -> None:
    facts = QueueFacts(state, has_groups=False, parent=State.OPEN, mark=mark)

    assert next_step(facts, Action.OPEN).mark is Mark.REOPENED


@pytest.mark.parametrize("mark", [Mark.NONE, Mark.REOPENED])
@pytest.mark.parametrize(
    ("state", "action"),
    [(State.OPEN, Action.OPEN), *((state, Action.CLOSE) for state in State)],
)
def test_what_is_not_opened_keeps_its_mark(state: State, action: Action, mark: Mark) -> None:
    facts = QueueFacts(state, has_groups=False, parent=State.OPEN, mark=mark)

    assert next_step(facts, action).mark is mark


@pytest.mark.parametrize(
    ("state", "mark", "has_groups", "wanted"),
    [
        (State.OPEN, Mark.NONE, False, Wanted(State.CLOSED, Mark.BY_PARENT)),
        (State.OPEN, Mark.NONE, True, Wanted(State.CLOSING, Mark.BY_PARENT)),
        (State.OPEN, Mark.REOPENED, True, Wanted(State.CLOSING, Mark.BY_PARENT)),
        (State.UNKNOWN, Mark.NONE, False, Wanted(State.CLOSED, Mark.BY_PARENT)),
        (State.CLOSING, Mark.BY_PARENT, False, Wanted(State.CLOSED, Mark.BY_PARENT)),
        (State.CLOSING, Mark.NONE, True, Wanted(State.CLOSING, Mark.NONE)),
        (State.CLOSED, Mark.NONE, False, Wanted(State.CLOSED, Mark.NONE)),
    ],
)
def test_a_queue_shuts_below_a_parent_that_is_shut(
    state: State, mark: Mark, has_groups: bool, wanted: Wanted
) -> None:
    for parent in (State.CLOSING, State.CLOSED):
        facts = QueueFacts(state, has_groups=has_groups, parent=parent, mark=mark)

        assert next_step(facts, Action.SYNC) == wanted


@pytest.mark.parametrize("state", [State.CLOSING, State.CLOSED])
@pytest.mark.parametrize("action", [Action.SYNC, Action.OPEN])
def test_what_the_parent_had_shut_opens_with_it(state: State, action: Action) -> None:
    facts = QueueFacts(state, has_groups=True, parent=State.OPEN, mark=Mark.BY_PARENT)

    assert next_step(facts, action) == Wanted(State.OPEN, Mark.REOPENED)


@pytest.mark.parametrize("mark", [Mark.NONE, Mark.REOPENED])
def test_what_somebody_else_had_shut_stays_shut(mark: Mark) -> None:
    facts = QueueFacts(State.CLOSED, has_groups=False, parent=State.OPEN, mark=mark)

    assert next_step(facts, Action.SYNC) == Wanted(State.CLOSED, mark)


@pytest.mark.parametrize("parent", [State.CLOSING, State.CLOSED])
@pytest.mark.parametrize("state", list(State))
def test_nothing_opens_below_a_parent_that_is_shut(parent: State, state: State) -> None:
    with pytest.raises(ParentShut):
        next_step(QueueFacts(state, has_groups=False, parent=parent, mark=Mark.NONE), Action.OPEN)


_facts = st.builds(
    QueueFacts,
    state=st.sampled_from(State),
    has_groups=st.booleans(),
    parent=st.none() | st.sampled_from(State),
    mark=st.sampled_from(Mark),
)


@given(_facts, st.sampled_from(Action))
def test_when_nothing_changes_nothing_more_happens(facts: QueueFacts, action: Action) -> None:
    try:
        wanted = next_step(facts, action)
    except ParentShut:
        return
    reached = QueueFacts(wanted.state, facts.has_groups, facts.parent, wanted.mark)
    again = next_step(reached, Action.SYNC)
    settled = QueueFacts(again.state, facts.has_groups, facts.parent, again.mark)

    assert next_step(settled, Action.SYNC) == again
    if action is Action.SYNC:
        assert again == wanted


@given(_facts)
def test_a_queue_is_closed_only_when_it_is_empty_and_shut_below_a_shut_parent(
    facts: QueueFacts,
) -> None:
    wanted = next_step(facts, Action.SYNC)

    if facts.parent is not None and facts.parent.is_shut:
        assert wanted.state.is_shut
    if wanted.state is State.CLOSED and facts.has_groups:
        assert facts.state is State.CLOSED
