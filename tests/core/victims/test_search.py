"""Of many units a set is found that no unit can be spared from."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import assume, given

from app.core.victims.exhaustive import MOST_UNITS
from app.core.victims.problem import NoSolution, Solution, WitnessKind
from app.core.victims.search import search
from app.core.victims.solver import solve
from app.core.victims.stock import Stock
from app.core.victims.units import cost_of
from tests.core.victims.clusters import (
    Ask,
    Asked,
    Cap,
    Cluster,
    Group,
    Member,
    Owed,
    clusters,
    gone_with,
)
from tests.scale import examples

MANY = clusters(pods=24, least=13)
WITHOUT_CAPS = clusters(pods=24, least=13, caps=False)


@given(cluster=MANY)
@examples(200)
def test_no_unit_can_be_spared(cluster: Cluster) -> None:
    asked = Asked(cluster)
    problem = asked.problem
    assume(len(problem.units) > MOST_UNITS)
    solution = solve(problem)
    assume(isinstance(solution, Solution))
    assert isinstance(solution, Solution)
    gone = gone_with(solution.units)
    assert cluster.may_go(gone)
    assert cluster.holds(solution.places, gone)
    assert cost_of(solution.units) == cluster.cost(gone)
    assert len(solution.witnesses) == len(solution.units)
    for unit, witness in zip(solution.units, solution.witnesses, strict=True):
        assert cluster.placed(gone - set(unit.pods)) is None
        assert (witness.bound is not None) is (witness.kind is WitnessKind.BOUND)


@given(cluster=WITHOUT_CAPS)
@examples(200)
def test_where_all_may_go_there_is_a_solution_if_anything_makes_room(cluster: Cluster) -> None:
    problem = Asked(cluster).problem
    assume(len(problem.units) > MOST_UNITS)
    everything = frozenset(range(len(cluster.pods)))
    none = isinstance(solve(problem), NoSolution)
    assert none is (cluster.placed(everything) is None)


@given(cluster=MANY)
@examples(100)
def test_what_the_planner_alone_knows_is_kept_as_well(cluster: Cluster) -> None:
    problem = Asked(cluster, tells_limits=False).problem
    assume(len(problem.units) > MOST_UNITS)
    solution = solve(problem)
    everything = frozenset(range(len(cluster.pods)))
    if isinstance(solution, Solution):
        gone = gone_with(solution.units)
        assert cluster.may_go(gone)
        assert cluster.placed(gone) is not None
        for unit in solution.units:
            assert cluster.placed(gone - set(unit.pods)) is None
    elif not cluster.caps and len(cluster.asks) == 1:
        assert cluster.placed(everything) is None


@given(cluster=MANY)
@examples(50)
def test_the_same_problem_has_the_same_solution(cluster: Cluster) -> None:
    assert told(cluster) == told(cluster)


def told(cluster: Cluster) -> object:
    found = solve(Asked(cluster).problem)
    if isinstance(found, NoSolution):
        return found
    return found.units, found.places, found.witnesses


def test_a_hundred_members_of_four_cores_take_four_pods_each() -> None:
    cluster = even(nodes=100, pods=10)
    found = solve(Asked(asking(cluster, Ask((4, 4, 1), 100, frozenset(range(100))))).problem)
    assert isinstance(found, Solution)
    assert len(found.units) == 400
    assert {witness.kind for witness in found.witnesses} == {WitnessKind.BOUND}


def test_a_surplus_pod_leaves_their_budget_to_a_whole_gang_that_is_needed() -> None:
    whole = Group(
        (
            Member(1, (3, 3, 1), 1),
            Member(1, (0, 0, 1), 5),
            Member(1, (3, 1, 1), 4),
            Member(0, (2, 0, 1)),
        ),
        minimum=4,
    )
    shrinks = Group(
        (
            Member(0, (2, 0, 1), 2),
            Member(0, (2, 2, 1), 4),
            Member(1, (4, 2, 1), 4),
            Member(1, (3, 0, 1), 2),
        ),
        minimum=3,
        priority=2,
    )
    alone = (Group((Member(1, (1, 2, 1), 4),)), Group((Member(1, (3, 0, 1), 3),)))
    cluster = Cluster(
        idle=((3, 1, 3), (1, 1, 1)),
        groups=(whole, shrinks, *alone),
        asks=(Ask((4, 4, 1), 2, frozenset({0, 1})),),
        caps=(Cap(frozenset({1, 4}), most=1),),
    )
    assert_found(cluster)


def test_a_gang_that_is_needed_is_not_kept_out_by_one_that_comes_before_it() -> None:
    groups = (
        Group((Member(1, (3, 0, 1), 1),)),
        Group((Member(0, (4, 0, 1)), Member(0, (4, 3, 1)), Member(1, (3, 2, 1), 2)), 2, 1),
        Group((Member(2, (4, 1, 1), 5), Member(2, (4, 3, 1), 4)), 2, 1),
    )
    cluster = Cluster(
        idle=((3, 0, 2), (1, 1, 0), (1, 3, 0)),
        groups=groups,
        asks=(Ask((4, 1, 1), 2, frozenset({1, 2})),),
        caps=(Cap(frozenset({0, 1, 2, 4, 5}), most=2),),
        owed=(Owed(frozenset({2, 3, 4}), (6, 2, 2)),),
    )
    assert_found(cluster)


def assert_found(cluster: Cluster) -> None:
    """The search finds a set that makes room, however few units there are."""
    found = search(Stock.of(Asked(cluster).problem))
    assert isinstance(found, Solution)
    gone = gone_with(found.units)
    assert cluster.may_go(gone)
    assert cluster.holds(found.places, gone)


def even(*, nodes: int, pods: int) -> Sequence[Group]:
    """Single pods of one core, so many on each node."""
    return [Group((Member(node, (1, 1, 1), 1),)) for node in range(nodes) for _ in range(pods)]


def asking(groups: Sequence[Group], *asks: Ask) -> Cluster:
    """Full nodes on which just these run."""
    nodes = 1 + max(member.node for group in groups for member in group.members)
    return Cluster(((0, 0, 100),) * nodes, tuple(groups), asks)


def test_of_a_gang_of_many_shapes_few_units_are_tried_to_be_spared() -> None:
    nodes = frozenset(range(1_500))
    asks = [Ask((2 + at % 2, 2 + at % 2, 1 + at), 1, nodes) for at in range(60)]
    asked = Asked(asking(even(nodes=1_500, pods=3), *asks))
    found = solve(asked.problem)
    assert isinstance(found, Solution)
    assert asked.cluster.holds(found.places, gone_with(found.units))
    kinds = Counter(witness.kind for witness in found.witnesses)
    assert kinds[WitnessKind.UNTRIED]
    assert asked.proofs <= 4_000_000 // (60 * 1_500) + 5
