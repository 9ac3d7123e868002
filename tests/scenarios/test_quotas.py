"""ResourceQuotas of a namespace: who is let in, and what is counted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.wire import quantity
from tests.clusters import workloads
from tests.clusters.client import ApiError, Object
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.resources import RESOURCE_QUOTAS
from tests.scenarios.confs import conf

CONF = conf("predicates", "proportion", "resourcequota", "nodeorder")


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return CONF


def set_quota(place: Place, **hard: str) -> None:
    """Limit the namespace to that (``__`` stands for a dot), and wait until it is in force."""
    limits = {name.replace("__", "."): amount for name, amount in hard.items()}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "limits"},
        "spec": {"hard": limits},
    }
    if place.api.list(RESOURCE_QUOTAS, namespace=place.name):
        place.api.patch(RESOURCE_QUOTAS, "limits", {"spec": {"hard": limits}}, namespace=place.name)
    else:
        place.api.create(quota, resource=RESOURCE_QUOTAS, namespace=place.name)
    wait_quota(place, lambda status: status.get("hard") == limits)
    key, known = f"{place.name}/limits", dict(quantity.read_amounts(limits, "spec.hard"))
    wait_until(
        lambda: (
            place.cluster.extender.get("/debug/snapshot")["quotas"].get(key, {}).get("hard")
            == known
        ),
        timeout_s=30,
        what="the extender knows the quota",
    )


def wait_used(place: Place, **used: str) -> None:
    wanted = {name.replace("__", "."): amount for name, amount in used.items()}
    wait_quota(place, lambda status: wanted.items() <= status.get("used", {}).items())


def wait_quota(place: Place, holds: Callable[[Object], bool]) -> None:
    place.api.until_one(
        RESOURCE_QUOTAS,
        "limits",
        lambda quota: holds(quota.get("status", {})),
        namespace=place.name,
        timeout_s=30,
    )


def test_a_group_waits_until_its_namespace_has_room(place: Place) -> None:
    place.add_nodes(1, cpu="8")
    set_quota(place, requests__cpu="2")
    place.add_gang("first", 2, spec={"minResources": {"cpu": "2"}})
    place.wait_bound("first", 2)
    wait_used(place, requests__cpu="2")
    place.add_group("second", 1, minResources={"cpu": "1"})

    says = "cpu asked 1, free 0 of 2"
    place.wait_condition("second", "Reserved", "False", reason="ResourceQuota", says=says)
    said = "resource quota insufficient, requested: requests.cpu 1, used: requests.cpu 2"
    place.wait_event("second", "Unschedulable", says=said)
    assert place.group("second")["status"]["phase"] == "Pending"

    place.delete_gang("first")
    place.wait_phase("second", "Inqueue")


def test_a_larger_quota_admits_the_group(place: Place) -> None:
    place.add_nodes(1, cpu="8")
    set_quota(place, requests__cpu="1")
    place.add_group("gang", 2, minResources={"cpu": "2"})
    place.wait_condition("gang", "Reserved", "False", reason="ResourceQuota")

    set_quota(place, requests__cpu="2")
    place.wait_phase("gang", "Inqueue")


def test_an_admitted_group_keeps_its_part_until_its_pods_exist(place: Place) -> None:
    """As for two jobs one after the other: their pods are made once they are let in."""
    place.add_nodes(1, cpu="8")
    set_quota(place, requests__cpu="3", pods="3")
    place.add_group("first", 2, minResources={"cpu": "2"})
    place.wait_phase("first", "Inqueue")
    place.add_group("second", 2, minResources={"cpu": "2"})

    says = "pods asked 2, free 1 of 3, requests.cpu asked 2, free 1 of 3"
    place.wait_condition("second", "Reserved", "False", reason="ResourceQuota", says=says)
    place.submit(workloads.members("first", 2))
    place.wait_bound("first", 2)
    wait_used(place, requests__cpu="2", pods="2")
    assert place.group("second")["status"]["phase"] == "Pending"


def test_limits_are_counted_too(place: Place) -> None:
    place.add_nodes(1, cpu="8")
    set_quota(place, limits__cpu="3")
    resources = {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}
    place.add_group("first", 2, minResources={"cpu": "1", "limits.cpu": "2"})
    place.wait_phase("first", "Inqueue")
    place.add_group("second", 2, minResources={"cpu": "1", "limits.cpu": "2"})

    says = "limits.cpu asked 2, free 1 of 3"
    place.wait_condition("second", "Reserved", "False", reason="ResourceQuota", says=says)
    place.submit(workloads.members("first", 2, resources=resources))
    place.wait_bound("first", 2)
    wait_used(place, limits__cpu="2")
    assert place.group("second")["status"]["phase"] == "Pending"

    place.delete_gang("first")
    place.wait_phase("second", "Inqueue")


def test_pods_that_exist_are_not_asked_for_again(place: Place) -> None:
    """A gang of an operator: its pods are counted before its PodGroup is let in."""
    place.add_nodes(1, cpu="8")
    set_quota(place, requests__cpu="2", pods="2")
    place.submit(workloads.members("gang", 2))
    wait_used(place, requests__cpu="2", pods="2")
    place.add_group("gang", 2, minResources={"cpu": "2"})
    place.wait_bound("gang", 2)


def test_a_pod_beyond_the_quota_is_refused_and_one_that_ended_makes_room(place: Place) -> None:
    place.add_nodes(1, cpu="8")
    set_quota(place, pods="1", requests__cpu="5")
    place.submit([workloads.pod("first")])
    wait_used(place, pods="1")
    over = "exceeded quota: limits, requested: pods=1, used: pods=1, limited: pods=1"
    with pytest.raises(ApiError, match=over):
        place.submit_one(workloads.pod("second"))

    place.wait_pod_bound("first")
    place.set_pod_phase("first", "Succeeded")
    wait_used(place, pods="0", requests__cpu="0")
    place.submit_one(workloads.pod("second"))
    place.wait_pod_bound("second")
