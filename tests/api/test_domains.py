"""`/debug/domains`: the network as the planner sees it, page by page."""

from typing import Any

import pytest

from app.model.ids import NodeName
from app.model.topology import HyperNode
from tests.api.stand import Stand, stand
from tests.builders import make_shape
from tests.service.rig import Rig
from tests.topology import hyper_nodes, node_names, racks, zone

PATH = "/debug/domains"


async def read(at: Stand, query: str = "") -> Any:
    answer = await at.get(f"{PATH}{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def two_racks() -> Rig:
    """Nodes of 8 cores; gang ``near`` is in rack a, ``far`` in both."""
    rig = Rig()
    rig.node("n0", "n1", "n2", "n3", cpu=8000)
    rig.see("hypernodes", *racks(a="n0 n1", b="n2 n3"), zone("z", "a", "b"))
    for name, nodes in {"near": "n0 n1", "far": "n1 n2"}.items():
        rig.group(name, minimum=2)
        for at, node in enumerate(nodes.split()):
            rig.pod(
                f"{name}-{at}",
                group=name,
                node=NodeName(node),
                phase="Running",
                shape=make_shape(cpu=1500),
            )
    return rig


async def test_domains_are_told_from_the_lowest_tier_up_with_what_is_free_and_who_is_inside() -> (
    None
):
    async with stand(two_racks()) as at:
        page = await read(at)
    domains = {each.pop("name"): each for each in page["domains"]}
    assert (page["total"], page["next"]) == (4, None)
    assert list(domains) == ["a", "b", "z", "<cluster-top-hypernode>"]
    a, cluster = domains["a"], domains["<cluster-top-hypernode>"]
    assert (a["tier"], a["tierName"], a["parent"], a["nodes"]) == (1, "rack", "z", 2)
    assert [a[key]["cpu"] for key in ("allocatable", "held", "free")] == [16000, 4500, 11500]
    assert (a["gangs"], a["gangsInside"]) == (["default/near"], 1)
    assert domains["b"]["gangs"] == []
    assert domains["z"]["gangs"] == ["default/far", "default/near"]
    assert (cluster["tier"], cluster["parent"], cluster["nodes"]) == (3, None, 4)
    assert all(each["problems"] == [] for each in domains.values())


@pytest.mark.parametrize(
    ("more", "told"),
    [
        pytest.param(
            [HyperNode("c", 1, members=node_names("n0", "gone"))],
            {"a": "Overlap", "c": "NoSuchMember Overlap"},
            id="missing and overlapping",
        ),
        pytest.param(
            [
                HyperNode("c", 2, members=hyper_nodes("d")),
                HyperNode("d", 3, members=hyper_nodes("c")),
            ],
            {"c": "Cycle Empty", "d": "Cycle Empty"},
            id="cycle",
        ),
        pytest.param(
            [HyperNode("y", 1, members=hyper_nodes("b"))],
            {"b": "Overlap", "y": "TierOrder Overlap"},
            id="no lower tier below",
        ),
    ],
)
async def test_what_is_wrong_with_hyper_nodes_is_told(
    more: list[HyperNode], told: dict[str, str]
) -> None:
    rig = two_racks()
    rig.see("hypernodes", *racks(a="n0 n1", b="n2 n3"), zone("z", "a", "b"), *more)
    async with stand(rig) as at:
        page = await read(at)
    found = {
        each["name"]: " ".join(problem["reason"] for problem in each["problems"])
        for each in page["domains"]
        if each["problems"]
    }
    assert found == told


async def test_a_page_ends_where_the_next_one_begins() -> None:
    async with stand(two_racks()) as at:
        first = await read(at, "?limit=3")
        second = await read(at, f"?limit=3&offset={first['next']}")
        beyond = await read(at, "?offset=9")
    assert [each["name"] for each in first["domains"]] == ["a", "b", "z"]
    assert (first["next"], second["next"], len(second["domains"])) == (3, None, 1)
    assert (beyond["domains"], beyond["total"]) == ([], 4)


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("?limit=0", "limit: 0 is not from 1 to 1000"),
        ("?limit=ten", "limit: ten is not from 1 to 1000"),
        ("?limit=1001", "limit: 1001 is not from 1 to 1000"),
        ("?offset=-1", "offset: -1 is not from 0 to 1000000"),
    ],
)
async def test_numbers_out_of_bounds_are_refused(query: str, complaint: str) -> None:
    async with stand() as at:
        answer = await at.get(f"{PATH}{query}")
        assert (answer.status_code, answer.text) == (400, f"{complaint}\n")


async def test_without_hyper_nodes_the_labels_of_the_configuration_are_the_domains() -> None:
    rig = Rig()
    rig.node("n0", "n1", "n2", labels={"zone": "east"})
    rig.node("n3")
    rig.cache.set_network_labels(("zone",))
    async with stand(rig) as at:
        east, cluster = (await read(at))["domains"]
    assert (east["name"], east["tierName"], east["nodes"]) == ("east", "zone", 3)
    assert (cluster["nodes"], cluster["tierName"]) == (4, "")


@pytest.mark.real_time
async def test_many_nodes_are_told_of_beside_the_event_loop() -> None:
    rig = Rig()
    names = [f"n{number:04d}" for number in range(1000)]
    rig.node(*names)
    rig.see("hypernodes", *racks(a=" ".join(names[:300])))
    async with stand(rig) as at:
        page = await read(at)
    assert [each["nodes"] for each in page["domains"]] == [300, 1000]
