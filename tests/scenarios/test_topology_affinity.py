"""Groups, sub-groups and members that are beside each other, apart, or spread over domains.

The tree is that of the scenarios of network topology: racks ``s0`` to ``s3`` of two nodes each, in
the rows ``s4`` and ``s5``.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.resources import POD_GROUPS
from tests.scenarios.confs import conf
from tests.scenarios.test_network_topology import PART, Network, hard, parts

_LEAVES = ("s0", "s1", "s2", "s3")
_WEB = {"matchLabels": {"app": "web"}}


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    return conf("predicates", "proportion", "nodeorder", "binpack", "group-topology-affinity")


def of_groups(kind: str, tier: int, how: str = "required", **term: Any) -> dict[str, Any]:
    said = {"podGroupSelector": _WEB, "topologyTier": tier, **term}
    return {"topologyAffinity": {kind: {how: [said]}}}


def add(place: Place, name: str, pods: int, *, cpu: int = 2, part: int = 0, **spec: Any) -> None:
    """A group that other terms select, and its pods, in parts of so many."""
    group = workloads.pod_group(name, min_member=pods, **spec)
    group["metadata"]["labels"] = {"app": "web"}
    place.api.create(group, resource=POD_GROUPS, namespace=place.name)
    made = [workloads.pod(f"{name}-{at}", group=name, cpu=str(cpu)) for at in range(pods)]
    for at, pod in enumerate(made if part else []):
        pod["metadata"]["labels"][PART] = f"p{at // part}"
    place.submit(made)


def racks_of(network: Network, group: str) -> set[str]:
    return {_LEAVES[node // 2] for node in network.nodes_of(group)}


@pytest.fixture
def network(place: Place) -> Network:
    """The tree; one core is in use in the rack ``s0``, so groups that may choose go there."""
    return Network(place, {0: 1})


@pytest.mark.parametrize(("tier", "racks"), [(1, {"s1", "s2", "s3"}), (2, {"s2", "s3"})])
def test_a_group_is_apart_from_another(
    place: Place, network: Network, tier: int, racks: set[str]
) -> None:
    add(place, "first", 2, networkTopology=hard(1))
    place.wait_bound("first", 2)
    assert racks_of(network, "first") == {"s0"}
    add(place, "g", 3, **of_groups("podGroupAntiAffinity", tier))
    place.wait_bound("g", 3)
    assert racks_of(network, "g") <= racks


def test_a_group_is_near_to_another(place: Place, network: Network) -> None:
    add(place, "first", 2, networkTopology=hard(1))
    place.wait_bound("first", 2)
    add(place, "g", 3, cpu=3, **of_groups("podGroupAffinity", 1))
    place.wait_summary("g", "/first has ")
    add(place, "h", 4, cpu=2, **of_groups("podGroupAffinity", 1))
    place.wait_bound("h", 4)
    assert racks_of(network, "h") == {"s0"}


def test_groups_that_keep_apart_wait_until_a_domain_is_free(place: Place, network: Network) -> None:
    rules = of_groups("podGroupAntiAffinity", 2)
    for name in ("x", "y"):
        add(place, name, 2, networkTopology=hard(2), **rules)
        place.wait_bound(name, 2)
    add(place, "z", 2, networkTopology=hard(2), **rules)
    place.wait_summary("z", "(2 of 2 domains)")
    assert not place.bound("z")
    place.delete_gang("x")
    place.wait_bound("z", 2)
    rows = [{int(rack[1]) // 2 for rack in racks_of(network, name)} for name in ("y", "z")]
    assert sorted(map(sorted, rows)) == [[0], [1]]


def test_a_preferred_term_bars_nothing(place: Place, network: Network) -> None:
    add(place, "first", 2, networkTopology=hard(1))
    place.wait_bound("first", 2)
    add(place, "g", 2, **of_groups("podGroupAntiAffinity", 1, "preferred", weight=100))
    place.wait_bound("g", 2)
    assert "s0" not in racks_of(network, "g")
    add(place, "all", 15, **of_groups("podGroupAntiAffinity", 1, "preferred", weight=100))
    place.wait_bound("all", 15)


def test_sub_groups_are_apart_in_racks_of_one_row(place: Place, network: Network) -> None:
    terms = {
        "subGroupAffinity": {"required": [{"subGroups": ["parts"], "topologyTier": 2}]},
        "subGroupAntiAffinity": {"required": [{"subGroups": ["parts"], "topologyTier": 1}]},
    }
    policy = parts(2, 2, hard(1))
    add(place, "g", 4, part=2, subGroupPolicy=policy, topologyAffinity=terms)
    place.wait_bound("g", 4)
    leaves = [set(each) for each in network.leaves_of_parts("g")]
    assert sorted(map(len, leaves)) == [1, 1]
    assert {int(leaf[1]) // 2 for leaf in set().union(*leaves)} in ({0}, {1})
    assert not set.intersection(*leaves)
    add(place, "h", 6, cpu=1, part=2, subGroupPolicy=parts(2, 3, hard(1)), topologyAffinity=terms)
    place.wait_summary("h", "subGroupAntiAffinity: [parts] have ")
    assert not place.bound("h")


@pytest.mark.parametrize(
    ("asked", "counts"), [({"minDomains": 3}, (3, 4)), ({"maxDomains": 2}, (1, 2))]
)
def test_members_are_spread(
    place: Place, network: Network, asked: dict[str, int], counts: tuple[int, ...]
) -> None:
    spread = {"memberSpread": {"required": [{**asked, "topologyTier": 1}]}}
    add(place, "g", 6, topologyAffinity=spread)
    place.wait_bound("g", 6)
    assert len(racks_of(network, "g")) in range(counts[0], counts[1] + 1)


def test_a_spread_that_no_tier_has_is_told(place: Place, network: Network) -> None:
    spread = {"memberSpread": {"required": [{"minDomains": 5, "topologyTier": 1}]}}
    add(place, "g", 6, cpu=1, topologyAffinity=spread)
    place.wait_summary("g", "memberSpread: at least 5 domains; its members have ")
    assert not place.bound("g")
