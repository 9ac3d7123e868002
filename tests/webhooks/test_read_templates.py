"""The scheduler can read each template that admission accepts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from app.wire.objects.jobs import decode_job
from app.wire.unstructured import Object
from tests.webhooks.objects import GPU, IS_A, SPREAD, job, pod_spec, task, template_problems


def parts_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything in ``value``."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inside:
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from parts_of(each, (*path, key))


def changed(spec: Object, path: tuple[Any, ...], value: Any) -> Object:
    made = deepcopy(spec)
    holder: Any = made
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return made


LABELS = {"matchLabels": {"a": "b"}, "matchExpressions": [IS_A]}
NEAR = {
    "topologyKey": "zone",
    "labelSelector": LABELS,
    "namespaceSelector": LABELS,
    "namespaces": ["n"],
    "matchLabelKeys": ["k"],
}
NODES = {"matchExpressions": [IS_A], "matchFields": [{**IS_A, "key": "metadata.name"}]}
ASKS = {"requests": {"cpu": 1, GPU: 1}, "limits": {"cpu": 1, GPU: 1}, "claims": [{"name": "c"}]}
READ = {
    "nodeSelector": {"a": "b"},
    "overhead": {"cpu": 1},
    "priorityClassName": "p",
    "preemptionPolicy": "Never",
    "activeDeadlineSeconds": 5,
    "resources": {"requests": {"cpu": 2}, "limits": {"cpu": 2}},
    "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}],
    "tolerations": [{"key": "a", "operator": "Equal", "value": "v", "effect": "NoSchedule"}],
    "topologySpreadConstraints": [
        {**SPREAD, "minDomains": 1, "labelSelector": LABELS, "matchLabelKeys": ["k"]}
    ],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [NODES]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
        },
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [NEAR],
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}
            ],
        },
    },
    "volumes": [
        {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
        {
            "name": "b",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": 1}},
                    }
                }
            },
        },
    ],
    "initContainers": [{"name": "i", "image": "i", "restartPolicy": "Always", "resources": ASKS}],
    "containers": [
        {
            "name": "c",
            "image": "i",
            "ports": [{"containerPort": 1, "hostPort": 2, "hostIP": "1.2.3.4", "protocol": "UDP"}],
            "resources": ASKS,
        }
    ],
}
"""All that the scheduler reads of the pods to come."""


@pytest.mark.parametrize("part", READ)
def test_the_scheduler_can_read_what_is_accepted(part: str) -> None:
    whole = pod_spec(**{part: READ[part]})
    assert template_problems(whole) == []
    for path in parts_of({part: READ[part]}):
        for value in (None, {}, "x", -1, 1.5, 2**63, [None], {"x": None}):
            spec = changed(whole, path, value)
            if not template_problems(spec):
                made = job(task(template={"metadata": {"labels": {"a": None}}, "spec": spec}))
                made["metadata"]["uid"] = "u"
                decode_job(json.dumps(made).encode())


def test_where_there_is_nothing_no_part_of_it_is_missed() -> None:
    spec = pod_spec(containers=[None], volumes=[None], schedulingGates=[None])
    assert sorted(template_problems(spec)) == [
        "template.spec.containers[0]: Required value",
        "template.spec.schedulingGates[0]: Required value",
        "template.spec.volumes[0]: Required value",
    ]
