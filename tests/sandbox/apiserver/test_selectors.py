from __future__ import annotations

import pytest

from app.sandbox.apiserver.errors import ApiError
from app.sandbox.apiserver.selectors import by_fields, by_labels, label_selector_matches
from app.wire.documents import Document

POD: Document = {
    "metadata": {"name": "p", "namespace": "d", "labels": {"app": "a", "tier": "x"}},
    "spec": {"nodeName": "n1"},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("", True),
        ("app=a", True),
        ("app==a,tier=x", True),
        ("app!=a", False),
        ("other!=a", True),
        ("app in (a, b),tier", True),
        ("app notin (a)", False),
        ("!other", True),
        ("!app", False),
    ],
)
def test_a_label_selector_decides(selector: str, matches: bool) -> None:
    assert by_labels(selector)(POD) is matches


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("metadata.name=p", True),
        ("spec.nodeName=n1,status.phase!=Pending", True),
        ("spec.nodeName=", False),
        ("spec.hostNetwork=false", True),
    ],
)
def test_a_field_selector_decides(selector: str, matches: bool) -> None:
    assert by_fields(selector, plural="pods")(POD) is matches


def test_a_field_that_is_no_selector_is_refused() -> None:
    with pytest.raises(ApiError, match=r"field label not supported: spec\.nodeName"):
        by_fields("spec.nodeName=x", plural="configmaps")


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "a"}}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_an_object_selector_decides(selector: Document | None, matches: bool) -> None:
    assert label_selector_matches(selector, {"app": "a"}) is matches
