"""The watch of namespaces is behind that of pods: which queue a pod alone is in shows later."""

from app.model.ids import QueueName
from app.model.pod import QUEUE_ANNOTATION
from app.model.workload import Namespace
from app.service.calls.filtering import Chosen
from app.service.telling.explanations import explain_group
from tests.builders import make_amounts, make_queue
from tests.service.rig import Rig

SMALL = QueueName("small")


def pods_of_a_new_namespace() -> Rig:
    """Two pods of 1 cpu, in a namespace whose queue has 1 cpu; it does not show yet."""
    rig = Rig()
    rig.node("n1")
    rig.queue(make_queue(SMALL, capability=make_amounts(cpu=1000)))
    rig.unsee("namespaces", Namespace("default", {}, {}))
    for name in ("a", "b"):
        rig.pod(name)
    return rig


async def test_single_pods_do_not_get_more_than_the_queue_of_their_namespace_may_hold() -> None:
    rig = pods_of_a_new_namespace()
    await rig.cycle()
    assert not any(isinstance(rig.filter(name, ["n1"]), Chosen) for name in "ab")
    rig.see("namespaces", Namespace("default", {}, {QUEUE_ANNOTATION: SMALL}))
    await rig.cycle()
    assert sorted([rig.place("a"), rig.place("b")]) == ["", "n1"]


async def test_the_reason_says_what_is_not_known() -> None:
    rig = pods_of_a_new_namespace()
    await rig.cycle()
    story = explain_group(
        rig.cache, rig.parts.reasons, rig.member("a").group, queries=rig.planning.queries
    )
    assert story is not None
    assert "namespace default, which may name the queue" in story.summary
