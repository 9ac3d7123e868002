"""A column that changes in place reads as a list does, and what it told stays as it was."""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from app.cache.neighbours.codes import SPARE, LiveCodes
from app.model.placed_pods import Codes
from tests.scale import examples

VALUES = st.none() | st.sampled_from(["a", "b", "c"])
ROWS = 4


def read(told: Codes[str]) -> list[str | None]:
    by_code = [*told.values, None]
    return [by_code[code] for code in told.codes.tolist()]


class Columns(RuleBasedStateMachine):
    @initialize(found=st.lists(VALUES, max_size=ROWS))
    def start(self, found: list[str | None]) -> None:
        self.column = LiveCodes(found, size=ROWS)
        self.expected = found + [None] * (ROWS - len(found))
        self.kept: list[tuple[Codes[str], list[str], list[str | None]]] = []

    @rule(row=st.integers(0, ROWS - 1), value=VALUES | st.text(max_size=2))
    def put(self, row: int, value: str | None) -> None:
        self.column.put(row, value)
        self.expected[row] = value

    @rule(row=st.integers(0, ROWS - 1))
    def many_come_and_go(self, row: int) -> None:
        for number in range(SPARE):
            self.put(row, f"passing-{number}")

    @rule()
    def widen(self) -> None:
        self.expected += [None] * ROWS
        self.column.widen(len(self.expected))

    @rule()
    def tell(self) -> None:
        told = self.column.told()
        assert read(told) == self.expected
        assert self.column.told() is told, "it is told anew only when it changed"
        self.kept.append((told, list(told.values), list(self.expected)))

    @invariant()
    def what_was_told_stays(self) -> None:
        for told, values, expected in self.kept:
            assert (list(told.values), read(told)) == (values, expected)


TestColumns = Columns.TestCase
TestColumns.settings = examples(60, stateful_step_count=30)


@pytest.mark.parametrize("told", [False, True], ids=["once", "each time"])
def test_values_that_nobody_has_any_more_are_forgotten(*, told: bool) -> None:
    """Names of jobs come and go for months."""
    names = [f"job-{number}" for number in range(10 * SPARE)]
    column: LiveCodes[Any] = LiveCodes([], size=ROWS)
    for number, name in enumerate(names):
        column.put(number % ROWS, name)
        if told:
            column.told()
    assert len(column.told().values) <= 2 * ROWS + SPARE
    assert sorted(read(column.told()), key=str) == sorted(names[-ROWS:])
