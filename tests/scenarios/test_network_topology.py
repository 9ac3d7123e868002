r"""HyperNodes: gangs, partitions and sub-groups that ask for one domain of the network.

The tree is that of Volcano's own scenarios, whose cases the names of the tests follow::

                      s6
               /              \
             s4                s5
          /      \          /      \
        s0        s1      s2        s3
       /  \      /  \    /  \      /  \
      n0  n1    n2  n3  n4  n5    n6  n7
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.model.topology import ALLOCATED
from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.scenarios.confs import conf

PART = "example.com/part"
_SIZE = 7
_WAIT_S = 10.0
_LEAVES = ("s0", "s1", "s2", "s3")
_BELOW = {"s4": ("s0", "s1"), "s5": ("s2", "s3"), "s6": ("s4", "s5")}
_TIERS = {"s4": 2, "s5": 2, "s6": 3}
_NAMES = {1: "rack", 2: "row", 3: "hall"}

Asked = Mapping[str, Any]
"""A ``networkTopology`` as it is written."""

SOFT: Asked = {"mode": "soft"}


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return conf("predicates", "proportion", "nodeorder", "binpack", "network-topology-aware")


def hard(tier: int) -> Asked:
    return {"mode": "hard", "highestTierAllowed": tier}


def named(tier: int) -> Asked:
    return {"mode": "hard", "highestTierName": _NAMES[tier]}


def parts(size: int, least: int, topology: Asked | None) -> list[dict[str, Any]]:
    """What a partitionPolicy of a vcjob becomes: parts of ``size``, ``least`` of them whole."""
    policy = {
        "name": "parts",
        "labelSelector": {"matchExpressions": [{"key": PART, "operator": "Exists"}]},
        "matchLabelKeys": [PART],
        "subGroupSize": size,
        "minSubGroups": least,
    }
    return [policy | ({"networkTopology": topology} if topology else {})]


@dataclass(frozen=True)
class Case:
    """``pods`` of ``cpu`` each beside what is in use; ``used``: cores by the number of a node."""

    pods: int
    cpu: int
    topology: Asked | None = None
    used: Mapping[int, int] = field(default_factory=dict)
    minimum: int | None = None
    part: int = 0
    least: int = 0
    of_part: Asked | None = None


class Network:
    """The tree, in a place."""

    def __init__(self, place: Place, used: Mapping[int, int]) -> None:
        self._place = place
        self.nodes = place.add_nodes(8, cpu=str(_SIZE))
        self._full: dict[str, str] = {}
        for at, name in enumerate(_LEAVES):
            members = self.nodes[2 * at : 2 * at + 2]
            self._full[name] = place.add_hyper_node(name, 1, *members, tier_name=_NAMES[1])
        for name, below in _BELOW.items():
            members = [self._full[each] for each in below]
            tier = _TIERS[name]
            self._full[name] = place.add_hyper_node(name, tier, *members, tier_name=_NAMES[tier])
        for at, cpu in used.items():
            node = self.nodes[at]
            pod = workloads.pod(f"used-{at}", cpu=str(cpu), scheduler="other", nodeName=node)
            place.submit_one(pod)
        wait_until(lambda: self._charged() == set(used), timeout_s=_WAIT_S, what="all in use")

    def _charged(self) -> set[int]:
        """The numbers of the nodes of which the extender knows that something is in use."""
        seen = self._place.cluster.extender.get("/debug/snapshot")["nodes"]
        return {at for at, node in enumerate(self.nodes) if seen[node]["charges"]}

    def nodes_of(self, group: str) -> list[int]:
        """The numbers of the nodes that the members of a group are on, each as often as it is."""
        return sorted(self.nodes.index(workloads.node_of(pod)) for pod in self._place.bound(group))

    def leaves_of_parts(self, group: str) -> list[set[str]]:
        """For each part that has places the leaves that it is in."""
        found: dict[str, set[str]] = defaultdict(set)
        for pod in self._place.bound(group):
            at = self.nodes.index(workloads.node_of(pod))
            found[pod["metadata"]["labels"][PART]].add(_LEAVES[at // 2])
        return [found[part] for part in sorted(found)]

    def wait_domain(self, group: str, name: str) -> None:
        """Wait until the annotation of the group says that it is in that HyperNode."""

        def told() -> str:
            annotations = self._place.group(group)["metadata"].get("annotations", {})
            return str(annotations.get(ALLOCATED, "")).removeprefix(f"{self._place.name}-")

        with contextlib.suppress(AssertionError):
            wait_until(lambda: told() == name, timeout_s=_WAIT_S, what=name)
        assert told() == name, self.nodes_of(group)


def submitted(place: Place, case: Case) -> Network:
    """The group ``g`` of the case in its network."""
    network = Network(place, case.used)
    spec: dict[str, Any] = {}
    if case.topology:
        spec["networkTopology"] = case.topology
    if case.part:
        spec["subGroupPolicy"] = parts(case.part, case.least, case.of_part)
    place.add_group("g", case.pods if case.minimum is None else case.minimum, **spec)
    place.submit(_pods(case))
    return network


def _pods(case: Case) -> Iterator[dict[str, Any]]:
    for at in range(case.pods):
        pod = workloads.pod(f"g-{at}", group="g", cpu=str(case.cpu))
        if case.part:
            pod["metadata"]["labels"][PART] = f"p{at // case.part}"
        yield pod


_EVERYWHERE = dict.fromkeys(range(8), 4)
"""Four cores in use on every node: three are free."""

WHOLE = {
    "in the rack that is fuller already": (
        Case(2, 2, hard(1), {2: 1, 3: 1}),
        "s1",
    ),
    "in a rack with room, though another one is fuller": (
        Case(2, 4, hard(1), {2: 4, 3: 4, 4: 1}),
        "s2",
    ),
    "in a rack, though a row would do": (
        Case(4, 3, hard(2), {0: 4, 1: 4, 2: 4, 3: 4}),
        "s2",
    ),
    "in a row, as no rack has room": (
        Case(3, 3, hard(2), {**_EVERYWHERE, 1: 6, 3: 5}),
        "s5",
    ),
    "in the hall, as no row has room": (
        Case(5, 3, hard(3), _EVERYWHERE),
        "s6",
    ),
    "in the rack that its tier's name allows": (
        Case(3, 3, named(1), {**_EVERYWHERE, 6: 1}),
        "s3",
    ),
    "in the row that its tier's name allows": (
        Case(3, 3, named(2), {**_EVERYWHERE, 5: 7}),
        "s5",
    ),
    "soft: in a rack, as one has room": (
        Case(2, 2, SOFT, {0: 6, 1: 4, 2: 6, 3: 4, 4: 6, 5: 2, 6: 6, 7: 4}),
        "s2",
    ),
    "soft: in a row, as no rack has room": (
        Case(2, 2, SOFT, {0: 6, 1: 4, 2: 7, 3: 7, 4: 6, 5: 5, 6: 6, 7: 4}),
        "s5",
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_gang_is_placed(place: Place, name: str) -> None:
    case, domain = WHOLE[name]
    network = submitted(place, case)
    place.wait_bound("g", case.pods)
    network.wait_domain("g", domain)


TOO_SMALL = {
    "no rack has room": (
        Case(2, 2, hard(1), {**dict.fromkeys(range(8), 6), 1: 5, 3: 5, 5: 5, 7: 5}),
        "no domain of tier <= 1 has room for 2 pods of cpu 2",
    ),
    "no row has room, though the hall has": (
        Case(5, 3, hard(2), _EVERYWHERE),
        "no domain of tier <= 2 has room for 5 pods of cpu 3",
    ),
    "no rack of the tier's name has room": (
        Case(3, 3, named(1), _EVERYWHERE),
        "no domain of tier <= 1 (rack) has room for 3 pods of cpu 3",
    ),
}


@pytest.mark.parametrize("name", TOO_SMALL)
def test_a_gang_waits_whole_as(place: Place, name: str) -> None:
    case, says = TOO_SMALL[name]
    submitted(place, case)
    place.wait_summary("g", says)
    assert not place.bound("g")


PARTED = {
    "all parts in the rack of the gang": (
        Case(4, 2, hard(1), {2: 1, 3: 1}, part=2, least=2, of_part=hard(1)),
        "s1",
        [{"s1"}, {"s1"}],
    ),
    "each part in a rack of the gang's row": (
        Case(4, 3, hard(2), {**_EVERYWHERE, 1: 1, 5: 7}, part=2, least=2, of_part=hard(1)),
        "s4",
        [{"s0"}, {"s1"}],
    ),
    "in one rack, as the row of the gang has one with room for all": (
        Case(4, 3, hard(2), {**_EVERYWHERE, 6: 1, 7: 1}, part=2, least=2, of_part=hard(1)),
        "s3",
        [{"s3"}, {"s3"}],
    ),
    "a part that may lie anywhere in two racks of the gang's row": (
        Case(4, 3, hard(2), {**_EVERYWHERE, 1: 7, 2: 1, 5: 7}, part=2, least=2),
        "s4",
        [{"s0", "s1"}, {"s1"}],
    ),
    "soft parts close together in the gang's row": (
        Case(4, 3, hard(2), _EVERYWHERE, part=2, least=2, of_part=SOFT),
        "s4",
        [{"s0"}, {"s1"}],
    ),
    "parts of a soft gang in racks of different rows": (
        Case(
            4,
            3,
            SOFT,
            {0: 4, 1: 4, 2: 7, 3: 7, 4: 4, 5: 4, 6: 7, 7: 7},
            part=2,
            least=2,
            of_part=hard(1),
        ),
        "s6",
        [{"s0"}, {"s2"}],
    ),
    "parts of a gang that asks for nothing in racks of different rows": (
        Case(
            4,
            3,
            None,
            {0: 4, 1: 4, 2: 7, 3: 7, 4: 4, 5: 4, 6: 7, 7: 7},
            part=2,
            least=2,
            of_part=hard(1),
        ),
        None,
        [{"s0"}, {"s2"}],
    ),
    "as many parts as must be and no more where the rack is full": (
        Case(6, 3, hard(1), {2: 1, 3: 1}, minimum=4, part=2, least=2, of_part=hard(1)),
        "s1",
        [{"s1"}, {"s1"}],
    ),
    "its parts in a row, as they need more room than the minimum": (
        Case(8, 3, hard(2), {2: 1, 3: 1, 4: 4}, minimum=4, part=2, least=4, of_part=hard(1)),
        "s4",
        [{"s0"}, {"s0"}, {"s1"}, {"s1"}],
    ),
}


@pytest.mark.parametrize("name", PARTED)
def test_a_gang_in_parts_has(place: Place, name: str) -> None:
    case, domain, leaves = PARTED[name]
    network = submitted(place, case)
    place.wait_bound("g", case.pods if case.minimum is None else case.minimum)
    if domain:
        network.wait_domain("g", domain)
    if leaves:
        assert sorted(map(sorted, network.leaves_of_parts("g"))) == sorted(map(sorted, leaves))


PARTED_TOO_SMALL = {
    "no rack has room for any part": (
        Case(2, 4, hard(1), dict.fromkeys(range(8), 6), part=1, least=2, of_part=hard(1)),
        "no domain of tier <= 1 has room for 1 pod of cpu 4",
    ),
    "every rack has room for one part only": (
        Case(2, 4, hard(1), {0: 6, 2: 6, 4: 6, 6: 6}, part=1, least=2, of_part=hard(1)),
        "no domain of tier <= 1 has room for 2 pods of cpu 4",
    ),
    "the row has room in pieces for pods and no rack has any for a part": (
        Case(4, 4, hard(2), {0: 6, 2: 6, 4: 6, 6: 6}, part=2, least=2, of_part=hard(1)),
        "no domain of tier <= 1 has room for 2 pods of cpu 4",
    ),
    "a part of a soft gang finds no rack": (
        Case(4, 4, SOFT, {0: 6, 2: 6, 4: 6, 6: 6}, part=2, least=2, of_part=hard(1)),
        "no domain of tier <= 1 has room for 2 pods of cpu 4",
    ),
    "a rack has room for enough parts and not for the minimum": (
        Case(12, 3, hard(1), minimum=6, part=2, least=2, of_part=hard(1)),
        "would have room for 4 if nothing ran there; never: more than any domain has",
    ),
    "a rack has room for the minimum and not for enough parts": (
        Case(12, 3, hard(1), minimum=4, part=2, least=4, of_part=hard(1)),
        "no domain of tier <= 1 has room for 8 pods of cpu 3",
    ),
}


@pytest.mark.parametrize("name", PARTED_TOO_SMALL)
def test_a_gang_in_parts_waits_whole_as(place: Place, name: str) -> None:
    case, says = PARTED_TOO_SMALL[name]
    submitted(place, case)
    place.wait_summary("g", says)
    assert not place.bound("g")
