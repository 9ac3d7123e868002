"""Node affinity as kube-scheduler reads it."""

from __future__ import annotations

import pytest

from app.sandbox.scheduler.affinity import node_matches
from app.wire.documents import Document


def wants(operator: str, *values: str) -> Document:
    """A pod whose node must have such a ``size``."""
    expression = {"key": "size", "operator": operator, "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {"spec": {"affinity": {"nodeAffinity": required}}}


def sized(size: str | None) -> Document:
    return {"metadata": {"name": "n", "labels": {} if size is None else {"size": size}}}


@pytest.mark.parametrize(
    ("size", "is_more", "is_less"),
    [
        ("4", False, True),
        ("5", False, False),
        ("6", True, False),
        ("-6", False, True),
        ("+6", True, False),
        ("006", True, False),
        ("9223372036854775807", True, False),
    ],
)
def test_numbers_are_compared(size: str, is_more: bool, is_less: bool) -> None:
    assert node_matches(wants("Gt", "5"), sized(size)) is is_more
    assert node_matches(wants("Lt", "5"), sized(size)) is is_less


@pytest.mark.parametrize(
    "size",
    [None, "", "many", "1_000", " 6 ", "6.0", "0x6", "\u0666", "9223372036854775808", "9" * 5000],
    ids=lambda size: repr(size)[:24],
)
def test_what_go_reads_as_no_number_is_neither_more_nor_less(size: str | None) -> None:
    assert not node_matches(wants("Gt", "5"), sized(size))
    assert not node_matches(wants("Lt", "5"), sized(size))


@pytest.mark.parametrize("bound", ["1_0", " 10 ", "9223372036854775808", "-9223372036854775809"])
def test_nothing_is_more_or_less_than_a_bound_that_is_no_number(bound: str) -> None:
    assert not node_matches(wants("Gt", bound), sized("6"))
    assert not node_matches(wants("Lt", bound), sized("6"))


def test_nothing_is_more_or_less_than_no_bound() -> None:
    assert not node_matches(wants("Gt"), sized("6"))
