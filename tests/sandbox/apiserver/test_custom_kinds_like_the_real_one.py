"""Schemas and scales of custom kinds, the rarer parts: both servers read them alike."""

from __future__ import annotations

import time

import pytest

from app.wire.documents import Document
from tests.sandbox.apiserver.likeness import CRDS, MERGE, Servers, Step, seen, sent

pytestmark = pytest.mark.real

TEXT: Document = {"type": "string"}
PAIR: Document = {"type": "object", "properties": {"a": TEXT, "b": TEXT}}
EITHER: list[Document] = [{"required": ["a"]}, {"required": ["b"]}]
FIELDS: Document = {
    "letters": {**TEXT, "pattern": r"^\p{L}+$"},
    "digits": {**TEXT, "pattern": "^[[:digit:]]+$"},
    "short": {**TEXT, "minLength": 2, "maxLength": 3},
    "amount": {"x-kubernetes-int-or-string": True, "format": "int32"},
    "percent": {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": "^[0-9]+%?$",
    },
    "number": {"type": "integer"},
    "small": {"type": "integer", "format": "int32"},
    "large": {"type": "integer", "format": "int64"},
    "fives": {"type": "integer", "multipleOf": 5, "enum": [5, 10, 12]},
    "halves": {"type": "number", "multipleOf": 0.5},
    "above": {"type": "integer", "minimum": 5, "exclusiveMinimum": True},
    "below": {"type": "number", "maximum": 5, "exclusiveMaximum": True},
    "one": {**PAIR, "oneOf": EITHER},
    "any": {**PAIR, "anyOf": EITHER},
    "all": {**TEXT, "allOf": [{"minLength": 2}, {"maxLength": 3}]},
    "none": {**TEXT, "not": {"pattern": "^x"}},
    "set": {"type": "array", "maxItems": 4, "items": TEXT, "x-kubernetes-list-type": "set"},
    "map": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["port"],
            "properties": {
                "port": {"type": "integer"},
                "protocol": {**TEXT, "default": "TCP"},
                "name": TEXT,
            },
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
    },
    "copies": {"type": "integer"},
}
VERSION: Document = {
    "name": "v1",
    "served": True,
    "storage": True,
    "subresources": {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.copies",
            "statusReplicasPath": ".status.made",
            "labelSelectorPath": ".status.selector",
        },
    },
    "schema": {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": FIELDS},
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        }
    },
}
GADGET_CRD: Document = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [VERSION],
    },
}
GADGETS = "/apis/example.com/v1/namespaces/default/gadgets"
VALUES: dict[str, list[object]] = {
    "letters": ["aé", "a1", "a\n"],
    "digits": ["12", "d", "1:"],
    "short": ["a", "ab", "abcd"],
    "amount": [5, "5%", 2**31, True, 1.5],
    "percent": [5, "5%", "five"],
    "number": [1.0, 1.5, 2**70],
    "small": [2**31, 1.5, "x"],
    "large": [2**31, 2**63],
    "fives": [10, 12, 15],
    "halves": [1.5, 1.3],
    "above": [5, 6],
    "below": [5, 4.5],
    "one": [{}, {"a": "1"}, {"a": "1", "b": "2"}],
    "any": [{}, {"a": "1", "b": "2"}],
    "all": ["a", "ab", "abcd"],
    "none": ["xa", "a"],
    "set": [["a", "b"], ["a", "b", "a"], ["a", "b", "c", "d", "e"]],
    "map": [
        [{"port": 53}, {"port": 53, "protocol": "UDP"}],
        [{"port": 53}, {"port": 53, "protocol": "TCP", "name": "dns"}],
    ],
}


def gadget(name: str, **spec: object) -> Document:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Gadget",
        "metadata": {"name": name},
        "spec": spec,
    }


SCALE = f"{GADGETS}/scaled/scale"
SCALED = (
    Step("POST", GADGETS, gadget("scaled")),
    Step("GET", SCALE),
    Step("PATCH", SCALE, {"spec": {"replicas": 2}}, MERGE),
    Step("GET", f"{GADGETS}/scaled"),
    Step("PATCH", SCALE, {"spec": {"replicas": -1}}, MERGE),
    Step("PATCH", f"{GADGETS}/scaled/status", {"status": {"made": 3, "selector": "a=b"}}, MERGE),
    Step("GET", SCALE),
    Step("PUT", SCALE, {"metadata": {"name": "other"}, "spec": {"replicas": 3}}),
    Step("GET", f"{GADGETS}/scaled"),
)


@pytest.fixture(scope="module")
def gadgets(servers: Servers) -> Servers:
    """Where they are served; the real server takes a moment."""
    for client in servers:
        client.post(CRDS, json=GADGET_CRD).raise_for_status()
        deadline = time.monotonic() + 20
        while client.get(GADGETS).status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    return servers


@pytest.mark.parametrize("field", VALUES)
def test_both_servers_check_a_field_alike(gadgets: Servers, field: str) -> None:
    for value in VALUES[field]:
        step = Step("POST", f"{GADGETS}?dryRun=All", gadget("g", **{field: value}))
        expected, found = (seen(sent(each, step)) for each in gadgets)
        assert found == expected, f"{field}: {value}"


def test_both_servers_scale_alike(gadgets: Servers) -> None:
    for step in SCALED:
        answers = [sent(each, step).json() for each in gadgets]
        expected, found = (answer.get("status") for answer in answers)
        assert found == expected, f"{step.method} {step.path}"
        expected, found = (seen(sent(each, Step("GET", SCALE))) for each in gadgets)
        assert found == expected, f"after {step.method} {step.path}"
