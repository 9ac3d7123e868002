"""Which node's victims cost the least, as kube-scheduler has it."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.core.protection.victim import Victim
from app.core.victims.cost import cost_of
from tests.core.protection.builders import make_victim


def pods(*priorities: int, created: float = 0.0) -> list[Victim]:
    return [make_victim(priority=priority, created=created) for priority in priorities]


def test_the_most_important_victim_counts_first() -> None:
    assert cost_of(pods(1, 1, 1)) < cost_of(pods(2))


def test_then_the_sum_counts_in_which_each_victim_adds() -> None:
    assert cost_of(pods(2, 0)) < cost_of(pods(2, 1))
    assert cost_of(pods(2)) < cost_of(pods(2, -5))


def test_at_last_those_go_that_came_last() -> None:
    assert cost_of(pods(2, created=20.0)) < cost_of(pods(2, created=10.0))
    late = [*pods(2, created=20.0), *pods(1, created=0.0)]
    assert cost_of(late) < cost_of(pods(2, 1, created=10.0)), "only the most important ones count"


VICTIMS = st.lists(
    st.builds(make_victim, priority=st.integers(-1, 1), created=st.integers(0, 2)),
    min_size=1,
    max_size=3,
)


def narrowed(nodes: list[Sequence[Victim]]) -> list[Sequence[Victim]]:
    """Those that kube-scheduler has left after each of its comparisons."""

    def highest(victims: Sequence[Victim]) -> int:
        return max(victim.priority for victim in victims)

    def came_first(victims: Sequence[Victim]) -> float:
        return min(v.created for v in victims if v.priority == highest(victims))

    steps: list[Callable[[Sequence[Victim]], Any]] = [
        highest,
        lambda victims: sum(victim.priority + (1 << 31) for victim in victims),
        len,
        lambda victims: -came_first(victims),
    ]
    for step in steps:
        least = min(map(step, nodes))
        nodes = [victims for victims in nodes if step(victims) == least]
    return nodes


@given(nodes=st.lists(VICTIMS, min_size=1, max_size=5))
def test_the_least_cost_is_what_is_left_of_its_comparisons(nodes: list[Sequence[Victim]]) -> None:
    least = min(map(cost_of, nodes))
    assert [victims for victims in nodes if cost_of(victims) == least] == narrowed(nodes)
