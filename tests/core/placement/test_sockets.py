"""What kubelets do with the cpus of their NUMA nodes."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.placement.sockets import Lacking, Taken, assign
from app.model.numa import Cpus, NumaNeed, NumaPolicy
from tests.scale import examples

UNSET, NONE, BEST, RESTRICTED, SINGLE = NumaPolicy


def need(*cpus: int) -> NumaNeed:
    return NumaNeed(NumaPolicy.UNSET, cpus)


@pytest.mark.parametrize(
    ("policy", "free", "cpus", "outcome"),
    [
        # one container, two NUMA nodes of 8
        (SINGLE, (8, 8), (4,), Taken((4, 0))),
        (SINGLE, (2, 8), (4,), Taken((0, 4))),
        (SINGLE, (6, 5), (8,), Lacking(8, 6, 1)),
        (SINGLE, (8, 8), (9,), Lacking(9, 8, 1)),
        (RESTRICTED, (8, 8), (9,), Taken((8, 1))),
        (RESTRICTED, (6, 5), (8,), Lacking(8, 6, 1)),
        (RESTRICTED, (6, 5), (12,), Lacking(12, 11, 0)),
        (BEST, (6, 5), (8,), Taken((3, 5))),
        (BEST, (8, 2), (8,), Taken((8, 0))),
        (NONE, (6, 5), (8,), Taken((3, 5))),
        (NONE, (3, 4), (8,), Lacking(8, 7, 0)),
        (UNSET, (8, 8), (8,), Taken((8, 0))),
        # containers are looked at one after the other
        (SINGLE, (8, 8), (5, 5), Taken((5, 5))),
        (SINGLE, (8, 8), (5, 5, 5), Lacking(5, 3, 1)),
        (SINGLE, (8, 8), (5, 0, 3), Taken((8, 0))),
        (RESTRICTED, (8, 8), (5, 5, 6), Lacking(6, 3, 1)),
        (BEST, (8, 8), (5, 5, 6), Taken((8, 8))),
        (SINGLE, (8, 8), (0, 0), Taken((0, 0))),
        # what was taken beyond what there is counts as nothing
        (SINGLE, (-2, 8), (4,), Taken((0, 4))),
    ],
    ids=str,
)
def test_a_pod_on_a_machine_with_two_numa_nodes_of_eight(
    policy: NumaPolicy, free: Cpus, cpus: tuple[int, ...], outcome: Taken | Lacking
) -> None:
    assert assign(policy, (8, 8), free, need(*cpus)) == outcome


@pytest.mark.parametrize(
    ("policy", "machine", "cpus", "outcome"),
    [
        (RESTRICTED, ((4, 4, 4, 4), (4, 1, 1, 4)), (8,), Taken((4, 0, 0, 4))),
        (RESTRICTED, ((4, 4, 4, 4), (3, 2, 3, 2)), (8,), Lacking(8, 6, 2)),
        (BEST, ((4, 4, 4, 4), (3, 2, 3, 2)), (8,), Taken((3, 2, 3, 0))),
        (SINGLE, ((8,), (8,)), (8,), Taken((8,))),
        (RESTRICTED, ((2, 6), (2, 3)), (5,), Lacking(5, 3, 1)),
        (SINGLE, ((2, 6), (2, 6)), (5,), Taken((0, 5))),
    ],
    ids=str,
)
def test_other_machines(
    policy: NumaPolicy, machine: tuple[Cpus, Cpus], cpus: Cpus, outcome: Taken | Lacking
) -> None:
    sizes, free = machine
    assert assign(policy, sizes, free, need(*cpus)) == outcome


def test_the_cpus_of_a_pod_are_of_so_many_numa_nodes() -> None:
    assert Taken((4, 0, 1)).spread == 2


def admits(policy: NumaPolicy, sizes: Cpus, free: Cpus, asked: int) -> bool:
    """The kubelet's own rule: hints of all sets of NUMA nodes, merged, and the policy's word."""
    every = range(len(sizes))
    sets = [set(each) for count in every for each in combinations(every, count + 1)]
    least = min((len(s) for s in sets if sum(sizes[at] for at in s) >= asked), default=len(sizes))
    hints = [s for s in sets if sum(free[at] for at in s) >= asked]
    if not hints:
        return False
    preferred = [s for s in hints if len(s) == least]
    if policy is SINGLE:
        return any(len(s) == 1 for s in preferred)
    return bool(preferred) or policy is not RESTRICTED


machines = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=1, max_size=4)


@examples(500)
@given(st.sampled_from(NumaPolicy), machines, st.integers(1, 20))
def test_pods_are_admitted_as_kubelets_do(
    policy: NumaPolicy, machine: list[tuple[int, int]], asked: int
) -> None:
    sizes = tuple(size for size, _ in machine)
    free = tuple(min(size, left) for size, left in machine)
    found = assign(policy, sizes, free, need(asked))
    assert isinstance(found, Taken) is admits(policy, sizes, free, asked)
    if isinstance(found, Taken):
        assert sum(found.cpus) == asked
        assert all(0 <= taken <= left for taken, left in zip(found.cpus, free, strict=True))
        if policy is SINGLE:
            assert found.spread == 1
    else:
        assert found.most < asked
