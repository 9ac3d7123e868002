"""Pods with cpus of their own, from the watch to the places."""

from hypothesis import given
from hypothesis import strategies as st

from app.model.ids import NodeName
from app.model.numa import Cpus, NumaLayout, NumaNeed, NumaPolicy, NumaTopology
from tests.builders import make_shape
from tests.scale import examples
from tests.service.rig import Rig
from tests.service.virtual_time import settle

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: predicates
  - name: numa-aware
"""
SIZES = (4, 4)

gangs = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3), min_size=1, max_size=5)
"""The cpus of each member."""
frees = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=3)


def aware(policy: NumaPolicy, free: list[Cpus]) -> Rig:
    """Machines of two NUMA nodes of four cpus each, with so many of them free."""
    rig = Rig()
    assert rig.parts.configuration.load(CONF)
    rig.cache.numa.heeded = True
    layout = NumaLayout(policy, True, (0, 1), SIZES)
    for at, cpus in enumerate(free):
        name = NodeName(f"n{at}")
        rig.node(name, cpu=8000)
        rig.see("numatopologies", NumaTopology(name, layout, cpus, {"other": (0, 0)}))
    return rig


@given(
    policy=st.sampled_from([NumaPolicy.SINGLE_NUMA_NODE, NumaPolicy.RESTRICTED]),
    free=frees,
    asked=gangs,
)
@examples(60)
async def test_what_a_cycle_plans_holds_when_it_is_published(
    policy: NumaPolicy, free: list[Cpus], asked: list[list[int]]
) -> None:
    rig = aware(policy, free)
    for number, cpus in enumerate(asked):
        rig.group(f"g{number}", minimum=len(cpus))
        for at, count in enumerate(cpus):
            shape = make_shape(cpu=count * 1000, numa=NumaNeed(policy, (count,)))
            rig.pod(f"g{number}-{at}", group=f"g{number}", shape=shape)
    await rig.cycle()
    assert rig.planning.log.stale == 0
    for number, cpus in enumerate(asked):
        placed = [bool(rig.place(f"g{number}-{at}")) for at in range(len(cpus))]
        assert all(placed) or not any(placed)


async def test_a_pod_is_not_bound_elsewhere_than_planned_where_its_kubelet_would_refuse_it() -> (
    None
):
    rig = aware(NumaPolicy.SINGLE_NUMA_NODE, [(4, 4), (2, 2)])
    rig.pod("p", shape=make_shape(cpu=3000, numa=NumaNeed(NumaPolicy.SINGLE_NUMA_NODE, (3,))))
    await rig.cycle()
    assert rig.place("p") == "n0"
    call = rig.bind("p", node="n1")
    await settle()
    assert call.answer == "planned on n0, no room on n1"
