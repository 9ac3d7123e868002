"""Rules about other pods, folded for the pod that has them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.shape import LabelSelector, Operator, PodTerm, Requirement, Spread
from app.wire.errors import DecodeError
from tests.wire.manifests import decoded

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
APP = {"matchLabels": {"app": "web"}}
APP_READ = Requirement("app", Operator.IN, ("web",))


def one_term(term: dict[str, Any], *, labels: dict[str, str] | None = None) -> PodTerm:
    found = decoded(
        meta={"namespace": "own", "labels": labels or {}},
        affinity={"podAffinity": {REQUIRED: [{"topologyKey": "zone"} | term]}},
    )
    return found.shape.pod_affinity[0]


def constraint(**fields: Any) -> dict[str, Any]:
    base = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return base | {"labelSelector": APP} | fields


def one_spread(*, labels: dict[str, str] | None = None, **fields: Any) -> Spread:
    found = decoded(meta={"labels": labels or {}}, topologySpreadConstraints=[constraint(**fields)])
    return found.shape.spread[0]


def test_the_four_kinds_of_terms_are_told_apart() -> None:
    def rules(key: str) -> dict[str, Any]:
        return {
            REQUIRED: [{"topologyKey": f"{key}-required", "labelSelector": APP}],
            PREFERRED: [
                {
                    "weight": 7,
                    "podAffinityTerm": {"topologyKey": f"{key}-preferred", "labelSelector": APP},
                }
            ],
        }

    shape = decoded(affinity={"podAffinity": rules("in"), "podAntiAffinity": rules("out")}).shape
    assert [term.topology_key for term in shape.pod_affinity] == ["in-required"]
    assert [term.topology_key for term in shape.pod_anti_affinity] == ["out-required"]
    assert [(weight, term.topology_key) for weight, term in shape.preferred_pods] == [
        (7, "in-preferred"),
        (-7, "out-preferred"),
    ]
    assert shape.looks_at_pods


@pytest.mark.parametrize(
    ("term", "names", "selector"),
    [
        ({}, ("own",), None),
        ({"namespaces": [], "namespaceSelector": None}, ("own",), None),
        ({"namespaces": ["b", "a", "b"]}, ("a", "b"), None),
        ({"namespaceSelector": {}}, (), LabelSelector()),
        ({"namespaces": ["a"], "namespaceSelector": APP}, ("a",), LabelSelector((APP_READ,))),
    ],
)
def test_namespaces_default_to_the_pods_own(
    term: dict[str, Any], names: tuple[str, ...], selector: LabelSelector | None
) -> None:
    found = one_term(term)
    assert (found.namespaces, found.namespace_selector) == (names, selector)


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert one_term({}).selector is None
    assert one_term({"labelSelector": None}).selector is None
    assert one_term({"labelSelector": {}}).selector == LabelSelector()


def test_label_keys_stand_for_the_pods_own_values() -> None:
    found = one_term(
        {
            "labelSelector": APP,
            "matchLabelKeys": ["rev", "missing"],
            "mismatchLabelKeys": ["team"],
        },
        labels={"rev": "7", "team": "red", "app": "web"},
    )
    assert found.selector == LabelSelector(
        (
            APP_READ,
            Requirement("rev", Operator.IN, ("7",)),
            Requirement("team", Operator.NOT_IN, ("red",)),
        )
    )


def test_label_keys_that_the_api_server_has_folded_already_count_once() -> None:
    folded = {"matchExpressions": [{"key": "rev", "operator": "In", "values": ["7"]}]}
    found = one_term({"labelSelector": folded, "matchLabelKeys": ["rev"]}, labels={"rev": "7"})
    assert found.selector == LabelSelector((Requirement("rev", Operator.IN, ("7",)),))


def test_what_the_api_server_has_folded_outlives_a_change_of_the_label() -> None:
    folded = {
        "matchExpressions": [
            {"key": "rev", "operator": "In", "values": ["7"]},
            {"key": "team", "operator": "NotIn", "values": ["red"]},
        ]
    }
    keys = {"matchLabelKeys": ["rev"], "mismatchLabelKeys": ["team"]}
    found = one_term({"labelSelector": folded, **keys}, labels={"rev": "8", "team": "blue"})
    assert found.selector == LabelSelector(
        (Requirement("rev", Operator.IN, ("7",)), Requirement("team", Operator.NOT_IN, ("red",)))
    )


def test_a_spread_constraint_has_the_defaults_of_the_api() -> None:
    assert one_spread() == Spread(2, "zone", True, LabelSelector((APP_READ,)))
    assert one_spread(minDomains=None).min_domains == 1


def test_a_spread_constraint_says_what_counts() -> None:
    found = one_spread(
        labels={"rev": "7"},
        whenUnsatisfiable="ScheduleAnyway",
        minDomains=3,
        nodeAffinityPolicy="Ignore",
        nodeTaintsPolicy="Honor",
        matchLabelKeys=["rev"],
    )
    assert found == Spread(
        2,
        "zone",
        False,
        LabelSelector((APP_READ, Requirement("rev", Operator.IN, ("7",)))),
        min_domains=3,
        honor_affinity=False,
        honor_taints=True,
    )


def test_only_rules_about_pods_put_the_pods_identity_into_its_shape() -> None:
    labels = {"b": "2", "a": "1"}
    alone = decoded(meta={"labels": labels}).shape
    assert alone.spread_identity is None
    assert alone is decoded(meta={"labels": {"a": "other"}}).shape
    spread = decoded(meta={"labels": labels}, topologySpreadConstraints=[constraint()]).shape
    assert spread.spread_identity == ("default", (("a", "1"), ("b", "2")))
    other = decoded(meta={"labels": {"a": "x"}}, topologySpreadConstraints=[constraint()]).shape
    assert spread != other


@pytest.mark.parametrize("absent", [None, []])
def test_no_constraints_are_no_rules(absent: Any) -> None:
    assert decoded(topologySpreadConstraints=absent).shape is decoded().shape


def test_equal_rules_are_one_shape_in_one_namespace_only() -> None:
    spec = {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "zone"}]}}}
    one, two = decoded(meta={"name": "a"}, **spec), decoded(meta={"name": "b"}, **spec)
    assert one.shape is two.shape
    assert one.shape != decoded(meta={"namespace": "other"}, **spec).shape


def test_a_selector_that_cannot_be_read_names_the_field() -> None:
    bad = {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}
    with pytest.raises(DecodeError) as caught:
        one_spread(labelSelector=bad)
    assert str(caught.value) == (
        "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].operator: "
        '"Gt" is not an operator'
    )


names = st.sampled_from("abc")
expressions = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, "values": values},
    names,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.lists(names, max_size=3),
)


def holds(expression: dict[str, Any], labels: dict[str, str]) -> bool:
    there = expression["key"] in labels
    match expression["operator"]:
        case "In":
            return there and labels[expression["key"]] in expression["values"]
        case "NotIn":
            return not there or labels[expression["key"]] not in expression["values"]
        case "Exists":
            return there
    return not there


@given(
    st.dictionaries(names, names),
    st.lists(expressions, max_size=3),
    st.dictionaries(names, names),
)
def test_a_selector_selects_what_all_its_parts_select(
    match: dict[str, str], parts: list[dict[str, Any]], labels: dict[str, str]
) -> None:
    selector = one_term(
        {"labelSelector": {"matchLabels": match, "matchExpressions": parts}}
    ).selector
    assert selector is not None
    expected = match.items() <= labels.items() and all(holds(part, labels) for part in parts)
    assert selector.matches(labels) == expected
