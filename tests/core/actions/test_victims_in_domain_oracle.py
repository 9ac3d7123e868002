"""Evictions inside domains against numbers: which domain has to be taken, and at which cost."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from app.model.topology import HyperNode
from tests.core.actions.rigs import cores, gang_of
from tests.core.actions.test_victims_in_domain import BY
from tests.core.contended import contended, eviction_for, places, running_gang
from tests.scale import examples
from tests.topology import hard, make_domains, racks, zone

HIGH = 5
"""Priority of the gang that waits."""


@dataclass(frozen=True)
class Case:
    """``priorities`` of the single pods of one core on each node, which has so many ``free``."""

    priorities: tuple[tuple[int, ...], ...]
    free: tuple[int, ...]
    rack_of: tuple[int, ...]
    zone_of: tuple[int, ...]
    size: int
    highest: int

    def tiers(self) -> list[dict[str, list[int]]]:
        """The rows of the nodes of each domain, tier by tier."""
        found: list[dict[str, list[int]]] = [{}, {}]
        for row, rack in enumerate(self.rack_of):
            found[0].setdefault(f"r{rack}", []).append(row)
            found[1].setdefault(f"z{self.zone_of[rack]}", []).append(row)
        return found[: self.highest]

    def tree(self) -> tuple[HyperNode, ...]:
        """The same as HyperNodes."""
        low: dict[str, list[str]] = {}
        for row, rack in enumerate(self.rack_of):
            low.setdefault(f"r{rack}", []).append(f"n{row}")
        high: dict[str, list[str]] = {}
        for name in low:
            high.setdefault(f"z{self.zone_of[int(name[1:])]}", []).append(name)
        below = racks(**{name: " ".join(nodes) for name, nodes in low.items()})
        return (*below, *(zone(name, *some) for name, some in high.items()))

    def cost(self, rows: list[int]) -> tuple[int, int] | None:
        """The highest priority that goes and the number of pods; None: there is no room."""
        lacks = max(self.size - sum(self.free[row] for row in rows), 0)
        lower = sorted(p for row in rows for p in self.priorities[row] if p < HIGH)
        if len(lower) < lacks:
            return None
        return (lower[lacks - 1], lacks) if lacks else (-1, 0)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes = draw(st.integers(1, 8))
    priorities = st.lists(st.integers(0, HIGH + 1), max_size=3).map(tuple)
    return Case(
        priorities=tuple(draw(priorities) for _ in range(nodes)),
        free=tuple(draw(st.sampled_from((0, 0, 0, 1))) for _ in range(nodes)),
        rack_of=tuple(draw(st.integers(0, 3)) for _ in range(nodes)),
        zone_of=tuple(draw(st.integers(0, 1)) for _ in range(4)),
        size=draw(st.integers(1, 6)),
        highest=draw(st.integers(1, 2)),
    )


@given(cases())
@examples(100)
def test_the_lowest_domain_with_the_cheapest_victims_is_taken_if_there_is_one(case: Case) -> None:
    sizes = [len(some) + free for some, free in zip(case.priorities, case.free, strict=True)]
    running = [
        running_gang(f"low{row}x{at}", [row], priority=priority)
        for row, some in enumerate(case.priorities)
        for at, priority in enumerate(some)
    ]
    nodes = cores(*sizes)
    gang = gang_of("high", case.size, priority=HIGH, topology=hard(case.highest))
    outcome = contended(
        gang, running=running, nodes=nodes, by=BY, domains=make_domains(nodes, case.tree())
    )
    if outcome.nodes("high"):
        assert any(case.cost(rows) == (-1, 0) for tier in case.tiers() for rows in tier.values())
        return
    by_tier = [{name: case.cost(rows) for name, rows in tier.items()} for tier in case.tiers()]
    assert not any(cost == (-1, 0) for tier in by_tier for cost in tier.values())
    possible = [[cost for cost in tier.values() if cost is not None] for tier in by_tier]
    best = next((min(costs) for costs in possible if costs), None)
    if best is None:
        assert outcome.plan.evictions == ()
        return
    plan = eviction_for(outcome, "high")
    rows = {int(node[1:]) for node in places(plan).values()}
    inside = next(tier for tier, costs in zip(case.tiers(), possible, strict=True) if costs)
    domain = next(each for each in inside.values() if rows <= set(each))
    assert case.cost(domain) == best
    gone = [case.priorities[int(v.node[1:])][int(v.name.split("x")[1][0])] for v in plan.victims]
    assert (max(gone), len(gone)) == best
    assert {int(victim.node[1:]) for victim in plan.victims} <= set(domain)
