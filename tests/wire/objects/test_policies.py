"""Priority classes, namespaces, quotas, budgets, device classes and leases."""

from typing import Any

import pytest

from app.model.lease import Lease
from app.model.shape import LabelSelector, Operator, Requirement
from app.model.workload import PriorityClass
from app.wire.errors import DecodeError
from app.wire.objects.policies import (
    decode_budget,
    decode_device_class,
    decode_lease,
    decode_namespace,
    decode_priority_class,
    decode_quota,
)
from tests.wire.manifests import encode, metadata


def test_a_priority_class_has_a_value_and_a_policy() -> None:
    body = {"metadata": metadata("high"), "value": 1000, "globalDefault": True}
    assert decode_priority_class(encode(body)) == PriorityClass("high", 1000, is_default=True)
    never = body | {"preemptionPolicy": "Never", "globalDefault": None}
    assert decode_priority_class(encode(never)) == PriorityClass("high", 1000, preempts=False)


def test_a_namespace_has_labels_and_the_annotations_that_are_read() -> None:
    notes = {"scheduling.volcano.sh/queue-name": "q", "other": "x"}
    body = {"metadata": metadata("team", labels={"a": "b"}, annotations=notes)}
    found = decode_namespace(encode(body))
    assert (found.name, found.labels) == ("team", {"a": "b"})
    assert found.annotations == {"scheduling.volcano.sh/queue-name": "q"}


def test_a_quota_has_the_units_of_its_resources() -> None:
    hard = {"requests.cpu": "2", "limits.memory": "1Gi", "pods": "10", "count/jobs.batch": "3"}
    used = {"requests.cpu": "500m", "pods": "1"}
    body = {"metadata": metadata("quota"), "status": {"hard": hard, "used": used}}
    found = decode_quota(encode(body))
    assert dict(found.hard) == {
        "requests.cpu": 2000,
        "limits.memory": 1 << 30,
        "pods": 10,
        "count/jobs.batch": 3,
    }
    assert dict(found.used) == {"requests.cpu": 500, "pods": 1}
    assert (found.namespace, found.name, found.scoped) == ("default", "quota", False)


def test_a_quota_that_nobody_has_counted_yet_has_its_spec() -> None:
    body = {"metadata": metadata("quota"), "spec": {"hard": {"pods": "1"}}}
    found = decode_quota(encode(body))
    assert (found.hard, found.used) == ((("pods", 1),), ())


@pytest.mark.parametrize(
    ("spec", "scoped"),
    [
        ({"scopes": ["BestEffort"]}, True),
        ({"scopeSelector": {"matchExpressions": []}}, True),
        ({"scopes": [], "scopeSelector": None}, False),
    ],
)
def test_a_quota_with_scopes_says_so(spec: dict[str, Any], scoped: bool) -> None:
    assert decode_quota(encode({"metadata": metadata("quota"), "spec": spec})).scoped is scoped


def test_a_budget_has_what_it_still_allows() -> None:
    body = {
        "metadata": metadata("budget"),
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": {
            "disruptionsAllowed": 2,
            "disruptedPods": {"p1": "2026-11-21T04:32:15Z"},
        },
    }
    found = decode_budget(encode(body))
    assert found.selector == LabelSelector((Requirement("app", Operator.IN, ("web",)),))
    assert (found.namespace, found.name) == ("default", "budget")
    assert (found.allowed, found.disrupted) == (2, frozenset({"p1"}))


@pytest.mark.parametrize(
    ("spec", "selector"),
    [(None, None), ({}, None), ({"selector": None}, None), ({"selector": {}}, LabelSelector())],
)
def test_a_budget_without_a_selector_selects_nothing(
    spec: Any, selector: LabelSelector | None
) -> None:
    found = decode_budget(encode({"metadata": metadata("budget"), "spec": spec}))
    assert (found.selector, found.allowed) == (selector, 0)


def test_a_lease_says_who_holds_it_and_since_when() -> None:
    spec = {
        "holderIdentity": "host_1",
        "renewTime": "1970-01-01T00:01:00.500000Z",
        "leaseDurationSeconds": 15,
    }
    found = decode_lease(encode({"metadata": metadata("volcano"), "spec": spec}))
    assert found == Lease("default", "volcano", "host_1", 60.5, 15)


@pytest.mark.parametrize("spec", [None, {}, {"holderIdentity": None, "renewTime": None}])
def test_a_lease_that_nobody_holds_is_empty(spec: Any) -> None:
    found = decode_lease(encode({"metadata": metadata("volcano"), "spec": spec}))
    assert found == Lease("default", "volcano", "", 0.0, 0)


@pytest.mark.parametrize(
    ("decode", "body", "message"),
    [
        (decode_priority_class, {"value": "1"}, "value: Expected `int | null`, got `str`"),
        (decode_quota, {"spec": {"hard": {"pods": "x"}}}, 'spec.hard.pods: "x" is not a quantity'),
        (
            decode_quota,
            {"status": {"used": {"pods": "x"}}},
            'status.used.pods: "x" is not a quantity',
        ),
        (
            decode_budget,
            {"spec": {"selector": {"matchExpressions": [{"operator": "Gt"}]}}},
            'spec.selector.matchExpressions[0].operator: "Gt" is not an operator',
        ),
        (
            decode_lease,
            {"spec": {"leaseDurationSeconds": "15"}},
            "spec.leaseDurationSeconds: Expected `int | null`, got `str`",
        ),
    ],
)
def test_what_cannot_be_read_names_the_field(decode: Any, body: Any, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(encode({"metadata": metadata("x")} | body))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({"extendedResourceName": "example.com/gpu"}, {"example.com/gpu"}),
        ({"selectors": []}, set()),
        (None, set()),
    ],
)
def test_a_device_class_maps_the_resource_it_names_and_its_own_name(
    spec: Any, names: set[str]
) -> None:
    found = decode_device_class(encode({"metadata": metadata("gpu"), "spec": spec}))
    assert found.name == "gpu"
    assert found.resources == names | {"deviceclass.resource.kubernetes.io/gpu"}
