"""Whatever happens to a cluster, the deltas add up to the whole, for operators and tenants."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.ids import GroupKey, NodeName
from app.model.pod import GATE, GROUP_ANNOTATION
from app.model.workload import GroupPhase, Namespace, PodGroup
from app.service.cycle.eta.etas import EtaAnswer, Etas
from app.service.telling.view.audience import Readers
from app.service.telling.view.views import EVERY_S
from tests.api.stand import stand, views_of
from tests.api.view_reader import reading, state_in, taken_up
from tests.builders import make_node, make_pod, make_queue, make_shape
from tests.scale import examples
from tests.service.rig import Rig
from tests.service.virtual_time import advance

NAMESPACES: Final = ("default", "team-b")
NODES: Final = ("n1", "n2", "n3")
QUEUES: Final = ("default", "a", "b")

Change = Callable[[Rig, int, int], None]


def come(rig: Rig, one: int, other: int) -> None:
    """A gang comes, gated or with a node already."""
    namespace, name = NAMESPACES[one % 2], f"g{other}"
    group = PodGroup(
        namespace,
        name,
        uid=f"uid-{namespace}-{name}",
        resource_version="1",
        created=float(other),
        phase=GroupPhase.INQUEUE,
        min_member=1 + one % 3,
        queue=make_queue(QUEUES[other % 3]).name,
    )
    rig.see("podgroups", group)
    for number in range(1 + one % 3):
        node = NodeName(NODES[other % 3] if one % 2 else "")
        pod = make_pod(
            f"{name}-{number}",
            uid=f"uid-{namespace}-{name}-{number}",
            namespace=namespace,
            annotations={GROUP_ANNOTATION: name},
            gates=() if node else (GATE,),
            node=node,
            phase="Running" if node else "Pending",
            shape=make_shape(cpu=500 + 500 * other),
        )
        rig.store(pod)


def end(rig: Rig, one: int, other: int) -> None:
    """A pod ends."""
    pods = sorted(rig.api.pods)
    if pods:
        pod = rig.api.pods[pods[(one * 7 + other) % len(pods)]]
        rig.store(replace(pod, phase="Succeeded" if one % 2 else "Failed"))


def go(rig: Rig, one: int, other: int) -> None:
    """A gang is deleted with its pods."""
    keys = sorted(key for key, group in rig.cache.groups.items() if group.pod_group is not None)
    if not keys:
        return
    key = keys[(one + other) % len(keys)]
    group = rig.cache.groups[key]
    gone = [member.pod for member in group.members.values()]
    rig.unsee("podgroups", group.pod_group)
    for pod in gone:
        rig.api.pods.pop(pod.key, None)
        rig.unsee("pods", pod)


def change_node(rig: Rig, one: int, other: int) -> None:
    """A node comes, goes, shrinks, or is cordoned."""
    name = NODES[one % 3]
    known = rig.cache.node_usage.nodes.get(NodeName(name))
    if known is not None and other == 0:
        rig.unsee("nodes", known)
    else:
        rig.see("nodes", make_node(name, cpu=1_000 * (1 + other), unschedulable=other == 3))


def change_queue(rig: Rig, one: int, other: int) -> None:
    """A queue gets another weight, or goes."""
    queue = make_queue(QUEUES[one % 3], weight=1 + other)
    if other == 0 and one % 3:
        rig.unsee("queues", queue)
    else:
        rig.see("queues", queue)


def stranger(rig: Rig, one: int, other: int) -> None:
    """A pod of another scheduler comes."""
    node = NodeName(NODES[one % 3])
    rig.store(make_pod(f"web-{other}", scheduler="default-scheduler", node=node, phase="Running"))


CHANGES: Final[tuple[Change, ...]] = (come, come, end, go, change_node, change_queue, stranger)
changes = st.lists(
    st.tuples(st.sampled_from(CHANGES), st.integers(0, 5), st.integers(0, 4)), max_size=4
)


@pytest.fixture(autouse=True, scope="module")
def no_forecasts() -> Iterator[None]:
    """Forecasts take long, and the view does without them."""

    async def none(_etas: Etas) -> dict[GroupKey, EtaAnswer]:
        return {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Etas, "all", none)
        yield


async def made_anew(rig: Rig, readers: Readers) -> dict[str, Any]:
    """What the view says when it is made from nothing."""
    views = views_of(rig)
    audience = await views.audience(readers)
    views._let_all_go()
    return state_in(json.loads(b"".join(audience.whole("someone", at=0.0))))


def used(rig: Rig) -> dict[str, dict[str, int]]:
    """What is taken of each node, as the planner counts it."""
    table = rig.cache.node_usage.table()
    taken, _ = rig.cache.node_usage.sorted_used()
    return {name: dict(table.axis.amounts(taken[row])) for name, row in table.index.items()}


@given(rounds=st.lists(changes, min_size=1, max_size=6))
@examples(10)
async def test_the_deltas_add_up_to_the_whole(rounds: list[list[tuple[Change, int, int]]]) -> None:
    rig = Rig()
    for namespace in NAMESPACES:
        rig.see("namespaces", Namespace(namespace, {}, {}))
    rig.node("n1", cpu=4_000)
    await rig.cycle()
    async with (
        stand(rig) as at,
        reading(at) as operator,
        reading(at, query="namespace=default") as tenant,
    ):
        for several in rounds:
            for change, one, other in several:
                change(rig, one, other)
            await rig.cycle()
            await advance(EVERY_S + 0.2)
            told = state_in(taken_up(operator.events()))
            assert told == await made_anew(rig, None)
            assert {name: row["used"] for name, row in told["nodes"].items()} == used(rig)
            told = state_in(taken_up(tenant.events()))
            assert told == await made_anew(rig, frozenset({"default"}))
            assert "team-b" not in tenant.text.decode()
