"""pdb and conformance: what they protect is protected with and without them, in all tiers."""

from typing import Any

import pytest

from app.core.policy import Policies
from app.model.conf import PluginConf
from app.model.disruption import DisruptionBudget
from app.model.eviction import EvictionAction
from app.model.running import Protection
from app.model.shape import LabelSelector, Operator, Requirement
from tests.builders import make_queue
from tests.core.actions.rigs import Tiers, cores, gang_of, policies
from tests.core.contended import contended, running_gang, victims

WHOLE = PluginConf("gang", switches={"enablePreemptable": False, "enableReclaimable": False})
BARE: Tiers = (("priority", WHOLE), ("predicates", "proportion"))
ABOVE: Tiers = (("pdb", "conformance"), *BARE)
BESIDE: Tiers = (("pdb", "conformance", "priority", WHOLE), ("predicates", "proportion"))
BELOW: Tiers = (*BARE, ("pdb", "conformance"))
CONFS = pytest.mark.parametrize(
    "tiers", [BARE, ABOVE, BESIDE, BELOW], ids=["without", "above", "beside", "below"]
)
ACTIONS = pytest.mark.parametrize("action", ["preempt", "reclaim", "gangpreempt", "gangreclaim"])
WEB = LabelSelector((Requirement("app", Operator.IN, ("web",)),))
QUEUES = (
    make_queue("mine", weight=1),
    make_queue("theirs", weight=1),
)


def going(tiers: Tiers, action: str, count: int, **fields: Any) -> int:
    """How many of four single pods of one core go for a gang that wants ``count`` of them.

    They hold the whole cluster, and for a reclaim they are of the other queue.
    """
    reclaims = EvictionAction(action).reclaims
    budgets = fields.pop("budgets", ())
    low = [
        running_gang(
            f"low{n}", [n % 2], queue="theirs" if reclaims else "mine", solo=True, **fields
        )
        for n in range(4)
    ]
    by: Policies = policies(tiers, ("enqueue", "allocate", action))
    outcome = contended(
        gang_of("new", count, queue="mine", priority=9),
        running=low,
        nodes=cores(2, 2),
        queues=QUEUES,
        usage={},
        by=by,
        budgets=budgets,
    )
    return len(victims(outcome))


def budget(allowed: int, selector: LabelSelector | None = WEB, **fields: Any) -> DisruptionBudget:
    return DisruptionBudget(fields.pop("namespace", "default"), "b", selector, allowed, **fields)


@CONFS
@ACTIONS
@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_no_more_pods_go_than_a_budget_allows(tiers: Tiers, action: str, allowed: int) -> None:
    """Two are asked for, together: where fewer may go none does."""
    held = {"pod": {"labels": {"app": "web"}}, "budgets": (budget(allowed),)}
    assert going(tiers, action, 2, **held) == (2 if allowed == 2 else 0)


@CONFS
@pytest.mark.parametrize(
    ("labels", "made", "goes"),
    [
        pytest.param({"app": "web"}, budget(0), 0, id="selected"),
        pytest.param({"app": "db"}, budget(0), 2, id="not selected"),
        pytest.param({}, budget(0), 2, id="no labels, not selected"),
        pytest.param({}, budget(0, LabelSelector()), 0, id="no labels, all selected"),
        pytest.param({}, budget(2, LabelSelector()), 2, id="no labels, and enough allowed"),
        pytest.param({"app": "web"}, budget(0, None), 2, id="a budget that selects nothing"),
        pytest.param({"app": "web"}, budget(0, namespace="other"), 2, id="of another namespace"),
        pytest.param(
            {"app": "web"},
            budget(0, disrupted=frozenset({"low0-0", "low1-0", "low2-0", "low3-0"})),
            2,
            id="disrupted by now",
        ),
    ],
)
def test_a_budget_protects_the_pods_that_it_selects(
    tiers: Tiers, labels: dict[str, str], made: DisruptionBudget, goes: int
) -> None:
    assert going(tiers, "preempt", 2, pod={"labels": labels}, budgets=(made,)) == goes


@CONFS
def test_each_of_several_budgets_holds(tiers: Tiers) -> None:
    both = {"pod": {"labels": {"app": "web"}}}
    assert going(tiers, "preempt", 2, budgets=(budget(2), budget(1)), **both) == 0
    assert going(tiers, "preempt", 1, budgets=(budget(2), budget(1)), **both) == 1


@CONFS
@ACTIONS
def test_pods_that_the_cluster_itself_needs_never_go(tiers: Tiers, action: str) -> None:
    assert going(tiers, action, 2, protected=Protection.SYSTEM) == 0
    assert going(tiers, action, 2) == 2
