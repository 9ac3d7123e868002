"""Gangs of pods that name no PodGroup: the controller makes one after the pods; that is in time.

The Deployment asks for four or none, and there is room for two. However late the controller is, its
pods wait for it; those of a Deployment that asks for nothing need no controller.
"""

from __future__ import annotations

import time
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
REPLICATION = Resource("v1", "replicationcontrollers", "ReplicationController")
SIZE = 4
LATE_S = 8.0
"""Longer than the pods of a ReplicaSet wait for anything else."""


@pytest.fixture
def place(rig: Rig) -> Iterator[Stand]:
    """Two nodes of 4 cpus."""
    with stand.opened(rig) as made:
        yield made


def deployment(*, least: int = SIZE, cpu: str = "3") -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "nginx",
        "resources": {"requests": {"cpu": cpu}},
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
            "annotations": {"scheduling.volcano.sh/group-min-member": str(least)},
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


def are_one_that_runs(groups: Objects) -> bool:
    return [group["status"].get("phase") for group in groups] == ["Running"]


def bound(place: Stand) -> list[str]:
    return [node for pod in place.all(PODS) if (node := workloads.node_of(pod))]


def all_run(pods: Objects) -> bool:
    return [pod["status"].get("phase") for pod in pods] == ["Running"] * SIZE


@pytest.fixture
def web(place: Stand) -> Iterator[Stand]:
    """A Deployment of that name goes with the test."""
    yield place
    place.api.delete(DEPLOYMENTS, "web", namespace=place.name)
    place.wait_none(PODS)


@pytest.mark.parametrize("late", [False, True], ids=["in-time", "late"])
def test_none_of_them_is_bound_before_all_can_be(web: Stand, late: bool) -> None:
    if late:
        web.kill_controllers()
    web.api.create(deployment(), resource=DEPLOYMENTS, namespace=web.name)
    if late:
        web.wait_pods(lambda pods: len(pods) == SIZE, what="made")
        since = time.monotonic()
        wait_until(
            lambda: bool(bound(web)) or time.monotonic() > since + LATE_S,
            timeout_s=2 * LATE_S,
            what="a while without controllers",
        )
        web.start_controllers()
    web.api.until(POD_GROUPS, waits, namespace=web.name, timeout_s=30)
    assert bound(web) == []
    more = nodes.create(web.api, 2, prefix=f"{web.name}-more")
    try:
        web.wait_pods(all_run, what="all run")
        wait_until(
            lambda: web.rig.extender.get("/debug/ledger")["promises"] == 0,
            timeout_s=30,
            what="no room kept",
        )
    finally:
        web.api.delete_all(PODS, namespace=web.name)
        nodes.delete(web.api, more)


def test_those_that_need_not_be_together_need_no_controller(web: Stand) -> None:
    web.kill_controllers()
    web.api.create(deployment(least=1, cpu="1"), resource=DEPLOYMENTS, namespace=web.name)
    web.wait_pods(all_run, what="all run")
    assert web.all(POD_GROUPS) == []


def test_pods_of_a_replication_controller_are_a_group(place: Stand) -> None:
    spec = deployment(cpu="1")["spec"] | {"selector": {"app": "web"}}
    old = {"metadata": {"name": "old"}, "spec": spec}
    place.api.create(old, resource=REPLICATION, namespace=place.name)
    try:
        place.wait_pods(all_run, what="all run")
        place.api.until(POD_GROUPS, are_one_that_runs, namespace=place.name, timeout_s=30)
    finally:
        for resource in (REPLICATION, PODS, POD_GROUPS):  # it leaves both behind
            place.api.delete_all(resource, namespace=place.name)
