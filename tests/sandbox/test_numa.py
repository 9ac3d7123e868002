"""Simulated machines with NUMA nodes give cpus away, refuse pods and say so, as real ones do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from app.model.numa import Cpus, NumaPolicy
from app.sandbox.apiserver.deletion import DeleteOptions
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.clock import SimClock
from app.sandbox.kubelet import Kubelet
from app.sandbox.nodes import NumaSpec
from app.sandbox.store_kubelet_api import StoreKubeletApi
from app.wire import manifests
from app.wire.documents import Document
from app.wire.objects.numatopologies import decode_numatopology
from tests.sandbox.documents import at, bind_pod, node, pod, stored_pod
from tests.wire.manifests import encode

TOPOLOGIES = "nodeinfo.volcano.sh/numatopologies"
AGENT_S = 1.0

Scenario = Callable[["Machine", SimClock], Awaitable[None]]


class Machine:
    """Node n1 with two NUMA nodes of four cpus each."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    def start(self, name: str, *cpus: str, klass: str = "Guaranteed") -> None:
        kind = "limits" if klass == "Guaranteed" else "requests"
        asked = [{kind: {"cpu": each, "memory": "64Mi"}} for each in cpus]
        document = pod(name, restartPolicy="Never")
        document["spec"]["containers"] = [
            {"name": f"c{index}", "image": "busybox", "resources": each}
            for index, each in enumerate(asked)
        ]
        self.server.create(document)
        bind_pod(self.server, name, "n1")

    def says(self) -> Document:
        found = self.server.store.get(TOPOLOGIES, at("n1", ""))
        assert found is not None
        spec: Document = found["spec"]
        return spec

    def free(self) -> str:
        return str(self.says()["numares"]["cpu"]["allocatable"])

    def held(self) -> dict[str, list[str]]:
        return {
            pod["name"]: [it["allocations"]["cpu"] for it in pod["containerAllocations"]]
            for pod in self.says()["podAllocations"]
        }

    def why(self, name: str) -> str:
        return str(stored_pod(self.server, name)["status"].get("reason", ""))


def run(scenario: Scenario, *, policy: str = "single-numa-node") -> None:
    async def main() -> None:
        clock = SimClock()
        server = ApiServer(clock=clock, crds=manifests.crd_documents(), seed=1)
        server.create(node("n1", cpus="8"))
        kubelet = Kubelet(
            StoreKubeletApi(server), clock=clock, numa=NumaSpec(2, NumaPolicy(policy))
        )
        serving = asyncio.create_task(kubelet.run())
        await clock.settle()
        try:
            await scenario(Machine(server), clock)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(main())


def test_a_machine_tells_its_numa_nodes_in_words_that_the_planner_reads() -> None:
    async def scenario(machine: Machine, clock: SimClock) -> None:
        await clock.advance(AGENT_S)
        stored = machine.server.store.get(TOPOLOGIES, at("n1", ""))
        read = decode_numatopology(encode(stored))
        assert (read.layout.policy, read.layout.static) == (NumaPolicy.SINGLE_NUMA_NODE, True)
        assert (read.layout.ids, read.layout.sizes, read.free) == ((0, 1), (4, 4), (4, 4))

    run(scenario)


def test_pods_have_their_cpus_by_number_until_they_end() -> None:
    async def scenario(machine: Machine, clock: SimClock) -> None:
        machine.start("a", "3")
        machine.start("b", "2", "1")
        await clock.advance(AGENT_S)
        assert machine.held() == {"a": ["0-2"], "b": ["4-5", "3"]}
        assert machine.free() == "6-7"
        machine.server.delete("/pods", at("a"), DeleteOptions(grace_seconds=0))
        await clock.advance(AGENT_S)
        assert (machine.held(), machine.free()) == ({"b": ["4-5", "3"]}, "0-2,6-7")

    run(scenario)


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("single-numa-node", "TopologyAffinityError"),
        ("restricted", "TopologyAffinityError"),
        ("best-effort", ""),
        ("none", ""),
    ],
)
def test_a_pod_fails_that_its_kubelet_does_not_take(policy: str, reason: str) -> None:
    """Before it come two pods of three cpus each."""

    async def scenario(machine: Machine, clock: SimClock) -> None:
        for name, asked in ("a", "3"), ("b", "3"), ("c", "2"):
            machine.start(name, asked)
        await clock.advance(AGENT_S)
        assert machine.why("c") == reason
        assert ("c" in machine.held()) == (not reason)

    run(scenario, policy=policy)


@pytest.mark.parametrize(
    ("cpus", "klass"), [("2", "Burstable"), ("1500m", "Guaranteed")], ids=["burstable", "broken"]
)
def test_pods_that_share_their_cpus_take_none(cpus: str, klass: str) -> None:
    async def scenario(machine: Machine, clock: SimClock) -> None:
        machine.start("a", cpus, klass=klass)
        await clock.advance(AGENT_S)
        assert stored_pod(machine.server, "a")["status"]["phase"] == "Running"
        assert (machine.held(), machine.free()) == ({}, "0-7")

    run(scenario)


def test_a_node_that_comes_back_gives_all_its_cpus_anew() -> None:
    async def scenario(machine: Machine, clock: SimClock) -> None:
        machine.start("a", "3")
        await clock.advance(AGENT_S)
        machine.server.delete("/nodes", at("n1", ""))
        await clock.advance(AGENT_S)
        machine.server.create(node("n1", cpus="4"))
        await clock.advance(AGENT_S)
        assert set(machine.says()["cpuDetail"]) == {"0", "1", "2", "3"}
        assert machine.held() == {}

    run(scenario)


def test_cpus_that_cannot_be_shared_out_evenly_are_those_of_the_first_numa_nodes() -> None:
    async def scenario(machine: Machine, clock: SimClock) -> None:
        machine.server.create(node("n2", cpus="7"))
        await clock.advance(AGENT_S)
        stored = machine.server.store.get(TOPOLOGIES, at("n2", ""))
        sizes: Cpus = decode_numatopology(encode(stored)).layout.sizes
        assert sizes == (4, 3)

    run(scenario)
