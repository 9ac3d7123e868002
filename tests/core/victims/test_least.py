"""What victims cost at least is no more than any set of them that frees enough costs."""

from itertools import chain, combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.core.victims.least import least_cost
from app.core.victims.units import NO_PRIORITY, SetCost, Unit, cost_of
from app.model.ids import group_key
from tests.scale import examples


def unit(
    number: int, *, pods: int = 1, ends: bool = False, priority: int = 0, lost: int = 0
) -> Unit:
    first = number * 10
    gang = group_key("default", f"g{number}")
    return Unit(tuple(range(first, first + pods)), gang, ends, 1, priority, lost)


@st.composite
def units(draw: st.DrawFn) -> list[tuple[Unit, tuple[int, int]]]:
    """Units, and what each frees of two resources."""
    count = draw(st.integers(1, 6))
    return [
        (
            unit(
                number,
                pods=draw(st.integers(1, 3)),
                ends=draw(st.booleans()),
                priority=draw(st.integers(-2, 4)),
                lost=draw(st.integers(0, 20)),
            ),
            (draw(st.integers(0, 5)), draw(st.integers(0, 3))),
        )
        for number in range(count)
    ]


@given(units(), st.integers(-2, 12), st.integers(-2, 6))
@examples(300)
def test_no_set_that_frees_enough_costs_less(
    found: list[tuple[Unit, tuple[int, int]]], first: int, second: int
) -> None:
    freed = np.array([amounts for _, amounts in found], dtype=np.int64)
    short = np.array([first, second], dtype=np.int64)
    least = least_cost([each for each, _ in found], freed, short)
    positions = range(len(found))
    for chosen in chain.from_iterable(combinations(positions, size) for size in range(7)):
        if (freed[list(chosen)].sum(axis=0) >= short).all():
            assert least <= cost_of(found[at][0] for at in chosen)


def test_equal_units_cost_what_so_many_of_them_cost() -> None:
    some = [unit(number, pods=2, ends=True, priority=3, lost=7) for number in range(9)]
    freed = np.full((9, 1), 2, dtype=np.int64)
    assert least_cost(some, freed, np.array([8])) == SetCost(4, 3, 28, 8)


def test_where_nothing_is_short_no_unit_has_to_go() -> None:
    freed = np.ones((1, 1), dtype=np.int64)
    assert least_cost([unit(0)], freed, np.array([0])) == SetCost(0, NO_PRIORITY, 0, 0)
