"""Node affinity, and the pin that is taken out of it."""

from typing import Any

import pytest

from app.model.shape import AffinityLayout, NodeTerm, Operator, PodShape, Requirement
from app.wire.errors import DecodeError
from tests.wire.manifests import decoded

GATES = [{"name": "pumice.sh/plan"}]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def name_in(*nodes: str, operator: str = "In") -> dict[str, Any]:
    return {"key": "metadata.name", "operator": operator, "values": list(nodes)}


def term(*, fields: list[Any] | None = None, labels: list[Any] | None = None) -> dict[str, Any]:
    parts = {"matchFields": fields, "matchExpressions": labels}
    return {key: value for key, value in parts.items() if value is not None}


def node_affinity(*terms: Any) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def read(*terms: Any, **spec: Any) -> tuple[str, PodShape]:
    found = decoded(affinity=node_affinity(*terms), **spec)
    return found.pinned, found.shape


ZONE = {"key": "zone", "operator": "In", "values": ["a", "b"]}
DISK = {"key": "disk", "operator": "Exists"}
ZONE_READ = Requirement("zone", Operator.IN, ("a", "b"))
DISK_READ = Requirement("disk", Operator.EXISTS)


def test_a_lone_pin_leaves_no_rule_behind() -> None:
    pinned, shape = read(term(fields=[name_in("n1")]))
    assert pinned == "n1"
    assert shape.required_terms is None


def test_pods_that_differ_in_their_pin_alone_have_one_shape() -> None:
    one, two = (decoded(affinity=node_affinity(term(fields=[name_in(n)]))) for n in ("n1", "n2"))
    assert one.shape is two.shape
    assert one.shape is decoded().shape
    assert (one.pinned, two.pinned) == ("n1", "n2")


def test_what_stands_beside_a_pin_is_kept() -> None:
    pinned, shape = read(
        term(fields=[name_in("n1")], labels=[ZONE]), term(fields=[name_in("n1")], labels=[DISK])
    )
    assert pinned == "n1"
    assert shape.required_terms == (NodeTerm((ZONE_READ,)), NodeTerm((DISK_READ,)))


def test_a_term_that_only_pins_makes_its_alternatives_meaningless() -> None:
    pinned, shape = read(term(fields=[name_in("n1")]), term(fields=[name_in("n1")], labels=[ZONE]))
    assert pinned == "n1"
    assert shape.required_terms is None


@pytest.mark.parametrize(
    "terms",
    [
        [term(fields=[name_in("n1")]), term(labels=[ZONE])],
        [term(fields=[name_in("n1")]), term(fields=[name_in("n2")])],
        [term(fields=[name_in("n1"), name_in("n2")])],
        [term(fields=[name_in("n1", "n2")])],
        [term(fields=[name_in("n1", operator="NotIn")])],
        [term(labels=[ZONE])],
    ],
    ids=["other-term", "two-nodes", "contradiction", "choice", "not-in", "no-fields"],
)
def test_what_is_no_single_node_stays_a_rule(terms: list[Any]) -> None:
    pinned, shape = read(*terms)
    assert pinned == ""
    assert shape.required_terms is not None
    assert len(shape.required_terms) == len(terms)


def test_a_node_to_avoid_stays_beside_a_pin() -> None:
    avoid = name_in("n2", operator="NotIn")
    pinned, shape = read(term(fields=[name_in("n1"), avoid, name_in("n1")]))
    assert pinned == "n1"
    rest = Requirement("metadata.name", Operator.NOT_IN, ("n2",))
    assert shape.required_terms == (NodeTerm(fields=(rest,)),)


@pytest.mark.parametrize("empty", [{}, None, term(fields=[], labels=[])])
def test_an_empty_term_matches_nothing(empty: Any) -> None:
    assert read(empty) == ("", read(empty)[1])
    assert read(empty)[1].required_terms == (NodeTerm(),)
    pinned, shape = read(empty, term(fields=[name_in("n1")], labels=[ZONE]))
    assert (pinned, shape.required_terms) == ("n1", (NodeTerm((ZONE_READ,)),))


def test_no_terms_at_all_match_nothing() -> None:
    assert decoded(affinity=node_affinity()).shape.required_terms == ()


def test_preferences_have_weights_and_empty_ones_are_dropped() -> None:
    preferences = [
        {"weight": 5, "preference": term(labels=[ZONE])},
        {"weight": 1, "preference": {}},
        {"weight": 0, "preference": term(labels=[DISK])},
    ]
    found = decoded(affinity={"nodeAffinity": {PREFERRED: preferences}}).shape
    assert found.preferred_terms == ((5, NodeTerm((ZONE_READ,))),)
    assert found.required_terms is None


@pytest.mark.parametrize("absent", [None, {}, {"nodeAffinity": None}, {"podAffinity": None}])
def test_an_affinity_without_rules_is_none(absent: Any) -> None:
    assert decoded(affinity=absent).shape is decoded().shape


@pytest.mark.parametrize(
    ("affinity", "layout"),
    [
        (None, None),
        ({}, AffinityLayout()),
        ({"podAffinity": {}}, AffinityLayout()),
        ({"nodeAffinity": {}}, AffinityLayout(node_affinity=True)),
        ({"nodeAffinity": {PREFERRED: []}}, AffinityLayout(node_affinity=True)),
        (
            node_affinity(term(labels=[ZONE]), {}, term(fields=[name_in("n1")])),
            AffinityLayout(
                node_affinity=True,
                required=True,
                terms_with_fields=(False, False, True),
                empty_terms=(1,),
            ),
        ),
    ],
)
def test_behind_our_gate_the_layout_is_kept(affinity: Any, layout: AffinityLayout | None) -> None:
    assert decoded(affinity=affinity, schedulingGates=GATES).shape.affinity_layout == layout
    assert decoded(affinity=affinity).shape.affinity_layout is None


@pytest.mark.parametrize(
    ("affinity", "message"),
    [
        (
            node_affinity(term(labels=[{"key": "a", "operator": "Near"}])),
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"
            '.operator: "Near" is not an operator',
        ),
        (
            {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": term(labels=[{}])}]}},
            f"spec.affinity.nodeAffinity.{PREFERRED}[0].preference.matchExpressions[0].operator",
        ),
        (
            {"nodeAffinity": {PREFERRED: [{"weight": 2**31, "preference": term(labels=[ZONE])}]}},
            f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight: Expected `int` <= 2147483647",
        ),
        ({"nodeAffinity": []}, "spec.affinity.nodeAffinity: Expected `object | null`"),
        ({"podAffinity": {REQUIRED: {}}}, f"spec.affinity.podAffinity.{REQUIRED}: Expected"),
    ],
)
def test_an_affinity_that_cannot_be_read_names_the_field(affinity: Any, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decoded(affinity=affinity)
    assert str(caught.value).startswith(message)
