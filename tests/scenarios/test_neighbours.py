"""Rules about other pods: anti-affinity, affinity, spread, ports. A gang keeps them as a whole."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.place import Place
from tests.clusters.resources import EVENTS

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def term(group: str, key: str = HOST) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"group": group}}, "topologyKey": key}


def apart(group: str) -> dict[str, Any]:
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term(group)]}
    return {"affinity": {"podAntiAffinity": terms}}


def together(group: str, key: str) -> dict[str, Any]:
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term(group, key)]}
    return {"affinity": {"podAffinity": terms}}


def spread(group: str) -> dict[str, Any]:
    return workloads.spread_evenly({"group": group})


def counts(pods: list[Object]) -> list[int]:
    return sorted(Counter(workloads.node_of(pod) for pod in pods).values())


def test_members_that_avoid_each_other_get_a_node_each(place: Place) -> None:
    place.add_nodes(3, cpu="4")
    place.add_gang("apart", 3, **apart("apart"))
    assert counts(place.wait_bound("apart", 3)) == [1, 1, 1]


def test_a_gang_that_must_be_apart_waits_whole_for_enough_nodes(place: Place) -> None:
    place.add_nodes(3, cpu="4")
    place.add_gang("apart", 4, **apart("apart"))
    place.wait_condition(
        "apart", "Reserved", "False", says="node(s) didn't match pod anti-affinity rules"
    )
    assert not place.bound("apart")

    place.add_nodes(1, cpu="4")
    assert counts(place.wait_bound("apart", 4)) == [1, 1, 1, 1]


def test_a_gang_that_must_be_together_takes_one_zone(place: Place) -> None:
    place.add_nodes(2, cpu="2", labels={ZONE: "east"})
    west = place.add_nodes(2, cpu="3", labels={ZONE: "west"})
    place.add_gang("close", 5, **together("close", ZONE))
    bound = place.wait_bound("close", 5)
    assert {workloads.node_of(pod) for pod in bound} == set(west)


def test_members_are_spread_evenly(place: Place) -> None:
    place.add_nodes(2, cpu="8")
    place.add_gang("even", 6, **spread("even"))
    assert counts(place.wait_bound("even", 6)) == [3, 3]


def test_members_on_their_way_do_not_keep_one_another_out(place: Place) -> None:
    """kube-scheduler counts a nominated pod on the node that it looks at and on no other."""
    place.add_nodes(4, cpu="6")
    place.add_gang("even", 24, **spread("even"))
    assert counts(place.wait_bound("even", 24)) == [6, 6, 6, 6]
    told = place.api.list(EVENTS, namespace=place.name, field_selector="reason=FailedScheduling")
    assert told == []


def test_members_that_want_the_same_port_get_a_node_each(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    pods = workloads.members("port", 2)
    for pod in pods:
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    place.add_group("port", 2)
    place.submit(pods)
    assert counts(place.wait_bound("port", 2)) == [1, 1]


def listening(group: str, where: str, **spec: Any) -> list[Object]:
    """Two members whose container in the field ``where`` has a port of its own."""
    pods = workloads.members(group, 2, **spec)
    for pod in pods:
        container = {"name": "web", "image": "none", "ports": [{"containerPort": 80}]}
        if where == "initContainers":
            container["restartPolicy"] = "Always"
        pod["spec"].setdefault(where, []).append(container)
    return pods


@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_on_the_network_of_the_node_every_port_is_the_nodes(place: Place, where: str) -> None:
    place.add_nodes(2, cpu="4")
    place.add_group("web", 2)
    place.submit(listening("web", where, hostNetwork=True))
    assert counts(place.wait_bound("web", 2)) == [1, 1]


def test_the_same_port_of_two_addresses_is_on_one_node(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    pods = workloads.members("port", 2)
    for number, pod in enumerate(pods):
        port = {"containerPort": 80, "hostPort": 8080, "hostIP": f"127.0.0.{number + 1}"}
        pod["spec"]["containers"][0]["ports"] = [port]
    place.add_group("port", 2)
    place.submit(pods)
    assert counts(place.wait_bound("port", 2)) == [2]


def test_pods_of_others_are_heeded(place: Place) -> None:
    taken, free = place.add_nodes(2, cpu="4")
    place.submit_one(workloads.pod("foreign", group="foreign", scheduler="other", nodeName=taken))
    place.add_gang("shy", 2, cpu="500m", **apart("foreign"))
    bound = place.wait_bound("shy", 2)
    assert {workloads.node_of(pod) for pod in bound} == {free}


def test_pods_of_selected_namespaces_are_near(place: Place) -> None:
    taken, _ = place.add_nodes(2, cpu="4")
    place.submit_one(workloads.pod("foreign", group="foreign", scheduler="other", nodeName=taken))
    ours = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place.name}}}
    near = {"requiredDuringSchedulingIgnoredDuringExecution": [term("foreign") | ours]}
    place.add_gang("close", 2, cpu="500m", affinity={"podAffinity": near})
    assert {workloads.node_of(pod) for pod in place.wait_bound("close", 2)} == {taken}


def test_only_pods_of_the_same_revision_are_avoided(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    keyed = term("app") | {"matchLabelKeys": ["revision"]}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [keyed]}}

    def member(name: str, group: str, revision: str) -> Object:
        made = workloads.pod(name, group=group, affinity=rule)
        made["metadata"]["labels"]["revision"] = revision
        return made

    place.add_group("app", 2)
    place.submit([member("app-0", "app", "old"), member("app-1", "app", "new")])
    assert counts(place.wait_bound("app", 2)) == [2]

    place.add_group("more", 1)
    place.submit_one(member("more-0", "more", "new"))
    place.wait_condition(
        "more", "Reserved", "False", says="node(s) didn't match pod anti-affinity rules"
    )


def test_only_pods_of_the_same_revision_are_spread(place: Place) -> None:
    full, _ = place.add_nodes(2, cpu="4")
    pods = workloads.members("app", 4, **workloads.spread_evenly({"group": "app"}))
    for pod in pods:
        pod["spec"]["topologySpreadConstraints"][0]["matchLabelKeys"] = ["revision"]
        pod["metadata"]["labels"]["revision"] = "new"
    old = [workloads.pod(f"old-{n}", group="app", scheduler="other") for n in range(2)]
    for pod in old:
        pod["metadata"]["labels"]["revision"] = "old"
        pod["spec"]["nodeName"] = full
    place.submit(old)
    place.add_group("app", 4)
    place.submit(pods)
    bound = place.wait_bound("app", 6)
    assert counts([pod for pod in bound if pod["metadata"]["name"].startswith("app")]) == [2, 2]


@pytest.mark.parametrize("gated", [True, False])
def test_workers_are_near_a_server_that_asks_for_nothing(place: Place, gated: bool) -> None:
    """No member is on a node yet: kube-scheduler refuses the workers before the server's Bind."""
    place.add_nodes(2, cpu="4")
    server = workloads.pod("near-server", group="near")
    server["metadata"]["labels"]["part"] = "server"
    to_server = {"labelSelector": {"matchLabels": {"part": "server"}}, "topologyKey": HOST}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [to_server]}}
    workers = [workloads.pod(f"near-{n}", group="near", affinity=near) for n in range(3)]
    for pod in (*workers, server):
        pod["metadata"]["annotations"] |= {} if gated else workloads.UNGATED
    place.add_group("near", 4)
    for pod in (*workers, server):
        place.submit_one(pod)
    assert counts(place.wait_bound("near", 4)) == [4]


def test_pods_keep_off_those_that_do_not_want_them(place: Place) -> None:
    taken, free = place.add_nodes(2, cpu="4")
    lonely = workloads.pod("lonely", scheduler="other", nodeName=taken, **apart("noisy"))
    place.submit_one(lonely)
    place.add_gang("noisy", 2, cpu="500m")
    bound = place.wait_bound("noisy", 2)
    assert {workloads.node_of(pod) for pod in bound} == {free}
