"""Objects that rules cannot read are left to the schema, which has the same types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from app.webhooks.object_types import KINDS, SHAPES, is_readable
from app.wire import kinds
from app.wire.kinds import Resource
from app.wire.unstructured import Object
from tests.webhooks.objects import ask, group, job, new_queue, pod, task

CRDS = Path(__file__).resolve().parents[2] / "manifests" / "crds"
PLAIN = {"string": "text", "boolean": "flag", "integer": "number"}


def schema_of(resource: Resource) -> Any:
    """The schema of the kind, as it is installed."""
    document = yaml.safe_load((CRDS / f"{resource.plural}.yaml").read_text(encoding="utf-8"))
    return document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def assert_declared(kind: str, schema: Any) -> None:
    """What is in ``schema`` is of that type, all the way down."""
    if kind[0] in "[{":
        inside = schema["items"] if kind[0] == "[" else schema["additionalProperties"]
        assert_declared(kind[1:-1], inside)
    elif kind == "int-or-string":
        assert schema["x-kubernetes-int-or-string"]
    elif kind in PLAIN.values():
        assert PLAIN[schema["type"]] == kind
    else:
        assert schema["type"] == "object"
        for field, inside in SHAPES.get(kind, {}).items():
            assert_declared(inside, schema["properties"][field])


@pytest.mark.parametrize("resource", KINDS, ids=KINDS.values())
def test_the_types_are_those_of_the_schema(resource: Resource) -> None:
    assert_declared(KINDS[resource], schema_of(resource))


@pytest.mark.parametrize(
    ("path", "item"),
    [
        ("/jobs/validate", job(tasks="x", queue="nowhere")),
        ("/jobs/validate", job(tasks=[1], queue="nowhere")),
        ("/jobs/validate", job({**task("a"), "replicas": "3"}, queue="nowhere")),
        ("/jobs/validate", job(plugins=["svc"], queue="nowhere")),
        ("/jobs/validate", job(policies={"event": "x"}, queue="nowhere")),
        ("/podgroups/validate", group(queue="nowhere", minMember="1")),
        ("/podgroups/validate", group(queue=5)),
        ("/queues/validate", new_queue("q", parent="nowhere", weight=True)),
        ("/queues/validate", new_queue("q", guarantee={"resource": {"cpu": [1]}})),
    ],
)
def test_what_cannot_be_read_is_not_judged(path: str, item: Object) -> None:
    assert ask(path, item).allowed


def test_what_can_be_read_is_judged_and_other_kinds_have_been_compared_already() -> None:
    assert not ask("/jobs/validate", job(tasks=None)).allowed
    assert is_readable(kinds.PODS, pod(schedulerName=5))
