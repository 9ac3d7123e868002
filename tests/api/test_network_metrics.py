"""What an operator is shown of the network."""

from prometheus_client.parser import text_string_to_metric_families

from app.model.ids import NodeName
from app.model.topology import ALLOCATED, HyperNode
from tests.api.stand import Stand, stand
from tests.service.rig import Rig
from tests.topology import SOFT, hard, node_names, racks, zone

NAMES = ("pumice_domains", "pumice_hypernode_problems", "pumice_gangs_in_domains")


async def scraped(at: Stand) -> dict[tuple[str, ...], float]:
    """Values by metric and labels."""
    text = (await at.get("/metrics")).text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(
            ("pumice_domains", "pumice_hypernode_problems", "pumice_gangs_in")
        )
    }


async def test_domains_problems_and_gangs_by_tier_and_mode_are_counted() -> None:
    rig = Rig()
    rig.node("n0", "n1", "n2", "n3")
    odd = HyperNode("odd", 1, members=node_names("gone"))
    rig.see("hypernodes", *racks(a="n0 n1", b="n2 n3"), zone("z", "a", "b"), odd)
    for name, (topology, domain) in {
        "near": (hard(1), "a"),
        "far": (SOFT, "z"),
        "wide": (SOFT, "<cluster-top-hypernode>"),
        "gone": (SOFT, "no-longer-there"),
        "plain": (None, "a"),
    }.items():
        rig.group(name, minimum=1, topology=topology, annotations={ALLOCATED: domain})
        rig.pod(f"{name}-0", group=name, node=NodeName("n0"), phase="Running")
    async with stand(rig) as at:
        assert await scraped(at) == {
            ("pumice_domains", "1"): 3,
            ("pumice_domains", "2"): 1,
            ("pumice_hypernode_problems", "NoSuchMember"): 1,
            ("pumice_hypernode_problems", "Empty"): 1,
            ("pumice_gangs_in_domains", "hard", "1"): 1,
            ("pumice_gangs_in_domains", "soft", "2"): 1,
            ("pumice_gangs_in_domains", "soft", "3"): 1,
        }


async def test_without_hyper_nodes_there_is_nothing_to_count() -> None:
    async with stand() as at:
        assert await scraped(at) == {}
