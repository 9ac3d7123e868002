"""Which fields stock kinds have, and what becomes of others."""

from __future__ import annotations

import pytest

from app.main.stock_types import stock_type
from app.sandbox.apiserver.builtin import builtin_kinds
from app.sandbox.apiserver.registry import ResourceKind
from app.sandbox.apiserver.stock_fields import prune
from app.sandbox.documents import Document, copied
from tests.sandbox.documents import pod

NOT_ASKED = {"Event", "CustomResourceDefinition"}


def unknown(document: Document) -> list[str]:
    of = stock_type(document["apiVersion"], document["kind"])
    assert of is not None
    return list(prune(document, of))


@pytest.mark.parametrize("kind", builtin_kinds(), ids=lambda kind: kind.key)
def test_every_stock_kind_has_its_fields(kind: ResourceKind) -> None:
    of = stock_type(kind.api_version, kind.kind)
    assert (of is None) is (kind.kind in NOT_ASKED)
    if of is not None:
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


@pytest.mark.parametrize("containers", [None, "c", ["c"], [None], {"name": "c"}], ids=str)
def test_what_is_no_object_is_left_to_others(containers: object) -> None:
    assert unknown(pod("p", containers=containers)) == []


def test_a_kind_that_is_not_of_kubernetes_is_not_known() -> None:
    assert stock_type("example.com/v1", "Widget") is None
