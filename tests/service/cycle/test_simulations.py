"""Questions about what is not: answered beside all else, however large what they imagine."""

import asyncio

from app.core.simulation import Outcome
from app.model.pod import GROUP_ANNOTATION
from app.model.workload import PodGroup
from app.service.cycle.simulations import NewGroup
from app.service.limits import Limits
from tests.builders import make_pod, make_shape
from tests.service.rig import Rig

ALWAYS_YIELD = Limits(slice_s=-1.0)
"""Virtual time does not pass while a question is answered: give the loop a turn at every step."""
SIZE = 500


def large() -> NewGroup:
    """A group of many pods."""
    group = PodGroup("default", "new", "uid-new", "1", 0.0, min_member=SIZE)
    said, shape = {GROUP_ANNOTATION: "new"}, make_shape(cpu=1000)
    pods = [make_pod(f"new-{number}", annotations=said, shape=shape) for number in range(SIZE)]
    return NewGroup(group, pods)


async def test_others_have_turns_while_a_large_group_is_imagined() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.node("n1", cpu=SIZE * 1000)
    simulations = rig.planning.simulations
    asked = asyncio.create_task(simulations._imagined([large()]))
    turns = 0
    while not asked.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns >= SIZE // 20
    [found] = await asked
    assert len(found.group.members) == SIZE


async def test_a_resource_that_comes_while_a_group_is_imagined_is_known_in_the_answer() -> None:
    rig = Rig(ALWAYS_YIELD)
    rig.node("n1", cpu=SIZE * 1000, memory=SIZE << 31, pods=2 * SIZE)
    asked = asyncio.create_task(rig.planning.simulations.fate_of(large()))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not asked.done()
    rig.node("n2", cpu=1000, extra={"example.com/new": 1})
    fate = await asked
    assert fate.outcome is Outcome.RUNS
    assert len(fate.places) == SIZE
