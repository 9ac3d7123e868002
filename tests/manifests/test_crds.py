"""The CRDs hold together without an API server: schema form, names, and what must be alike.

An API server can drop a key of a schema that it does not know without a word, so a typing error, or
a comma in an unquoted description, is found here. What the schemas accept is in cases.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from app.wire import manifests

CRDS = {document["spec"]["names"]["kind"]: document for document in manifests.crd_documents()}

SCHEMA_KEYS = {
    "additionalProperties",
    "anyOf",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
}

STATUS: dict[str, Any] = {"status": {}}
AGE = ".metadata.creationTimestamp"


@dataclass(frozen=True, slots=True)
class Names:
    """What clients see of a kind besides its fields."""

    kind: str
    api_version: str
    plural: str
    short: list[str]
    scope: str
    subresources: dict[str, Any]
    columns: dict[str, str]


VOLCANO = [
    Names(
        kind="Job",
        api_version="batch.volcano.sh/v1alpha1",
        plural="jobs",
        short=["vcjob", "vj"],
        scope="Namespaced",
        subresources=STATUS,
        columns={
            "STATUS": ".status.state.phase",
            "minAvailable": ".status.minAvailable",
            "RUNNINGS": ".status.running",
            "AGE": AGE,
            "QUEUE": ".spec.queue",
        },
    ),
    Names(
        kind="CronJob",
        api_version="batch.volcano.sh/v1alpha1",
        plural="cronjobs",
        short=["cronvcjob", "cronvj"],
        scope="Namespaced",
        subresources=STATUS,
        columns={},
    ),
    Names(
        kind="ColocationConfiguration",
        api_version="config.volcano.sh/v1alpha1",
        plural="colocationconfigurations",
        short=[],
        scope="Namespaced",
        subresources=STATUS,
        columns={},
    ),
    Names(
        kind="Command",
        api_version="bus.volcano.sh/v1alpha1",
        plural="commands",
        short=[],
        scope="Namespaced",
        subresources={},
        columns={},
    ),
    Names(
        kind="Queue",
        api_version="scheduling.volcano.sh/v1beta1",
        plural="queues",
        short=["q", "queue-v1beta1"],
        scope="Cluster",
        subresources=STATUS,
        columns={"PARENT": ".spec.parent"},
    ),
    Names(
        kind="PodGroup",
        api_version="scheduling.volcano.sh/v1beta1",
        plural="podgroups",
        short=["pg", "podgroup-v1beta1"],
        scope="Namespaced",
        subresources={},
        columns={
            "STATUS": ".status.phase",
            "minMember": ".spec.minMember",
            "RUNNINGS": ".status.running",
            "AGE": AGE,
            "QUEUE": ".spec.queue",
        },
    ),
    Names(
        kind="JobFlow",
        api_version="flow.volcano.sh/v1alpha1",
        plural="jobflows",
        short=["jf"],
        scope="Namespaced",
        subresources=STATUS,
        columns={"Status": ".status.state.phase", "Age": AGE},
    ),
    Names(
        kind="JobTemplate",
        api_version="flow.volcano.sh/v1alpha1",
        plural="jobtemplates",
        short=["jt"],
        scope="Namespaced",
        subresources=STATUS,
        columns={},
    ),
    Names(
        kind="HyperNode",
        api_version="topology.volcano.sh/v1alpha1",
        plural="hypernodes",
        short=["hn"],
        scope="Cluster",
        subresources=STATUS,
        columns={
            "Tier": ".spec.tier",
            "TierName": ".spec.tierName",
            "NodeCount": ".status.nodeCount",
            "Age": AGE,
        },
    ),
    Names(
        kind="Numatopology",
        api_version="nodeinfo.volcano.sh/v1alpha1",
        plural="numatopologies",
        short=["numatopo"],
        scope="Cluster",
        subresources={},
        columns={},
    ),
]


def schema_of(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def walk(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every node of a schema with the path of the field it describes."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in schema:
            yield from walk(schema[key], path + mark)


@pytest.mark.parametrize("names", VOLCANO, ids=lambda names: names.kind)
def test_a_kind_has_volcanos_names_scope_subresources_and_columns(names: Names) -> None:
    spec = CRDS[names.kind]["spec"]
    (version,) = spec["versions"]
    columns = version.get("additionalPrinterColumns", [])

    assert f"{spec['group']}/{version['name']}" == names.api_version
    assert spec["names"]["plural"] == names.plural
    assert spec["names"]["singular"] == names.kind.lower()
    assert spec["names"].get("shortNames", []) == names.short
    assert CRDS[names.kind]["metadata"]["name"] == f"{names.plural}.{spec['group']}"
    assert spec["scope"] == names.scope
    assert version.get("subresources", {}) == names.subresources
    assert {column["name"]: column["jsonPath"] for column in columns} == names.columns


def test_no_kind_is_missing_from_the_table_above() -> None:
    assert {names.kind for names in VOLCANO} == set(CRDS)


@pytest.mark.parametrize("kind", CRDS)
def test_a_schema_uses_only_keys_that_mean_something(kind: str) -> None:
    unknown = {
        path: surplus
        for path, schema in walk(schema_of(kind))
        if (surplus := {str(key) for key in schema} - SCHEMA_KEYS)
    }

    assert unknown == {}


@pytest.mark.parametrize("kind", CRDS)
def test_every_field_has_a_type(kind: str) -> None:
    untyped = [
        path
        for path, schema in walk(schema_of(kind))
        if "type" not in schema and not schema.get("x-kubernetes-int-or-string")
    ]

    assert untyped == []


@pytest.mark.parametrize("kind", CRDS)
def test_a_column_of_spec_or_status_points_at_a_field(kind: str) -> None:
    fields = {path for path, _ in walk(schema_of(kind))}
    columns = CRDS[kind]["spec"]["versions"][0].get("additionalPrinterColumns", [])

    for column in columns:
        assert column["jsonPath"] in fields | {AGE}


def test_only_what_others_define_passes_through_unread() -> None:
    open_fields = {
        path.rpartition(".")[2]
        for kind in CRDS
        for path, schema in walk(schema_of(kind))
        if schema.get("x-kubernetes-preserve-unknown-fields")
    }

    assert open_fields == {"template", "volumeClaim", "jobSpec"}


def test_a_job_spec_is_the_same_wherever_it_stands() -> None:
    spec = schema_of("Job")["properties"]["spec"]
    cron_job = schema_of("CronJob")["properties"]["spec"]["properties"]["jobTemplate"]

    assert schema_of("JobTemplate")["properties"]["spec"] == spec
    assert cron_job["properties"]["spec"] == spec


def test_quantities_are_told_alike_everywhere() -> None:
    quantities = [
        schema
        for kind in CRDS
        for _, schema in walk(schema_of(kind))
        if schema.get("x-kubernetes-int-or-string")
    ]

    assert len(quantities) > 1
    assert all(quantity == quantities[0] for quantity in quantities)
