"""The checker accepts a certificate of what the solver decides, and no other."""

import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

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
"""Four pods of a core on the only node, of a group that needs one, and a pod of two."""
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


def test_a_group_of_several_pods_ends_with_the_last_of_them() -> None:
    low = Runner("low", (0, 0))
    found = made(Case((2,), (low,), wanted=(2,)))
    assert [unit["kind"] for unit in found.certificate["units"]] == ["gang"]
    assert found.certificate["cost"]["gangs"] == 1
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


# --- what is rejected -----------------------------------------------------------------------------

Value = dict[str, Any]


def numbers(certificate: Value) -> Iterator[tuple[Value, str]]:
    """Where the numbers are of which each follows from others."""
    of_pods = [pod for uid, pod in certificate["pods"].items() if uid in certificate["victims"]]
    for part in (
        certificate["cost"],
        certificate["preemptor"]["minimum"],
        *(gang["has"] for gang in certificate["gangs"].values()),
        *(pod["request"] for pod in of_pods),
        *(shape["request"] for shape in certificate["shapes"]),
        *(queue[when] for queue in certificate["queues"].values() for when in ("before", "after")),
    ):
        yield from ((part, key) for key, value in part.items() if isinstance(value, int))
    yield from ((gang, "left") for gang in certificate["gangs"].values())
    yield from ((pod, "lostWork") for pod in certificate["pods"].values())
    for unit in certificate["units"]:
        if unit["witness"] and unit["witness"]["kind"] == "bound":
            yield from ((unit["witness"], key) for key in ("have", "need"))


@given(case=cases(), data=st.data())
@examples(200)
def test_no_number_can_be_changed(case: Case, data: st.DataObject) -> None:
    found = decided(case)
    assume(found is not None)
    assert found is not None
    places = list(numbers(found.certificate))
    part, key = places[data.draw(st.integers(0, len(places) - 1))]
    part[key] += data.draw(st.sampled_from((-1000, -2, 2, 1000)))
    assert check(found.certificate) != []


@given(case=cases(), data=st.data())
@examples(100)
def test_no_victim_can_be_left_out(case: Case, data: st.DataObject) -> None:
    found = decided(case)
    assume(found is not None)
    assert found is not None
    certificate = found.certificate
    gone = [at for at, unit in enumerate(certificate["units"]) if unit["witness"]]
    spare(certificate, data.draw(st.sampled_from(gone)))
    assert any(what.startswith(("lacks room", "holds")) for _, what in check(certificate))


def spare(certificate: Value, at: int) -> None:
    """Let one unit stay, and make all sums right."""
    unit = certificate["units"][at]
    unit["witness"] = None
    certificate["victims"] = [uid for uid in certificate["victims"] if uid not in unit["pods"]]
    pods = [certificate["pods"][uid] for uid in certificate["victims"]]
    count_again(certificate, [certificate["pods"][uid] for uid in unit["pods"]], sign=1)
    certificate["cost"] = {
        "gangs": sum(
            u["kind"] == "gang" and u["witness"] is not None for u in certificate["units"]
        ),
        "priority": max([pod["priority"] for pod in pods], default=-(1 << 31)),
        "lostWork": sum(pod["lostWork"] for pod in pods),
        "pods": len(pods),
    }


def count_again(certificate: Value, pods: list[Value], *, sign: int) -> None:
    """The sums when these pods stay, or go (-1)."""
    for pod in pods:
        certificate["gangs"][pod["gang"]]["left"] += sign
        after = Counter(certificate["queues"][pod["queue"]]["after"])
        after.update({name: sign * amount for name, amount in pod["request"].items()})
        certificate["queues"][pod["queue"]]["after"] = dict(after)


def test_no_needless_victim_can_be_added() -> None:
    certificate = made(replace(FULL, wanted=(1,))).certificate
    [unit] = certificate["units"]
    [uid] = unit["pods"]
    for witness in ({"kind": "exhaustive"}, unit["witness"], unit["witness"] | {"have": 1}):
        more = copy.deepcopy(certificate)
        more["pods"]["another"] = more["pods"][uid]
        more["units"].append({"kind": "surplus", "pods": ["another"], "witness": witness})
        more["victims"].append("another")
        more["cost"]["pods"] += 1
        more["cost"]["lostWork"] *= 2
        count_again(more, [more["pods"]["another"]], sign=-1)
        found = check(more)
        assert found
        assert all("is not proven to be needed: " in text for _, text in found)


@given(case=cases(), data=st.data())
@examples(100)
def test_no_place_can_be_on_a_full_node(case: Case, data: st.DataObject) -> None:
    found = decided(replace(case, cores=(*case.cores, 1), foreign={len(case.cores): 1}))
    assume(found is not None)
    assert found is not None
    certificate = found.certificate
    full = f"n{len(case.cores)}"
    usage = {"cpu": 1000, "pods": 110}
    nothing: Value = {}
    certificate["nodes"][full] = {
        "allocatable": usage,
        "used": {"cpu": 1000, "pods": 1},
        "releasing": nothing,
        "pledged": nothing,
    }
    for shape in certificate["shapes"]:
        shape["nodes"].append(full)
    assert check(certificate) == []
    place = data.draw(st.sampled_from(certificate["preemptor"]["places"]))
    place["node"] = full
    assert [where for where, _ in check(certificate)] == [f"nodes[{full}]"]


def test_no_victim_has_the_priority_of_the_preemptor() -> None:
    certificate = made(FULL).certificate
    certificate["gangs"]["default/low"]["priority"] = certificate["cost"]["priority"] = 10
    where = ["pods[default/low-0]", "pods[default/low-1]"]
    assert [at for at, text in check(certificate) if text.startswith("priority 10")] == where


def test_no_queue_gives_back_what_it_deserves() -> None:
    owing = Runner("owing", (0, 0, 0, 0), queue=OTHER)
    found = made(Case((4,), (owing,), wanted=(2,), action=RECLAIM, deserved=(2, 2)))
    certificate = found.certificate
    certificate["queues"][OTHER]["deserved"]["cpu"] = 3000
    text = "queue other holds no more than it deserves: cpu 3000, pods 3 of cpu 3000"
    assert check(certificate) == [("pods[default/owing-1]", text)]


def test_no_queue_reclaims_more_than_it_deserves() -> None:
    owing = Runner("owing", (0, 0, 0, 0), queue=OTHER)
    found = made(Case((4,), (owing,), wanted=(2,), action=RECLAIM, deserved=(2, 2)))
    found.certificate["queues"][OWN]["deserved"]["cpu"] = 1999
    text = "its queue holds more than it deserves afterwards: cpu 2000, pods 1 of cpu 1999"
    assert check(found.certificate) == [("preemptor", text)]


def test_no_queue_that_is_not_reclaimable_gives_anything() -> None:
    owing = Runner("owing", (0, 0), queue=OTHER)
    found = made(Case((2,), (owing,), wanted=(1,), action=RECLAIM, deserved=(2, 0)))
    found.certificate["queues"][OTHER]["reclaimable"] = False
    text = "is in queue other, of which nothing is reclaimed"
    assert check(found.certificate) == [("pods[default/owing-0]", text)]


def test_no_more_victims_of_a_budget_go_than_it_allows() -> None:
    certificate = made(replace(FULL, caps=(("low", 2),))).certificate
    certificate["budgets"][0]["allowed"] = 1
    text = "allows 1 evictions, and covers 2 victims"
    assert check(certificate) == [("budgets[default/pdb-low]", text)]


def test_no_gang_is_left_in_part() -> None:
    certificate = made(FULL).certificate
    certificate["gangs"]["default/low"]["minimum"]["members"] = 3
    text = "is left in part: 2 of 3 members"
    assert check(certificate) == [("gangs[default/low]", text)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bound", False),
        ("preemptable", False),
        ("releasing", True),
        ("foreign", True),
        ("static", True),
        ("daemonSet", True),
        ("namespace", "kube-system"),
        ("priorityClass", "system-node-critical"),
        ("mayGoFrom", NOW + 1),
        ("rule", ""),
        ("queue", OTHER),
    ],
)
def test_no_protected_pod_is_a_victim(field: str, value: object) -> None:
    certificate = made(replace(FULL, wanted=(1,))).certificate
    certificate["queues"][OTHER] = certificate["queues"][OWN] | {"before": {}, "after": {}}
    assert check(certificate) == []
    [uid] = certificate["victims"]
    certificate["pods"][uid][field] = value
    assert any(where.startswith("pods[") for where, _ in check(certificate))


def test_a_cheaper_set_of_units_refutes_that_all_were_tried() -> None:
    certificate = made(TIGHT).certificate
    first, second = certificate["units"]
    first["witness"], second["witness"] = None, first["witness"]
    certificate["victims"] = second["pods"]
    certificate["cost"]["priority"] = 1
    count_again(certificate, [certificate["pods"]["uid-a-0"]], sign=1)
    count_again(certificate, [certificate["pods"]["uid-b-0"]], sign=-1)
    for place in certificate["preemptor"]["places"]:
        place["node"] = {"n0": "n1", "n1": "n0"}[place["node"]]
    assert check(certificate) == [("units[1]", "is not proven to be needed: units [0] cost less")]
