"""Gangs of pods that name no PodGroup: the controller makes one after the pods; that is in time.

The Deployment asks for four or none, and there is room for two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clusters import nodes, workloads
from tests.clusters.client import Objects
from tests.clusters.processes import wait_until
from tests.clusters.resources import POD_GROUPS, PODS, Resource
from tests.clusters.rig import Rig
from tests.controllers.job import stand
from tests.controllers.job.stand import Stand

pytestmark = pytest.mark.real

DEPLOYMENTS = Resource("apps/v1", "deployments", "Deployment")
SIZE = 4


@pytest.fixture
def place(rig: Rig) -> Iterator[Stand]:
    """Two nodes of 4 cpus."""
    with stand.opened(rig) as made:
        yield made


def deployment() -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "nginx",
        "resources": {"requests": {"cpu": "3"}},
    }
    pod = {
        "schedulerName": "volcano",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {
            "name": "web",
            "annotations": {"scheduling.volcano.sh/group-min-member": str(SIZE)},
        },
        "spec": {
            "replicas": SIZE,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
        },
    }


def waits(groups: Objects) -> bool:
    said = [c for group in groups for c in group.get("status", {}).get("conditions") or ()]
    return any(c["type"] == "Unschedulable" and c["status"] == "True" for c in said)


def test_none_of_them_is_bound_before_all_can_be(place: Stand) -> None:
    place.api.create(deployment(), resource=DEPLOYMENTS, namespace=place.name)
    place.api.until(POD_GROUPS, waits, namespace=place.name, timeout_s=30)
    assert [pod for pod in place.all(PODS) if workloads.node_of(pod)] == []
    more = nodes.create(place.api, 2, prefix=f"{place.name}-more")
    try:
        place.wait_pods(
            lambda pods: [pod["status"].get("phase") for pod in pods] == ["Running"] * SIZE,
            what="all run",
        )
        wait_until(
            lambda: place.rig.extender.get("/debug/ledger")["promises"] == 0,
            timeout_s=10,
            what="no room kept",
        )
    finally:
        place.api.delete(DEPLOYMENTS, "web", namespace=place.name)
        place.wait_none(PODS)
        nodes.delete(place.api, more)
