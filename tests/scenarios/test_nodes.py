"""Nodes: which of them a gang may use, and what it learns when there are too few."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.clusters import nodes, workloads
from tests.clusters.cluster import Scheduling
from tests.clusters.place import Place
from tests.clusters.resources import CLAIMS, NODES, PODS

TAINT = {"key": "team", "value": "vision", "effect": "NoSchedule"}
TOLERATION = {"key": "team", "operator": "Exists", "effect": "NoSchedule"}


class Lost:
    """Pods whose node went when this file began: it takes a minute until they go."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._places: dict[Scheduling, Place] = {}

    def on(self, cluster: Scheduling) -> Place:
        """The place of the one on that cluster."""
        if cluster not in self._places:
            place = self._stack.enter_context(Place(cluster))
            (node,) = place.add_nodes(1, cpu="4")
            place.submit_one(workloads.pod("lost", scheduler="other", nodeName=node))
            place.drop_node(node)
            self._places[cluster] = place
        return self._places[cluster]


@pytest.fixture(scope="module")
def lost() -> Iterator[Lost]:
    with ExitStack() as stack:
        yield Lost(stack)


@pytest.fixture(autouse=True)
def begun(cluster: Scheduling, lost: Lost) -> None:
    """The minute passes while the other tests run."""
    lost.on(cluster)


def nodes_of(pods: list[Any]) -> set[str]:
    return {workloads.node_of(pod) for pod in pods}


def test_a_cordoned_node_takes_nobody_until_it_is_uncordoned(place: Place) -> None:
    free, cordoned = place.add_nodes(2, cpu="2")
    place.change_node(cordoned, {"spec": {"unschedulable": True}})
    place.wait_node(cordoned, takes_pods=False)
    place.add_gang("small", 2)
    assert nodes_of(place.wait_bound("small", 2)) == {free}
    place.add_gang("next", 2)
    place.wait_condition("next", "Reserved", "False", says="1 node(s) were unschedulable")

    place.change_node(cordoned, {"spec": {"unschedulable": None}})
    assert nodes_of(place.wait_bound("next", 2)) == {cordoned}


def test_a_cordoned_node_takes_those_that_bear_it_and_stops_nobody_else(place: Place) -> None:
    free, cordoned = place.add_nodes(2, cpu="2")
    place.change_node(cordoned, {"spec": {"unschedulable": True}})
    place.wait_node(cordoned, takes_pods=False)
    place.add_gang("bears", 2, cpu="2", tolerations=[{"operator": "Exists"}])
    place.add_gang("next", 2, cpu="2")
    assert nodes_of(place.wait_bound("bears", 2)) == {free, cordoned}

    place.delete_gang("bears")
    place.change_node(cordoned, {"spec": {"unschedulable": None}})
    assert nodes_of(place.wait_bound("next", 2)) == {free, cordoned}


def test_a_tainted_node_is_for_those_who_tolerate_it(place: Place) -> None:
    (plain,) = place.add_nodes(1, cpu="2")
    (tainted,) = place.add_nodes(1, cpu="2", taints=[TAINT])
    place.add_gang("plain", 2)
    place.add_gang("vision", 1, tolerations=[TOLERATION], nodeSelector=hostname(tainted))

    assert nodes_of(place.wait_bound("plain", 2)) == {plain}
    assert nodes_of(place.wait_bound("vision", 1)) == {tainted}

    place.add_gang("more", 1)
    place.wait_condition("more", "Reserved", "False", says="1 node(s) had untolerated taint")


def hostname(node: str) -> dict[str, str]:
    return {"kubernetes.io/hostname": node}


def test_a_gang_waits_whole_for_nodes_with_its_label(place: Place) -> None:
    place.add_nodes(1, cpu="4", labels={"disk": "ssd"})
    place.add_nodes(1, cpu="4")
    place.add_gang("picky", 6, nodeSelector={"disk": "ssd"})
    place.wait_condition(
        "picky", "Reserved", "False", says="1 node(s) didn't match Pod's node affinity/selector"
    )
    assert not place.bound("picky")

    more = place.add_nodes(1, cpu="4", labels={"disk": "ssd"})
    assert set(more) < nodes_of(place.wait_bound("picky", 6))


def test_a_label_that_comes_later_counts(place: Place) -> None:
    (node,) = place.add_nodes(1, cpu="4")
    place.add_gang("picky", 2, nodeSelector={"disk": "ssd"})
    place.wait_condition("picky", "Reserved", "False", reason="NoNodeFits")

    place.change_node(node, {"metadata": {"labels": {"disk": "ssd"}}})
    place.wait_bound("picky", 2)


def test_a_node_that_grows_takes_the_waiting_gang(place: Place) -> None:
    (node,) = place.add_nodes(1, cpu="2")
    place.add_gang("gang", 3)
    place.wait_condition("gang", "Reserved", "False")

    room = nodes.node(node, cpu="3")["status"]
    place.api.patch(NODES, node, {"status": room}, subresource="status")
    place.wait_bound("gang", 3)


def test_extended_resources_are_counted(place: Place) -> None:
    place.add_nodes(2, cpu="8", extra={"example.com/gpu": "4"})
    wants = {"limits": {"example.com/gpu": "3", "cpu": "1"}}
    place.add_gang("two", 2, resources=wants)
    place.wait_bound("two", 2)
    place.add_gang("third", 1, resources=wants)
    place.wait_condition("third", "Reserved", "False", says="example.com/gpu asked 3, free 2 of 8")


def test_what_a_pod_asks_for_the_whole_of_it_is_counted(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    whole = {"requests": {"cpu": "3"}}
    pods = workloads.members("two", 2, cpu="500m")
    for pod in pods:
        pod["spec"]["resources"] = whole
    place.add_group("two", 2)
    place.submit(pods)
    assert len(nodes_of(place.wait_bound("two", 2))) == 2
    place.add_gang("third", 1, cpu="2")
    place.wait_condition("third", "Reserved", "False", says="cpu asked 2, free 1;")


def test_a_pod_waits_for_the_claim_that_it_names(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "nope"}}
    place.add_group("data", 1)
    place.submit_ungated("data", 1, volumes=[volume])
    place.wait_pod_condition(
        "data-0",
        "PodScheduled",
        "False",
        says='persistentvolumeclaim "nope" not found. not found',
    )
    why = f"claim {place.name}/nope does not exist"
    place.wait_condition("data", "Reserved", "False", reason="Volumes", says=why)


def test_a_pod_waits_until_the_claim_that_it_names_is_bound(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    claim = workloads.item(
        CLAIMS,
        "data",
        spec={
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "none-such",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    )
    place.api.create(claim, resource=CLAIMS, namespace=place.name)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    place.add_group("data", 1)
    place.submit_ungated("data", 1, volumes=[volume])
    place.wait_pod_condition(
        "data-0",
        "PodScheduled",
        "False",
        says="0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
    )
    why = f"StorageClass none-such of claim {place.name}/data does not exist"
    place.wait_condition("data", "Reserved", "False", reason="Volumes", says=why)
    assert not place.bound("data")


def test_a_node_takes_no_more_pods_than_it_says(place: Place) -> None:
    place.add_nodes(1, cpu="8", pods=2)
    place.add_gang("three", 3, cpu="100m")
    place.wait_condition("three", "Reserved", "False", says="node(s) pod number exceeded")
    assert not place.bound("three")


def test_pods_of_a_node_that_is_gone_go_after_a_while(cluster: Scheduling, lost: Lost) -> None:
    """Whoever made them makes others only then."""
    place = lost.on(cluster)
    place.api.until(PODS, lambda left: not left, namespace=place.name, timeout_s=90, what="gone")
