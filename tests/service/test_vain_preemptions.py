"""No eviction for a pod that Filter refuses afterwards."""

import asyncio
from dataclasses import replace

import pytest

from app.model.ids import NodeName, PodUid, QueueName
from app.model.pod import GATE, GROUP_ANNOTATION, QUEUE_ANNOTATION, Owner, Pod
from app.model.reason import Cause
from app.model.workload import Queue, QueueState
from app.service.calls.catching_up import GROUP_S, IN_VAIN, IN_VAIN_S
from app.service.calls.filtering import Chosen, Everything, Some, Wait
from app.service.calls.preemption import Candidate, Strike
from app.service.cycle.allowed_victims import KEPT_S
from tests.builders import make_amounts, make_pod, make_queue, make_shape
from tests.service.rig import Rig, working
from tests.service.virtual_time import advance

TREE = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: capacity
    enableHierarchy: true
"""
STOCK = "default-scheduler"


def foreign(rig: Rig, name: str, *, cpu: int, node: str = "") -> Pod:
    """A pod of the stock scheduler's; running when it has a node."""
    phase = "Running" if node else "Pending"
    shape = make_shape(cpu=cpu)
    return rig.pod(name, scheduler=STOCK, node=node, phase=phase, shape=shape)


def beside_a_victim() -> Rig:
    """One node, which ``victim`` fills."""
    rig = Rig()
    rig.node("n1", cpu=2000)
    foreign(rig, "victim", cpu=2000, node="n1")
    return rig


def mine(rig: Rig, name: str, *, cpu: int, queue: str = "default", node: str = "") -> Pod:
    """A pod of ours that stands alone; running when it has a node."""
    phase = "Running" if node else "Pending"
    in_queue = {QUEUE_ANNOTATION: queue}
    return rig.pod(name, annotations=in_queue, node=node, phase=phase, shape=make_shape(cpu=cpu))


# Room on the node


async def test_room_that_is_reserved_for_a_gang_is_not_free_for_others() -> None:
    rig = Rig()
    rig.node("n1", cpu=4000)
    foreign(rig, "victim", cpu=2000, node="n1")
    rig.gang("g", size=2)
    await rig.cycle()
    assert rig.place("g-0") == "n1"
    foreign(rig, "big", cpu=3000)
    assert rig.preempt("big", n1=["victim"]) is Strike.NO_ROOM
    rig.delete("victim")
    assert rig.filter("big") == Some((), "room is reserved for a gang")


async def test_what_the_victims_give_back_is_enough() -> None:
    rig = Rig()
    rig.node("n1", cpu=4000)
    foreign(rig, "victim", cpu=2000, node="n1")
    rig.gang("g", size=2)
    await rig.cycle()
    foreign(rig, "small", cpu=2000)
    assert rig.preempt("small", n1=["victim"]) is None
    rig.delete("victim")
    assert rig.filter("small") == Everything()


async def test_what_is_reserved_for_the_pod_itself_is_its_own() -> None:
    rig = Rig()
    rig.node("n1", cpu=4000)
    foreign(rig, "victim", cpu=2000, node="n1")
    rig.pod("mine", shape=make_shape(cpu=2000))
    await rig.cycle()
    assert rig.place("mine") == "n1"
    assert rig.preempt("mine", n1=["victim"]) is None, "kube-scheduler has found no room there"


async def test_a_node_may_lack_what_is_not_asked_for() -> None:
    rig = Rig()
    rig.node("n1", cpu=4000, memory=1)
    foreign(rig, "victim", cpu=2000, node="n1")
    rig.pod("asking", scheduler=STOCK, shape=make_shape(cpu=2000, memory=0))
    assert rig.preempt("asking", n1=["victim"]) is None


async def test_nothing_can_be_said_for_a_node_that_nobody_knows() -> None:
    rig = Rig()
    foreign(rig, "victim", cpu=2000, node="n1")
    foreign(rig, "asking", cpu=1000)
    assert rig.preempt("asking", n1=["victim"]) is Strike.NO_ROOM


# What Filter tells to wait


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_member_whose_group_is_not_there_does_not_preempt(deleted: bool) -> None:
    rig = beside_a_victim()
    if deleted:
        rig.unsee("podgroups", rig.group("g", minimum=1))
    rig.pod("g-0", group="g")
    assert rig.preempt("g-0", n1=["victim"]) is Strike.GROUP_MISSING
    rig.delete("victim")
    assert rig.filter("g-0") == Wait("waiting for the pod group to exist")


async def test_a_pod_whose_owner_may_want_a_gang_does_not_preempt_before_that_is_known() -> None:
    rig = beside_a_victim()
    owner = Owner("batch/v1", "Job", "job", "uid-job")
    rig.pod("one", owner=owner)
    assert rig.preempt("one", n1=["victim"]) is Strike.GROUP_MISSING
    rig.cache.pods.await_no_group(owner.uid)
    assert rig.preempt("one", n1=["victim"]) is None


async def test_a_pod_that_only_this_call_has_shown_is_taken_in() -> None:
    rig = beside_a_victim()
    pod = make_pod("early", annotations={GROUP_ANNOTATION: "g"})
    rig.api.pods[pod.key] = pod
    assert rig.preempt("early", n1=["victim"]) is Strike.GROUP_MISSING
    rig.group("g", minimum=1)
    assert rig.preempt("early", n1=["victim"]) is None


async def kept_call(rig: Rig, name: str) -> Strike | None:
    """Why it may not evict the victim, once the call is answered."""
    candidates = {NodeName("n1"): Candidate((PodUid("uid-victim"),))}
    pod = rig.api.pods[f"default/{name}"]
    verdict = await rig.parts.preemption.guard_in_time(pod, candidates)
    return verdict.struck.get(NodeName("n1"))


async def test_a_call_is_kept_until_the_watch_shows_the_group() -> None:
    """A refusal would last for minutes: that the group comes makes kube-scheduler try nothing."""

    rig = beside_a_victim()
    rig.pod("early", group="g")
    call = asyncio.create_task(kept_call(rig, "early"))
    await advance(GROUP_S / 2)
    rig.group("g", minimum=1)
    await advance(0.01)
    assert call.done()
    assert call.result() is None


async def test_a_call_is_kept_for_a_moment_only_and_none_soon_after_one_that_was_for_nothing() -> (
    None
):
    rig = beside_a_victim()
    rig.pod("lost", group="nowhere")
    loop = asyncio.get_running_loop()
    took = []
    for _ in range(3):
        before = loop.time()
        assert await kept_call(rig, "lost") is Strike.GROUP_MISSING
        took.append(round(loop.time() - before, 2))
        await advance(IN_VAIN_S / 2)
    assert took == [GROUP_S, 0, GROUP_S]


async def test_calls_are_kept_for_others_after_a_few_that_were_for_nothing_but_not_for_all() -> (
    None
):
    rig = beside_a_victim()
    loop = asyncio.get_running_loop()
    took = []
    for number in range(IN_VAIN + 1):
        rig.pod(f"lost-{number}", group=f"nowhere-{number}")
        before = loop.time()
        assert await kept_call(rig, f"lost-{number}") is Strike.GROUP_MISSING
        took.append(round(loop.time() - before, 2))
    assert took == [GROUP_S] * IN_VAIN + [0]


async def test_a_pod_that_is_gone_does_not_preempt() -> None:
    rig = beside_a_victim()
    pod = rig.pod("gone")
    rig.delete("gone")
    rig.api.pods[pod.key] = pod
    assert rig.preempt("gone", n1=["victim"]) is Strike.GROUP_MISSING
    assert pod.uid not in rig.cache.members


async def test_a_pod_whose_queue_is_full_evicts_nobody_elsewhere() -> None:
    rig = Rig()
    rig.node("n1", "n2", cpu=2000)
    rig.queue(make_queue("small", capability=make_amounts(cpu=2000)))
    foreign(rig, "elsewhere", cpu=2000, node="n1")
    mine(rig, "inside", cpu=2000, queue="small", node="n2")
    mine(rig, "asking", cpu=2000, queue="small")
    await rig.cycle()
    assert rig.preempt("asking", n1=["elsewhere"]) is Strike.REFUSED
    rig.delete("elsewhere")
    await rig.cycle()
    assert rig.filter("asking") == Wait("waiting for the queue's quota")


async def test_what_victims_of_its_own_queue_give_back_it_may_have() -> None:
    rig = Rig()
    rig.node("n1", cpu=2000)
    rig.queue(make_queue("small", capability=make_amounts(cpu=2000)))
    mine(rig, "inside", cpu=2000, queue="small", node="n1")
    mine(rig, "asking", cpu=2000, queue="small")
    await rig.cycle()
    assert rig.preempt("asking", n1=["inside"]) is None
    rig.delete("inside")
    await rig.cycle()
    assert rig.filter("asking") == Chosen(NodeName("n1"))


async def test_two_pods_in_a_row_do_not_evict_for_the_same_rest_of_a_quota() -> None:
    rig = Rig()
    rig.node("n1", "n2", cpu=2000)
    rig.queue(make_queue("small", capability=make_amounts(cpu=2000)))
    for number in (1, 2):
        foreign(rig, f"elsewhere-{number}", cpu=2000, node=f"n{number}")
        mine(rig, f"asking-{number}", cpu=2000, queue="small")
    assert rig.preempt("asking-1", n1=["elsewhere-1"]) is None
    assert rig.preempt("asking-2", n2=["elsewhere-2"]) is Strike.REFUSED
    rig.nominate("asking-1", "n1")
    await advance(KEPT_S)
    assert rig.preempt("asking-2", n2=["elsewhere-2"]) is Strike.REFUSED, "it still waits"
    rig.delete("asking-1")
    assert rig.preempt("asking-2", n2=["elsewhere-2"]) is None


async def test_a_pod_that_lost_the_place_that_we_told_it_does_not_stand_in_the_way() -> None:
    rig = Rig()
    rig.node("n1", cpu=2000)
    rig.queue(make_queue("small", capability=make_amounts(cpu=2000)))
    two = make_shape(cpu=2000)
    for name in ("g", "h"):
        rig.group(name, minimum=1, queue=QueueName("small"))
    told = rig.pod("told", group="g", gates=(GATE,), shape=two)
    with working(rig):
        await advance(1)
        rig.store(replace(told, gates=(), nominated=NodeName("n1")))
        rig.node("n2", cpu=2000)
        for number in (1, 2):
            foreign(rig, f"elsewhere-{number}", cpu=2000, node=f"n{number}")
        rig.pod("asking", group="h", shape=two)
        assert rig.preempt("asking", n2=["elsewhere-2"]) is None


async def test_two_pods_in_a_row_may_have_the_quota_of_their_victims() -> None:
    rig = Rig()
    rig.node("n1", "n2", cpu=2000)
    rig.queue(make_queue("small", capability=make_amounts(cpu=4000)))
    for number in (1, 2):
        mine(rig, f"inside-{number}", cpu=2000, queue="small", node=f"n{number}")
        mine(rig, f"asking-{number}", cpu=2000, queue="small")
    assert rig.preempt("asking-1", n1=["inside-1"]) is None
    assert rig.preempt("asking-2", n2=["inside-2"]) is None


async def test_too_few_victims_of_its_own_queue_do_not_help() -> None:
    rig = Rig()
    rig.node("n1", "n2", cpu=2000)
    rig.queue(make_queue("small", capability=make_amounts(cpu=2000)))
    mine(rig, "inside", cpu=1000, queue="small", node="n1")
    mine(rig, "beside", cpu=1000, queue="small", node="n2")
    foreign(rig, "elsewhere", cpu=1000, node="n1")
    mine(rig, "asking", cpu=2000, queue="small")
    await rig.cycle()
    assert rig.preempt("asking", n1=["inside", "elsewhere"]) is Strike.REFUSED
    mine(rig, "less", cpu=1000, queue="small")
    assert rig.preempt("less", n1=["inside", "elsewhere"]) is None


async def test_a_victim_on_its_way_out_has_given_back_what_its_queue_held() -> None:
    rig = Rig()
    rig.node("n1", "n2", cpu=2000)
    rig.queue(make_queue("small", capability=make_amounts(cpu=2000)))
    mine(rig, "beside", cpu=2000, queue="small", node="n2")
    rig.store(replace(mine(rig, "going", cpu=2000, queue="small", node="n1"), deleting=True))
    mine(rig, "asking", cpu=2000, queue="small")
    assert rig.preempt("asking", n1=["going"]) is Strike.REFUSED


async def test_what_the_queues_above_may_hold_counts_too() -> None:
    rig = Rig()
    rig.parts.configuration.load(TREE)
    rig.node("n1", "n2", cpu=2000)
    rig.queue(make_queue("above", capability=make_amounts(cpu=2000)))
    for name in ("left", "right"):
        rig.queue(make_queue(name, parent=QueueName("above")))
    foreign(rig, "elsewhere", cpu=2000, node="n1")
    mine(rig, "cousin", cpu=2000, queue="right", node="n2")
    mine(rig, "asking", cpu=2000, queue="left")
    assert rig.preempt("asking", n1=["elsewhere"]) is Strike.REFUSED
    assert rig.preempt("asking", n2=["cousin"]) is None


@pytest.mark.parametrize(
    "queue", [make_queue("shut", state=QueueState.CLOSED), make_queue("another")]
)
async def test_a_queue_that_takes_nobody_is_no_reason_to_evict(queue: Queue) -> None:
    rig = Rig()
    rig.node("n1", cpu=2000)
    rig.queue(queue)
    foreign(rig, "victim", cpu=2000, node="n1")
    mine(rig, "asking", cpu=1000, queue="shut")
    assert rig.preempt("asking", n1=["victim"]) is Strike.REFUSED


async def test_a_group_that_goes_away_is_no_reason_to_evict() -> None:
    rig = beside_a_victim()
    rig.group("g", minimum=1, deleting=True)
    rig.pod("g-0", group="g")
    assert rig.preempt("g-0", n1=["victim"]) is Strike.REFUSED


async def test_a_group_that_is_not_admitted_before_the_victims_go_may_preempt() -> None:
    rig = Rig()
    rig.node("n1", "n2", cpu=2000)
    foreign(rig, "victim", cpu=2000, node="n1")
    foreign(rig, "other", cpu=2000, node="n2")
    mine(rig, "asking", cpu=2000)
    await rig.cycle()
    assert rig.refusals[rig.member("asking").group].cause is Cause.CLUSTER_OVERUSED
    assert rig.preempt("asking", n1=["victim"]) is None


async def test_the_group_of_a_victim_does_not_claim_its_place_again() -> None:
    """The PodGroup that a controller made for a pod goes with it, though a little later."""

    rig = Rig()
    rig.node("n1", cpu=2000)
    rig.group("made", minimum=1, min_resources=make_amounts(cpu=2000))
    rig.pod("victim", group="made", node="n1", phase="Running", shape=make_shape(cpu=2000))
    mine(rig, "asking", cpu=2000)
    assert rig.preempt("asking", n1=["victim"]) is None


async def test_a_member_beyond_the_minimum_of_a_group_of_one_preempts_for_itself() -> None:
    rig = Rig()
    rig.node("n1", cpu=3000)
    foreign(rig, "victim", cpu=2000, node="n1")
    rig.gang("g", size=3, minimum=1)
    await rig.cycle()
    assert (rig.place("g-0"), rig.place("g-2")) == ("n1", "")
    assert rig.preempt("g-2", n1=["victim"]) is None
