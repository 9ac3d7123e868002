"""Discovery adds, changes and removes HyperNodes, and jobs get their places by what it found."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from tests.clusters import workloads
from tests.clusters.client import Object, Objects
from tests.clusters.resources import (
    CONFIG_MAPS,
    EVENTS,
    HYPER_NODES,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
)
from tests.clusters.rig import NAMESPACE
from tests.clusters.ufm import Ufm
from tests.kube.server import ScriptedServer
from tests.scenarios.jobs.ground import Ground, ground
from tests.scenarios.jobs.shapes import make_job, up

__all__ = ["ground"]

pytestmark = pytest.mark.timeout(200)

CONF = "volcano-controller-configmap"
SECRET = "ufm-credentials"
SOURCE = "volcano.sh/network-topology-source"
RACK = "discovery.example/rack"
_JOB = "volcano.sh/job-name"
_WAIT_S = 60.0
_numbers = itertools.count(1)

Tree = Mapping[int, list[list[str]]]
"""Sorted members of HyperNodes by tier."""


@dataclass
class Network:
    """What configures discovery on a cluster, and what it has found there."""

    ground: Ground
    names: list[str] = field(default_factory=list)

    def configure(self, *entries: Object, text: str = "") -> None:
        """Write the ConfigMap."""
        conf = text or yaml.safe_dump({"networkTopologyDiscovery": list(entries)})
        data = {"volcano-controller.conf": conf}
        api = self.ground.api
        if api.find(CONFIG_MAPS, CONF, namespace=NAMESPACE) is None:
            item = workloads.item(CONFIG_MAPS, CONF, data=data)
            api.create(item, resource=CONFIG_MAPS, namespace=NAMESPACE)
        else:
            api.patch(CONFIG_MAPS, CONF, {"data": data}, namespace=NAMESPACE)

    def switch_off(self) -> None:
        """Discover nothing any more; an event says that this is known."""
        nothing = f"nothing-{next(_numbers)}"
        self.configure(entry(nothing))
        self.wait_told("UnsupportedSource", nothing)

    def wait(self, source: str, tree: Tree) -> None:
        """Wait until the source has found this, and no more."""
        self.ground.api.until(
            HYPER_NODES,
            lambda items: tree_of(items) == dict(tree),
            label_selector=f"{SOURCE}={source}",
            timeout_s=_WAIT_S,
            what=f"{tree} by {source}",
        )

    def wait_told(self, reason: str, said: str) -> None:
        """Wait for an event of the ConfigMap."""
        self.ground.api.until(
            EVENTS,
            lambda items: any(
                item["reason"] == reason and said in str(item.get("message")) for item in items
            ),
            namespace=NAMESPACE,
            timeout_s=_WAIT_S,
            what=f"{reason}: {said}",
        )

    def place(self, job: str) -> set[str]:
        """Run a job of two pods that need a node each, both in one domain of tier 1."""
        ground = self.ground
        box = {"name": "c", "image": "busybox", "command": ["sleep", "infinity"]}
        box["resources"] = {"requests": {"cpu": "40"}}  # type: ignore[assignment]
        topology = {"mode": "hard", "highestTierAllowed": 1}
        task = up(2, pod={"containers": [box]})
        ground.submit(job, make_job(task, needs=2, networkTopology=topology))
        ground.wait(PODS, lambda pods: len(bound(pods, job)) == 2, what=f"{job} bound")
        pods = bound(ground.api.list(PODS, namespace=ground.name), job)
        return {workloads.node_of(pod) for pod in pods}

    def end(self, job: str) -> None:
        """Delete a job and wait for its pods."""
        self.ground.api.delete(JOBS, job, namespace=self.ground.name)
        self.ground.wait(PODS, lambda pods: not bound(pods, job), what=f"{job} gone")


def tree_of(items: Objects) -> dict[int, list[list[str]]]:
    """The members of HyperNodes by tier; of HyperNodes above others how many they have."""
    found: dict[int, list[list[str]]] = {}
    for item in items:
        members = item["spec"]["members"]
        names = sorted(each["selector"]["exactMatch"]["name"] for each in members)
        below = members[0]["type"] == "HyperNode"
        found.setdefault(item["spec"]["tier"], []).append([f"{len(names)}"] if below else names)
    return {tier: sorted(each) for tier, each in found.items()}


def bound(pods: Objects, job: str) -> Objects:
    """The pods of a job that have a node."""
    return [pod for pod in workloads.bound(pods) if pod["metadata"]["labels"].get(_JOB) == job]


@pytest.fixture
def network(ground: Ground) -> Iterator[Network]:
    """Four nodes, and no HyperNodes before and after the test."""
    api = ground.api
    if api.find(NAMESPACES, NAMESPACE) is None:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        api.create(space, resource=NAMESPACES)
    mine = [item["metadata"]["name"] for item in api.list(NODES)]
    made = Network(ground, sorted(each for each in mine if each.startswith(ground.name))[-4:])
    try:
        yield made
    finally:
        api.delete_all(JOBS, namespace=ground.name)
        ground.wait_none(JOBS, PODS)
        made.switch_off()
        api.delete(CONFIG_MAPS, CONF, namespace=NAMESPACE)
        api.delete_all(HYPER_NODES)


def entry(source: str, **config: Any) -> Object:
    """An enabled source that is asked each second."""
    return {"source": source, "enabled": True, "interval": "1s", "config": config}


def test_ufm_tells_the_domains_and_what_it_tells_is_followed(
    network: Network, tmp_path: Path
) -> None:
    a, b, c, d = network.names
    api = network.ground.api
    with Ufm(tmp_path) as ufm:
        api.create(ufm.secret(SECRET), resource=SECRETS, namespace=NAMESPACE)
        try:
            ufm.tell([(a, "leaf1"), (b, "leaf1"), (c, "leaf2"), (d, "leaf2"), ("nas", "leaf1")])
            credentials = {"secretRef": {"name": SECRET, "namespace": NAMESPACE}}
            network.configure({**entry("ufm", endpoint=ufm.endpoint), "credentials": credentials})
            network.wait("ufm", {1: [[a, b], [c, d]], 2: [["2"]]})
            assert network.place("first") in ({a, b}, {c, d})
            network.end("first")

            ufm.tell([(a, "leaf1"), (d, "leaf1"), (b, "leaf2"), (c, "leaf2")])
            network.wait("ufm", {1: [[a, d], [b, c]], 2: [["2"]]})
            assert network.place("second") in ({a, d}, {b, c})
            network.end("second")

            ufm.fail(503)
            network.wait_told("DiscoveryFailed", "HTTP 503; its HyperNodes stay as they are")
            network.wait("ufm", {1: [[a, d], [b, c]], 2: [["2"]]})
            assert network.place("third") in ({a, d}, {b, c})
            network.end("third")

            ufm.tell([(a, "leaf1"), (d, "leaf1")])
            network.wait("ufm", {1: [[a, d]], 2: [["1"]]})
        finally:
            api.delete(SECRETS, SECRET, namespace=NAMESPACE)


def test_labels_tell_the_domains_and_the_configuration_is_followed(network: Network) -> None:
    a, b, c, d = network.names
    api = network.ground.api

    def label(node: str, rack: str | None) -> None:
        api.patch(NODES, node, {"metadata": {"labels": {RACK: rack}}})

    levels = [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]
    for node, rack in ((a, "r1"), (b, "r1"), (c, "r2"), (d, "r2")):
        label(node, rack)
    network.configure(entry("label", networkTopologyTypes={"racks": levels}))
    network.wait("label", {1: [[a, b], [c, d]]})
    assert network.place("first") in ({a, b}, {c, d})
    network.end("first")

    network.configure(text="networkTopologyDiscovery:\n- enabled: perhaps\n")
    network.wait_told("InvalidConfiguration", "line 2: networkTopologyDiscovery[0].enabled")
    label(a, None)
    label(c, "r1")
    network.wait("label", {1: [[b, c], [d]]})
    assert network.place("second") == {b, c}
    network.end("second")


def test_a_document_tells_the_domains_and_is_followed(network: Network) -> None:
    a, b, c, d = network.names

    def domains(**racks: list[str]) -> None:
        told = [{"name": name, "tier": 1, "nodes": found} for name, found in racks.items()]
        body = json.dumps({"domains": told})

        async def answer(_: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
            return web.Response(text=body, content_type="application/json")

        server.on("GET", "/tree", answer)

    with ScriptedServer() as server:
        domains(r1=[a, c], r2=[b, d])
        network.configure(entry("rest", url=f"{server.base}/tree"))
        network.wait_told("InsecureSource", "is not encrypted")
        network.wait("rest", {1: [[a, c], [b, d]]})
        assert network.place("first") in ({a, c}, {b, d})
        network.end("first")
        domains(r1=[a, b, c])
        network.wait("rest", {1: [[a, b, c]]})
        domains(r1=[a], r2=[a])
        network.wait_told("DiscoveryFailed", f"node {a} is in both r1 and r2")
        network.wait("rest", {1: [[a, b, c]]})
