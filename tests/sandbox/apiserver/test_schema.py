from __future__ import annotations

import pytest

from app.sandbox.apiserver.schema import apply_defaults, parse_schema, prune
from app.sandbox.apiserver.validation import validate
from app.wire.documents import Document
from tests.sandbox.documents import WIDGET_CRD

WIDGET = parse_schema(WIDGET_CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


def test_unknown_fields_are_pruned_except_where_they_are_preserved() -> None:
    document: Document = {
        "apiVersion": "example.com/v1",
        "metadata": {"name": "w"},
        "spec": {"size": 1, "odd": 2, "template": {"anything": {"goes": True}}},
        "extra": {},
    }
    assert prune(document, WIDGET) == ["spec.odd", "extra"]
    assert document["spec"] == {"size": 1, "template": {"anything": {"goes": True}}}


def test_defaults_fill_what_is_absent_or_null() -> None:
    for spec in ({"size": 1}, {"size": 1, "colour": None}):
        document: Document = {"spec": spec}
        apply_defaults(document, WIDGET)
        assert document["spec"]["colour"] == "red"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "spec.size: Required value"),
        (
            {"size": 0},
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (
            {"size": 10},
            "spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9",
        ),
        (
            {"size": "1"},
            'spec.size: Invalid value: "string": spec.size in body must be of type integer:'
            ' "string"',
        ),
        (
            {"size": 1, "colour": "green"},
            'spec.colour: Unsupported value: "green": supported values: "red", "blue"',
        ),
    ],
)
def test_a_broken_rule_is_told_as_the_real_server_does(spec: Document, message: str) -> None:
    assert [str(error) for error in validate({"spec": spec}, WIDGET)] == [message]


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ({"type": "string", "pattern": "^a+$"}, "aa", "b"),
        ({"type": "string", "maxLength": 2}, "ab", "abc"),
        ({"type": "array", "items": {"type": "string"}, "minItems": 1}, ["a"], []),
        (
            {"type": "object", "maxProperties": 1, "additionalProperties": True},
            {},
            {"a": 1, "b": 2},
        ),
        ({"x-kubernetes-int-or-string": True}, "5%", 1.5),
        ({"x-kubernetes-int-or-string": True, "format": "int32"}, "5%", True),
        ({"type": "integer", "multipleOf": 5}, 10, 7),
        ({"type": "integer", "minimum": 5, "exclusiveMinimum": True}, 6, 5),
        ({"type": "string", "not": {"pattern": "^x"}}, "a", "x"),
        (
            {"type": "string", "oneOf": [{"minLength": 1}, {"maxLength": 2}]},
            "abc",
            "a",
        ),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            ["a", "b"],
            ["a", "a"],
        ),
        ({"type": "number"}, 1.5, "1.5"),
        ({"type": "boolean"}, True, 1),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": "x"}),
    ],
)
def test_a_rule_accepts_and_refuses(rule: Document, good: object, bad: object) -> None:
    schema = parse_schema({"type": "object", "properties": {"field": rule}})
    assert list(validate({"field": good}, schema)) == []
    assert len(list(validate({"field": bad}, schema))) == 1


def test_null_is_allowed_where_the_schema_says_so() -> None:
    schema = parse_schema({"type": "string", "nullable": True})
    assert list(validate(None, schema)) == []
