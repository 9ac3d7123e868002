"""A pod finds the slot that a look at all of them would find, without that look."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Slot
from app.cache.gangs.slots import SlotIndex
from app.model.ids import NO_NODE, NodeName, PodUid, group_key
from app.model.parts import NO_SUB_GROUP, SubGroup
from app.model.plan import GangPlacement, Placement
from app.model.pod import GROUP_ANNOTATION, TASK_SPEC, Pod
from app.model.shape import PodShape
from app.model.workload import GroupPhase, PodGroup
from tests.builders import make_node, make_pod, make_shape, make_task
from tests.cache.unwalkable import Unwalkable

KEY = group_key("default", "g")
ROLES = st.sampled_from(["", "a", "b"])
NODES = st.sampled_from([NodeName("m"), NodeName("n")])
HINTS = st.just(NO_NODE) | NODES
SHAPES = st.sampled_from([make_shape(cpu=cpu) for cpu in (500, 500, 1000)])
"""Two of them are equal, and not the same."""

SUB_GROUPS = st.sampled_from([NO_SUB_GROUP, NO_SUB_GROUP, SubGroup("s", "x"), SubGroup("s", "y")])
KEPT = st.lists(st.tuples(ROLES, NODES, SHAPES, SUB_GROUPS, st.booleans()), max_size=12)
"""Slots in the order in which they are made; the last says whether it is given back later."""


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    labels = {TASK_SPEC: draw(ROLES)}
    hints = {"pinned": draw(HINTS), "nominated": draw(HINTS)}
    return make_pod("p", labels=labels, shape=draw(SHAPES), **hints)


def rank(slot: Slot, pod: Pod, of: SubGroup) -> tuple[bool, bool, bool, int]:
    hint = pod.pinned or pod.nominated
    others = bool(hint) and slot.node != hint
    return others, slot.sub_group != of, slot.role != pod.role, slot.serial


def serves(slot: Slot, pod: Pod, of: SubGroup) -> bool:
    return (
        slot.role in (pod.role, "")
        and slot.sub_group in (of, NO_SUB_GROUP)
        and pod.pinned in (slot.node, NO_NODE)
        and slot.shape.fits_like(pod.shape)
    )


@given(kept=KEPT, pod=pods(), of=SUB_GROUPS)
def test_the_best_is_found_by_node_then_sub_group_then_role_then_age(
    kept: list[tuple[str, NodeName, PodShape, SubGroup, bool]], pod: Pod, of: SubGroup
) -> None:
    index, left = SlotIndex(), list[Slot]()
    for serial, (role, node, shape, sub_group, _) in enumerate(kept):
        slot = Slot(f"g#{serial}", role, node, shape, 0.0, serial, sub_group=sub_group)
        left.append(slot)
        index.add(left[-1])
    for slot in [slot for slot, (*_, goes) in zip(left, kept, strict=True) if goes]:
        index.remove(slot)
        left.remove(slot)
    serving = [slot for slot in left if serves(slot, pod, of)]
    assert index.best_for(pod, of) is min(serving, key=lambda s: rank(s, pod, of), default=None)
    able = [slot for slot in left if slot.role in (pod.role, "")]
    able = [slot for slot in able if slot.sub_group in (of, NO_SUB_GROUP)]
    able.sort(key=lambda slot: (slot.sub_group != of, slot.role != pod.role, slot.serial))
    assert index.first_of(pod.role, of) is next(iter(able), None)
    assert index.counts() == Counter(slot.role for slot in left)


def test_members_come_into_their_slots_without_a_walk_through_all() -> None:
    cache = ClusterCache(schedulers=frozenset({"volcano"}))
    cache.set_node(make_node("n"))
    cache.set_node(make_node("m"))
    wanted = PodGroup(
        "default",
        "g",
        min_member=4,
        uid="uid-g",
        resource_version="1",
        created=0.0,
        phase=GroupPhase.INQUEUE,
        role_minimum={"w": 4},
    )
    cache.set_group(wanted)
    task = make_task("", uid=PodUid(""), role="w")
    placements = tuple(Placement(task, NodeName(node)) for node in ("m", "m", "n", "n"))
    assert cache.reservations.reserve(GangPlacement(KEY, placements, whole=True), now=1.0)
    group = cache.groups[KEY]
    group.slots = Unwalkable(group.slots)
    for node in ("n", "m", "n", ""):
        at = {GROUP_ANNOTATION: "g", TASK_SPEC: "w"}
        name = f"p{len(cache.members)}"
        cache.set_pod(make_pod(name, annotations=at, pinned=NodeName(node)), now=2.0)
    assert [m.node for m in cache.members.values()] == ["n", "m", "n", "m"]
    assert len(group.slots) == 0
