"""numa-aware: pods with whole cpus go where their kubelet takes them, and are told which cpus."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.installation import ROOT, documents
from tests.clusters.place import Place
from tests.clusters.resources import NUMA_TOPOLOGIES as TOPOLOGIES
from tests.scenarios.confs import conf

POLICY, DECISION = "volcano.sh/numa-topology-policy", "volcano.sh/topology-decision"
SINGLE = "single-numa-node"


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return conf("predicates", "proportion", "nodeorder", "numa-aware")


class Machines:
    """Nodes of two NUMA nodes with four cpus each, and what their agents say."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._names: list[str] = []

    def add(self, count: int = 1, *, free: str = "0-7", policy: str = SINGLE) -> list[str]:
        names = self._place.add_nodes(count, cpu="8")
        for name in names:
            self._place.api.create(topology(name, free=free, policy=policy), resource=TOPOLOGIES)
            self._names.append(name)
        return names

    def says(self, name: str, free: str) -> None:
        """The agent of the node says that these cpus are free."""
        spec = {"numares": {"cpu": {"allocatable": free}}}
        self._place.api.patch(TOPOLOGIES, name, {"spec": spec})

    def clear(self) -> None:
        for name in self._names:
            self._place.api.delete(TOPOLOGIES, name)


@pytest.fixture
def machines(place: Place) -> Iterator[Machines]:
    made = Machines(place)
    yield made
    made.clear()


def topology(name: str, *, free: str, policy: str) -> Object:
    """As an agent writes it that has seen one pod, which shares its cpus."""
    cpus = {str(n): {"numa": n // 4, "socket": n // 4, "core": n} for n in range(8)}
    return {
        "apiVersion": TOPOLOGIES.api_version,
        "kind": TOPOLOGIES.kind,
        "metadata": {"name": name},
        "spec": {
            "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": policy},
            "cpuDetail": cpus,
            "numares": {"cpu": {"allocatable": free, "capacity": 8}},
            "podAllocations": [{"name": "dns", "namespace": "kube-system", "uid": "dns"}],
        },
    }


def add_gang(
    place: Place, name: str, count: int, *, cpu: int, rank: str = "", **fields: Any
) -> None:
    """Pods of the class Guaranteed that name a policy, of the priority class ``rank``."""
    ranked = {"priorityClassName": rank} if rank else {}
    place.add_group(name, count, **ranked)
    resources = {"limits": {"cpu": str(cpu), "memory": "64Mi"}}
    pods = workloads.members(name, count, resources=resources, **ranked, **fields)
    for pod in pods:
        pod["metadata"]["annotations"][POLICY] = SINGLE
    place.submit(pods)


def decisions(place: Place, group: str) -> list[Object]:
    told = [pod["metadata"]["annotations"][DECISION] for pod in place.bound(group)]
    return sorted(map(json.loads, told), key=str)


def test_members_share_out_the_numa_nodes_and_are_told(place: Place, machines: Machines) -> None:
    """Each node has cpus for two members of three, on a NUMA node each."""
    names = machines.add(2)
    add_gang(place, "ours", 4, cpu=3)
    found = [workloads.node_of(pod) for pod in place.wait_bound("ours", 4)]
    assert sorted(found) == sorted([*names, *names])
    assert decisions(place, "ours") == [{"numa": {n: {"cpu": "3"}}} for n in "0011"]


def test_the_pods_of_the_example_have_their_cpus_on_one_numa_node(
    place: Place, machines: Machines
) -> None:
    (job,) = documents(ROOT / "examples" / "scheduling" / "numa.yaml")
    [task] = job["spec"]["tasks"]
    [container] = task["template"]["spec"]["containers"]
    machines.add(free="3,4")
    place.add_group("ours", job["spec"]["minAvailable"])
    pods = workloads.members("ours", task["replicas"], resources=container["resources"])
    for pod in pods:
        pod["metadata"]["annotations"][POLICY] = task["topologyPolicy"]
    place.submit(pods)
    place.wait_bound("ours", 2)
    assert decisions(place, "ours") == [{"numa": {n: {"cpu": "1"}}} for n in "01"]


def test_a_gang_waits_with_numbers_until_the_agent_says_that_cpus_are_free(
    place: Place, machines: Machines
) -> None:
    (name,) = machines.add(free="0-2,4-6")
    add_gang(place, "ours", 1, cpu=4)
    place.wait_summary("ours", "no NUMA node with 4 free cpus; largest has 3")
    machines.says(name, "0-2,4-7")
    place.wait_bound("ours", 1)
    assert decisions(place, "ours") == [{"numa": {"1": {"cpu": "4"}}}]


def test_a_node_of_another_policy_is_not_taken(place: Place, machines: Machines) -> None:
    place.add_nodes(1, cpu="8")
    machines.add(policy="best-effort")
    add_gang(place, "ours", 1, cpu=2)
    place.wait_summary("ours", f"topology policy {SINGLE} asked, nodes have best-effort")


def test_cpus_of_a_pod_that_has_gone_are_given_again(place: Place, machines: Machines) -> None:
    machines.add()
    add_gang(place, "first", 2, cpu=3)
    place.wait_bound("first", 2)
    add_gang(place, "second", 1, cpu=2)
    place.wait_summary("second", "no NUMA node with 2 free cpus; largest has 1")
    place.delete_gang("first")
    place.wait_bound("second", 1)
