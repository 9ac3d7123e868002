"""A certificate of what the solver decides is accepted by the independent checker."""

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import assume, given

from app.cli.certificates import check
from tests.core.victims.decisions import (
    NOW,
    OTHER,
    OWN,
    RECLAIM,
    Case,
    Decided,
    Runner,
    cases,
    decided,
)
from tests.scale import examples

FULL = Case((4,), (Runner("low", (0, 0, 0, 0)),), wanted=(2,))
"""Four single pods of a core on the only node, and a pod of two that goes first."""
TIGHT = Case((5, 5), (Runner("a", (0,)), Runner("b", (1,), priority=1)), wanted=(2, 3, 3))
"""Two nodes with room for one of three cores each; the one of two needs a pod to go."""


def made(case: Case, **how: Any) -> Decided:
    """The decision; there must be one."""
    found = decided(case, **how)
    assert found is not None
    return found


def witnesses(found: Decided) -> list[dict[str, Any]]:
    """Those of the units that go."""
    return [unit["witness"] for unit in found.certificate["units"] if unit["witness"]]


@given(case=cases())
@examples(100)
def test_the_certificate_of_a_decision_is_accepted(case: Case) -> None:
    found = decided(case)
    assume(found is not None)
    assert found is not None
    assert check(found.certificate) == []


@given(case=cases(least=16, pods=24))
@examples(30)
def test_so_is_that_of_a_decision_among_many_pods(case: Case) -> None:
    found = decided(case)
    assume(found is not None)
    assert found is not None
    assert check(found.certificate) == []


def test_a_certificate_tells_what_the_decision_rests_on() -> None:
    certificate = made(FULL).certificate
    assert certificate["action"] == "preempt"
    assert certificate["time"] == NOW
    assert certificate["victims"] == ["uid-low-0", "uid-low-1"]
    assert certificate["cost"] == {"gangs": 0, "priority": 0, "lostWork": 500_000_000, "pods": 2}
    assert certificate["queues"]["own"]["before"] == {"cpu": 4000, "pods": 4}
    assert certificate["queues"]["own"]["after"] == {"cpu": 4000, "pods": 3}
    assert certificate["gangs"]["default/low"]["left"] == 2
    [place] = certificate["preemptor"]["places"]
    assert (place["name"], place["node"]) == ("new2-0", "n0")
    assert certificate["nodes"]["n0"]["used"] == {"cpu": 4000, "pods": 4}


def test_a_unit_is_needed_where_the_other_victims_leave_too_few_places() -> None:
    bound = {"kind": "bound", "bound": "members", "of": "0", "resource": "", "have": 0, "need": 1}
    assert witnesses(made(FULL)) == [bound, bound]


def test_a_unit_is_needed_where_a_queue_would_hold_more_than_its_limit() -> None:
    found = made(replace(FULL, cores=(8,), limit=4000))
    assert found.certificate["victims"] == ["uid-low-0", "uid-low-1"]
    limit = {"kind": "bound", "bound": "queue", "of": "own", "resource": "cpu"}
    assert witnesses(found) == [limit | {"have": 1000, "need": 2000}] * 2
    assert check(found.certificate) == []


def test_where_no_bound_tells_it_trying_all_cheaper_sets_does() -> None:
    found = made(TIGHT)
    assert witnesses(found) == [{"kind": "exhaustive"}]
    assert found.certificate["victims"] == ["uid-a-0"]
    assert len(found.certificate["units"]) == 2
    assert check(found.certificate) == []


def test_what_rests_on_the_planner_is_its_word() -> None:
    found = made(TIGHT, refused=[frozenset({"a-0"})])
    assert found.certificate["victims"] == ["uid-b-0"]
    assert witnesses(found) == [{"kind": "planner"}]
    assert check(found.certificate) == []


def test_a_budget_is_told_with_what_it_covers() -> None:
    found = made(replace(FULL, caps=(("low", 2),)))
    [budget] = found.certificate["budgets"]
    assert budget["allowed"] == 2
    assert Counter(found.certificate["victims"]) <= Counter(budget["covers"])


def test_a_queue_that_gives_back_is_told_with_what_it_deserves() -> None:
    owing = Runner("owing", (0, 0, 0, 0), queue=OTHER)
    found = made(Case((4,), (owing,), wanted=(2,), action=RECLAIM, deserved=(2, 2)))
    assert found.certificate["queues"][OTHER]["deserved"] == {"cpu": 2000}
    assert found.certificate["queues"][OWN]["after"] == {"cpu": 2000, "pods": 1}
    assert check(found.certificate) == []
