"""How close gangs are, against every domain looked at one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.core.placement.closeness import closeness
from app.model.ids import CLUSTER
from app.model.resources import ResourceAxis
from tests.builders import make_node
from tests.scale import examples
from tests.topology import make_domains, racks, zone

AXIS = ResourceAxis()
NODES = [make_node(f"n{at}") for at in range(6)]
DOMAINS = make_domains(NODES, [*racks(a="n0 n1", b="n2 n3", c="n4"), zone("z", "a", "b")])
"""Racks of 2, 2 and 1 nodes, two of them in a zone; n5 is in none."""


def asking(cpu: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    vector = np.zeros(len(AXIS), dtype=np.int64)
    vector[AXIS.index["cpu"]] = cpu
    return vector


def cpus(*amounts: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.array([asking(each) for each in amounts])


def takes(rows: list[int], room: list[int], asked: int) -> int:
    return sum(max(room[row], 0) // asked for row in rows)


@given(
    sizes=st.lists(st.integers(0, 8), min_size=6, max_size=6),
    asked=st.integers(1, 4),
    others=st.lists(st.integers(0, 4), min_size=6, max_size=6),
    on=st.lists(st.integers(0, 5), min_size=1, max_size=6),
)
@examples(150)
def test_the_lowest_tier_is_that_of_a_domain_that_would_hold_all_if_it_were_empty(
    sizes: list[int], asked: int, others: list[int], on: list[int]
) -> None:
    used = [o + asked * on.count(row) for row, o in enumerate(others)]
    found = closeness(
        AXIS,
        DOMAINS,
        np.array(on, dtype=np.intp),
        [asking(asked) for _ in on],
        allocatable=cpus(*sizes),
        used=cpus(*used),
    )
    assert found is not None
    rows = {name: DOMAINS.rows_of(at).tolist() for at, name in enumerate(DOMAINS.names)}
    tiers = dict(zip(DOMAINS.names, DOMAINS.tiers.tolist(), strict=True))
    around = [name for name in DOMAINS.names if set(on) <= set(rows[name])]
    assert found.tier == min(tiers[name] for name in around) == tiers[found.domain]
    lower = {
        name: takes(inside, [s - o for s, o in zip(sizes, others, strict=True)], asked)
        for name, inside in rows.items()
        if tiers[name] < found.tier and takes(inside, sizes, asked) >= len(on)
    }
    assert found.lowest == min([found.tier, *(tiers[name] for name in lower)])
    assert (found.nearest is None) == (not lower)
    if found.nearest is not None:
        assert found.nearest.takes == min(max(lower.values()), len(on))
        free = sum(max(sizes[row] - others[row], 0) for row in rows[found.nearest.name])
        short = max(asked * len(on) - free, 0)
        assert dict(found.nearest.lacks) == ({"cpu": short} if short else {})


def test_members_on_no_node_are_nowhere() -> None:
    none = np.zeros(0, dtype=np.intp)
    assert (
        closeness(AXIS, DOMAINS, none, [], allocatable=cpus(*[8] * 6), used=cpus(*[0] * 6)) is None
    )


def test_a_member_outside_of_all_hyper_nodes_is_in_the_cluster() -> None:
    found = closeness(
        AXIS,
        DOMAINS,
        np.array([5], dtype=np.intp),
        [asking(1)],
        allocatable=cpus(*[8] * 6),
        used=cpus(0, 0, 0, 0, 0, 1),
    )
    assert found is not None
    assert (found.domain, found.tier, found.lowest) == (CLUSTER, 3, 1)
