"""What is said of pod templates, against the API server's own word on the pods."""

from __future__ import annotations

from typing import Any

import pytest

from app.wire.pod_types import SHAPES
from tests.clusters.client import ApiError, Object
from tests.clusters.controlplane import ControlPlane
from tests.e2e.admission import dry_run
from tests.webhooks import test_pod_templates

pytestmark = pytest.mark.real

PLAIN = {"string": "text", "boolean": "flag", "integer": "number"}
NAMED = {"Quantity": "quantity", "IntOrString": "int-or-string", "Time": "text"}


def pod(spec: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "namespace": "default"},
        "spec": spec,
    }


def refused(installed: ControlPlane, spec: Object) -> str:
    """Why a pod like that would not be made; empty: it would."""
    try:
        dry_run(installed.api, pod(spec))
    except ApiError as error:
        if error.code not in {400, 422}:
            raise
        return str(error)
    return ""


@pytest.mark.parametrize(
    "spec", test_pod_templates.ACCEPTED.values(), ids=test_pod_templates.ACCEPTED
)
def test_a_template_that_is_accepted_makes_pods(installed: ControlPlane, spec: Object) -> None:
    assert refused(installed, spec) == ""


@pytest.mark.parametrize(
    "spec",
    [spec for spec, _ in test_pod_templates.REFUSED.values()],
    ids=test_pod_templates.REFUSED,
)
def test_a_template_that_is_refused_makes_none(installed: ControlPlane, spec: Object) -> None:
    assert refused(installed, spec) != ""


@pytest.fixture(scope="module")
def schemas(installed: ControlPlane) -> dict[str, Any]:
    """What the API server publishes of its own kinds."""
    found: dict[str, Any] = installed.api.request("GET", "/openapi/v3/api/v1")["components"]
    return dict(found["schemas"])


def kind_of(schema: dict[str, Any]) -> str:
    """The type in the words of the table."""
    references = [each["$ref"] for each in schema.get("allOf", [schema]) if "$ref" in each]
    if references:
        name = str(references[0]).rpartition(".")[2]
        return NAMED.get(name, name)
    if schema["type"] == "array":
        return f"[{kind_of(schema['items'])}]"
    if schema["type"] == "object":
        return f"{{{kind_of(schema['additionalProperties'])}}}"
    return "small" if schema.get("format") == "int32" else PLAIN[schema["type"]]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_types_know_all_that_the_api_server_knows(schemas: dict[str, Any], shape: str) -> None:
    """Those of newer releases of Kubernetes too: ``tests/main/adapters/test_pod_types.py``."""
    (whole,) = [name for name in schemas if name.endswith(f".v1.{shape}")]
    published = {field: kind_of(schema) for field, schema in schemas[whole]["properties"].items()}
    known = SHAPES[shape]
    for field, kind in published.items():
        assert known[field].strip("[]") == "Open" or known[field] == kind, field
