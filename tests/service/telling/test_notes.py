"""What an explanation says of limits of resources that no node has."""

from app.model.ids import QueueName
from app.service.telling.explanations import explain_group
from tests.builders import make_amounts, make_queue
from tests.service.rig import Rig


def notes(rig: Rig) -> tuple[str, ...]:
    story = explain_group(rig.cache, rig.parts.reasons, rig.key("g"), queries=rig.planning.queries)
    assert story is not None
    return story.notes


async def test_limits_of_resources_that_no_node_has_are_told_of_all_queues_above() -> None:
    rig = Rig()
    rig.node("n1", extra={"nvidia.com/gpu": 4})
    gpus = make_amounts(cpu=1000, **{"nvidia.com/gpus": 2})
    rig.queue(make_queue("top", deserved=make_amounts(**{"example.com/fpga": 1})))
    rig.queue(make_queue("q", capability=gpus, parent=QueueName("top")))
    rig.group("g", minimum=1, queue=QueueName("q"))
    rig.pod("g-0", group="g")
    await rig.cycle()
    until = "so it counts for nothing until one has"
    assert notes(rig) == (
        f"capability of queue q: no node has nvidia.com/gpus, {until}; is nvidia.com/gpu meant?",
        f"deserved of queue top: no node has example.com/fpga, {until}",
    )
    rig.node("n2", extra={"nvidia.com/gpus": 1, "example.com/fpga": 1})
    assert notes(rig) == ()


async def test_queues_that_are_above_one_another_are_told_once() -> None:
    rig = Rig()
    rig.node("n1")
    for name, above in (("a", "b"), ("b", "a")):
        odd = make_amounts(memroy=1)
        rig.queue(make_queue(name, capability=odd, parent=QueueName(above)))
    rig.group("g", minimum=1, queue=QueueName("a"))
    rig.pod("g-0", group="g")
    assert [each.partition(":")[0] for each in notes(rig)] == [
        "capability of queue a",
        "capability of queue b",
    ]
