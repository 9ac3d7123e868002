"""Which fields stock kinds have and of what types, and what becomes of others."""

from __future__ import annotations

import pytest

from app.main.adapters.stock_types import stock_type
from app.sandbox.apiserver.builtin import builtin_kinds
from app.sandbox.apiserver.registry import ResourceKind
from app.sandbox.apiserver.stock_fields import Misfit, conform
from app.wire.copying import copied
from app.wire.documents import Document
from tests.sandbox.documents import pod


def unknown(document: Document) -> list[str]:
    of = stock_type(document["apiVersion"], document["kind"])
    assert of is not None
    return conform(document, of)


def misfit(document: Document) -> str:
    with pytest.raises(Misfit) as caught:
        unknown(document)
    return str(caught.value)


@pytest.mark.parametrize("kind", builtin_kinds(), ids=lambda kind: f"{kind.group}/{kind.plural}")
def test_every_stock_kind_has_its_fields(kind: ResourceKind) -> None:
    of = stock_type(kind.api_version, kind.kind)
    assert of is not None
    assert {"apiVersion", "kind", "metadata"} <= of.fields().keys()


def test_unknown_fields_go_wherever_they_are() -> None:
    wrong = pod("p", typo=1, tolerations=[{"key": "a", "kee": "a"}], nodeSelector={"any": "name"})
    wrong["spec"]["containers"][0]["resources"] = {"request": {"cpu": "1"}, "limits": {"cpu": "1"}}
    right = copied(wrong)
    del right["spec"]["typo"], right["spec"]["tolerations"][0]["kee"]
    del right["spec"]["containers"][0]["resources"]["request"]

    assert sorted(unknown(wrong)) == [
        "spec.containers[0].resources.request",
        "spec.tolerations[0].kee",
        "spec.typo",
    ]
    assert wrong == right
    assert unknown(right) == []


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"containers": "c"},
            "string into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            {"containers": ["c"]},
            "string into Go struct field PodSpec.spec.containers of type v1.Container",
        ),
        (
            {"command": "sleep"},
            "string into Go struct field Container.spec.containers.command of type []string",
        ),
        (
            {"command": [1]},
            "number into Go struct field Container.spec.containers.command of type string",
        ),
        (
            {"hostNetwork": "yes"},
            "string into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
        ({"priority": True}, "bool into Go struct field PodSpec.spec.priority of type int32"),
        ({"priority": 1.5}, "number 1.5 into Go struct field PodSpec.spec.priority of type int32"),
        (
            {"priority": 2**31},
            f"number {2**31} into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            {"activeDeadlineSeconds": "1m"},
            "string into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
        ),
        (
            {"nodeSelector": ["a"]},
            "array into Go struct field PodSpec.spec.nodeSelector of type map[string]string",
        ),
        (
            {"resources": {"limits": "1"}},
            "string into Go struct field ResourceRequirements.spec.containers.resources.limits"
            " of type v1.ResourceList",
        ),
    ],
    ids=str,
)
def test_a_value_is_of_its_fields_type(spec: Document, text: str) -> None:
    assert misfit(pod("p", **spec)) == f"json: cannot unmarshal {text}"


def test_amounts_times_and_encoded_data_are_read() -> None:
    assert misfit(pod("p", overhead={"cpu": "abc"})).startswith("quantities must match the regular")
    assert misfit(pod("p", metadata={"creationTimestamp": "then"})) == (
        'parsing time "then" as "2006-01-02T15:04:05Z07:00": cannot parse "then" as "2006"'
    )
    secret: Document = {"apiVersion": "v1", "kind": "Secret", "data": {"a": "YQ%="}}
    assert misfit(secret) == "illegal base64 data at input byte 2"
    budget: Document = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "spec": {"maxUnavailable": "50%", "minAvailable": []},
    }
    assert misfit(budget).endswith("PodDisruptionBudgetSpec.spec.minAvailable of type int32")


def test_a_null_counts_as_absent() -> None:
    found = pod("p", nodeName=None, nodeSelector={"a": None}, command=[None], tolerations=[None])
    assert unknown(found) == []
    assert "nodeName" not in found["spec"]
    assert found["spec"]["nodeSelector"] == {"a": ""}
    assert found["spec"]["tolerations"] == [{}]
    assert found["spec"]["containers"][0]["command"] == [""]


def test_a_time_may_be_null() -> None:
    found = pod("p", metadata={"creationTimestamp": None})
    assert unknown(found) == []
    assert found["metadata"]["creationTimestamp"] is None


def test_a_kind_that_is_not_of_kubernetes_is_not_known() -> None:
    assert stock_type("example.com/v1", "Widget") is None
