"""Where gangs are in the network, and what keeps them from being closer, in words."""

from contextlib import suppress

import pytest

from app.kit.workqueue import Again
from app.model.ids import NodeName
from app.model.shape import PodShape
from app.model.topology import NetworkTopology
from app.service.telling.explanations import explain_group
from tests.builders import make_amounts
from tests.service.rig import Rig
from tests.service.statuses import writer_of
from tests.service.virtual_time import clock
from tests.topology import SOFT, hard, racks, zone

GPU = "nvidia.com/gpu"


def asking(cpu: int, *, gpus: int) -> PodShape:
    return PodShape(requests=make_amounts(cpu=cpu, pods=1, **{GPU: gpus}))


def network() -> Rig:
    """Two racks of two nodes with 8 cores and 8 GPUs each, below one spine."""
    rig = Rig()
    rig.node("n0", "n1", "n2", "n3", extra={GPU: 8})
    rig.see("hypernodes", *racks(a="n0 n1", b="n2 n3"), zone("spine", "a", "b"))
    return rig


def taken(rig: Rig, node: str, gpus: int, *, group: str = "", scheduler: str = "volcano") -> None:
    """A pod that runs, of ``group`` or of none."""
    if group:
        rig.group(group, minimum=1)
    shape = asking(100, gpus=gpus)
    rig.pod(
        f"{group or 'alone'}-{node}",
        group=group,
        node=NodeName(node),
        phase="Running",
        shape=shape,
        scheduler=scheduler,
    )


def gang(rig: Rig, topology: NetworkTopology, *, count: int, gpus: int) -> None:
    rig.group("g", minimum=count, topology=topology, created=clock())
    for at in range(count):
        rig.pod(f"g-{at}", group="g", shape=asking(1000, gpus=gpus), created=clock())


def told(rig: Rig) -> tuple[str, str]:
    """Summary and network of the gang."""
    story = explain_group(rig.cache, rig.parts.reasons, rig.key("g"), queries=rig.planning.queries)
    assert story is not None
    return story.summary, story.network


async def test_a_gang_that_no_rack_takes_is_told_the_best_one_what_it_lacks_and_who_holds_it() -> (
    None
):
    rig = network()
    taken(rig, "n0", 5, group="big")
    taken(rig, "n1", 2, group="small")
    taken(rig, "n2", 8)
    taken(rig, "n3", 4, scheduler="other")
    gang(rig, hard(1), count=12, gpus=1)
    await rig.cycle()
    assert told(rig)[0] == (
        "group default/g: no domain of tier <= 1 has room for 12 pods of "
        "cpu 1, nvidia.com/gpu 1; a lacks nvidia.com/gpu 3; "
        "held by default/big (nvidia.com/gpu 5), default/small (nvidia.com/gpu 2)"
    )
    taken(rig, "n0", 3, group="more")
    await rig.cycle()
    assert (
        "a lacks nvidia.com/gpu 6; held by default/big (nvidia.com/gpu 5), default/more"
        in (told(rig)[0])
    )


async def test_pods_of_others_are_named_and_what_the_gang_itself_holds_is_not() -> None:
    rig = network()
    rig.group("g", minimum=3, topology=hard(1))
    for at in range(3):
        node = "n0" if at == 0 else ""
        shape = asking(1000, gpus=5)
        rig.pod(f"g-{at}", group="g", node=node, phase="Running" if node else "", shape=shape)
    taken(rig, "n1", 2, scheduler="other")
    await rig.cycle()
    summary, network_said = told(rig)
    assert summary.endswith("held by default/alone-n1 (nvidia.com/gpu 2)")
    assert network_said == "a (tier 1)"


async def test_a_soft_gang_is_told_which_tier_it_reached_and_what_a_closer_domain_lacks() -> None:
    rig = network()
    taken(rig, "n0", 6, group="big")
    taken(rig, "n2", 8, group="other")
    gang(rig, SOFT, count=12, gpus=1)
    await rig.cycle()
    assert told(rig) == (
        "has its places; waiting for kube-scheduler to bind",
        "spine (tier 2); tier 1 could hold all: a lacks nvidia.com/gpu 2, "
        "held by default/big (nvidia.com/gpu 6)",
    )
    rig.delete("big-n0")
    assert told(rig)[1] == "spine (tier 2); by now a has room for all"


@pytest.mark.parametrize(
    ("count", "said"),
    [pytest.param(4, "a (tier 1)", id="in a rack"), pytest.param(20, "spine (tier 2)", id="wide")],
)
async def test_a_gang_that_is_as_close_as_can_be_is_told_its_domain_alone(
    count: int, said: str
) -> None:
    rig = network()
    rig.node("n0", "n1", "n2", "n3", cpu=64_000, extra={GPU: 8})
    gang(rig, SOFT, count=count, gpus=1)
    await rig.cycle()
    assert told(rig)[1] == said


async def test_the_event_that_a_gang_is_ready_tells_where_it_is() -> None:
    rig = network()
    rig.group("g", minimum=2, topology=SOFT)
    for at, node in enumerate(("n0", "n2")):
        shape = asking(1000, gpus=1)
        rig.pod(f"g-{at}", group="g", node=NodeName(node), phase="Running", shape=shape)
    await rig.cycle()
    with suppress(Again):
        await writer_of(rig).write_group(rig.key("g"))
    said = [event.message for event in rig.api.events if event.reason == "Scheduled"]
    assert said == ["pod group is ready, in spine (tier 2); by now a has room for all"]


async def test_a_group_that_asks_for_no_domain_is_told_none() -> None:
    rig = network()
    rig.gang("g", size=2)
    await rig.cycle()
    assert told(rig)[1] == ""
