"""Of a few units the cheapest set that makes room is found, as trying everything has it."""

from hypothesis import assume, given

from app.core.victims.exhaustive import MOST_UNITS
from app.core.victims.problem import Solution, WitnessKind
from app.core.victims.solver import solve
from app.core.victims.units import cost_of
from tests.core.victims.clusters import Asked, Cluster, clusters, gone_with
from tests.scale import examples


@given(cluster=clusters(pods=8))
@examples(200)
def test_the_cost_is_that_of_the_cheapest_set(cluster: Cluster) -> None:
    asked = Asked(cluster)
    problem = asked.problem
    assume(len(problem.units) <= MOST_UNITS)
    solution = solve(problem)
    if not isinstance(solution, Solution):
        assert cluster.cheapest() is None
        return
    gone = gone_with(solution.units)
    assert cluster.may_go(gone)
    assert cluster.holds(solution.places, gone)
    assert cost_of(solution.units) == cluster.cost(gone) == cluster.cheapest()
    assert solution.exact
    assert len(solution.witnesses) == len(solution.units)
    assert all(witness.kind is not WitnessKind.PLANNER for witness in solution.witnesses)
