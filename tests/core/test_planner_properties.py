"""What holds of every plan, on random clusters with every kind of rule and limit.

Limits, minimums and fits are worked out here the slow and obvious way, from the snapshot and the
plan alone.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from app.core.actions.futility import Futility
from app.core.planner import plan, plan_gang, plan_steps
from app.core.policy import Scoring
from app.model.amounts import CPU, UNLIMITED
from app.model.gang import Gang
from app.model.ids import NO_QUEUE, ROOT_QUEUE, QueueName
from app.model.plan import GangPlacement, Placement, Plan
from app.model.reason import Refusal
from app.model.snapshot import Snapshot
from tests.core.applying import applied
from tests.core.placement.reference import Reference
from tests.core.placement.strategies import Theme
from tests.core.worlds import NOW, World, shuffled, worlds
from tests.scale import examples

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)
PER_THEME = examples(12, suppress_health_check=SLOW)
EXAMPLES = examples(25, suppress_health_check=SLOW)
FEW = examples(10, suppress_health_check=SLOW)
themes = pytest.mark.parametrize("theme", Theme, ids=lambda theme: theme.name.lower())


def planned(world: World) -> Plan:
    return plan(world.snapshot, world.by, now=NOW, shapes=None)


def content(decided: Plan) -> tuple[Any, ...]:
    """All that a plan says, as plain values."""
    placed = [
        (d.gang, d.whole, tuple((p.task.uid, p.task.name, p.node) for p in d.placements))
        for d in decided.placed
    ]
    return decided.generation, decided.admitted, placed, dict(decided.refused)


def given_to(decided: Plan, gang: Gang) -> list[Any]:
    return [p.task for d in decided.placed if d.gang == gang.key for p in d.placements]


# Nodes


@themes
@PER_THEME
@given(data=st.data())
def test_every_place_is_one_that_the_member_may_have_and_has_room_in(
    theme: Theme, data: st.DataObject
) -> None:
    world = data.draw(worlds(theme))
    decided = planned(world)
    reference = Reference(world.snapshot, Scoring())
    for each in decided.placed:
        gang = world.snapshot.gangs[each.gang]
        for placement in each.placements:
            row = world.snapshot.table.index[placement.node]
            assert reference.feasible(placement.task, row)
            reference.placed.append((gang, placement.task, row))
    check_node_usage(world.snapshot, decided)


def check_node_usage(snapshot: Snapshot, decided: Plan) -> None:
    """No node holds more than it has, of anything that was put there now."""
    taken = np.zeros_like(snapshot.used)
    for each in decided.placed:
        for placement in each.placements:
            taken[snapshot.table.index[placement.node]] += placement.task.request
    over = (snapshot.used + taken > snapshot.table.allocatable) & (taken > 0)
    assert not over.any()


# Queues


def limit_of(name: QueueName, world: World) -> int:
    """The cores that a queue may hold: its capability, and what others are not guaranteed."""
    queues, total = world.snapshot.queues, int(world.snapshot.total[0])
    own = dict(queues[name].capability).get(CPU, UNLIMITED)
    guaranteed = {n: dict(q.guarantee).get(CPU, 0) for n, q in queues.items()}
    if world.name == "tree":
        if name == ROOT_QUEUE:
            return own
        parent = parent_of(name, world)
        total = limit_of(parent, world)
        guaranteed = {n: g for n, g in guaranteed.items() if parent_of(n, world) == parent}
    return min(own, max(total - sum(guaranteed.values()), 0) + guaranteed[name])


def parent_of(name: QueueName, world: World) -> QueueName:
    """The queue above; the root has none."""
    if name == ROOT_QUEUE:
        return NO_QUEUE
    return world.snapshot.queues[name].parent or ROOT_QUEUE


def held_below(name: QueueName, gangs: Iterable[tuple[QueueName, int]], world: World) -> int:
    def under(queue: QueueName) -> bool:
        if queue == name:
            return True
        if world.name != "tree" or queue not in world.snapshot.queues:
            return False
        return under(parent_of(queue, world))

    return sum(cpu for queue, cpu in gangs if under(queue))


@EXAMPLES
@given(world=worlds(Theme.ROOM))
def test_no_queue_is_brought_beyond_its_limit(world: World) -> None:
    decided = planned(world)
    gangs = world.snapshot.gangs
    before = [(gang.queue, int(gang.allocated[0])) for gang in gangs.values()]
    given_now = [
        (gangs[each.gang].queue, int(placement.task.request[0]))
        for each in decided.placed
        for placement in each.placements
    ]
    limited = () if world.name == "bare" else world.snapshot.queues
    for name in limited:
        more = held_below(name, given_now, world)
        held = held_below(name, before, world) + more
        assert not more or held <= limit_of(name, world)


@EXAMPLES
@given(world=worlds(Theme.ROOM))
def test_no_queue_that_is_shut_or_gone_gets_anything(world: World) -> None:
    decided = planned(world)
    queues = world.snapshot.queues
    for key in (*decided.admitted, *(each.gang for each in decided.placed)):
        queue = world.snapshot.gangs[key].queue
        assert queue in queues
        assert queues[queue].is_open


# Gangs


@themes
@PER_THEME
@given(data=st.data())
def test_a_gang_is_whole_or_absent(theme: Theme, data: st.DataObject) -> None:
    world = data.draw(worlds(theme))
    decided = planned(world)
    for gang in world.snapshot.gangs.values():
        got = given_to(decided, gang)
        if not got:
            continue
        assert gang.key in decided.admitted or gang.inqueue
        assert gang.cool_down_until <= NOW or gang.partial
        assert gang.counts.ready + len(got) >= gang.min_member
        assert roles_hold(gang, got)
        assert sub_groups_hold(gang, got)
        uids = [task.uid for task in got if task.uid]
        assert len(uids) == len(set(uids))
        assert set(uids) <= {task.uid for task in gang.waiting}
        missing = gang.min_member - gang.counts.tasks - gang.counts.slots
        role_minimums = sum(gang.role_minimum.values())
        assert len(got) - len(uids) <= max(missing, role_minimums, 0)


def roles_hold(gang: Gang, got: list[Any]) -> bool:
    if sum(gang.role_minimum.values()) > gang.min_member:
        return True
    return all(
        gang.role_ready.get(role, 0) + sum(task.role == role for task in got) >= least
        for role, least in gang.role_minimum.items()
    )


def sub_groups_hold(gang: Gang, got: list[Any]) -> bool:
    """Whether as many are whole as its policies want, and no member is alone in its own."""
    before, after = gang.sub_group_ready, Counter(gang.sub_group_ready)
    after.update(gang.sub_group_of[t.uid] for t in got if t.uid in gang.sub_group_of)
    for policy in gang.sub_groups:
        whole = sum(count >= policy.size for count in after.values())
        if whole < policy.least:
            return False
        if any(before.get(s, 0) < n < policy.size for s, n in after.items()):
            return False
    return True


@themes
@PER_THEME
@given(data=st.data())
def test_everybody_who_waits_is_told_why(theme: Theme, data: st.DataObject) -> None:
    world = data.draw(worlds(theme))
    decided = planned(world)
    for gang in world.snapshot.pending:
        got = given_to(decided, gang)
        unserved = len(gang.waiting) - sum(1 for task in got if task.uid)
        inside = gang.inqueue or gang.key in decided.admitted
        short = gang.counts.ready + len(got) < gang.min_member
        if unserved or not inside or short or not sub_groups_hold(gang, got):
            refusal = decided.refused[gang.key]
            assert isinstance(refusal, Refusal)
            assert all(lack.asked > lack.free >= 0 for lack in refusal.shortfalls)
            assert sum(n.nodes for n in refusal.nodes) == 0 or refusal.total_nodes
        else:
            assert gang.key not in decided.refused


# The same in, the same out


@themes
@PER_THEME
@given(data=st.data())
def test_the_order_of_the_input_does_not_matter(theme: Theme, data: st.DataObject) -> None:
    world = data.draw(worlds(theme))
    order = data.draw(st.randoms(use_true_random=False))
    mixed = World(world.name, shuffled(world.snapshot, order))
    assert content(planned(mixed)) == content(planned(world))


@FEW
@given(world=worlds(Theme.ALL))
def test_in_pieces_or_in_one_go_the_plan_is_the_same(world: World) -> None:
    found: list[Plan] = []

    def drive() -> Iterator[None]:
        found.append((yield from plan_steps(world.snapshot, world.by, now=NOW, shapes=None)))

    assert list(drive())
    assert content(found[0]) == content(planned(world))


@FEW
@given(world=worlds(Theme.ALL), pieces=st.integers(0, 12))
def test_a_cycle_that_is_broken_off_leaves_the_snapshot_as_it_was(
    world: World, pieces: int
) -> None:
    before = picture(world.snapshot)
    whole = content(planned(world))
    steps = plan_steps(world.snapshot, world.by, now=NOW, shapes=None)
    for _ in zip(range(pieces), steps, strict=False):
        pass
    steps.close()
    assert picture(world.snapshot) == before
    assert content(planned(world)) == whole


def picture(snapshot: Snapshot) -> list[Any]:
    """Every number that a cycle could have changed."""
    usage: Mapping[QueueName, Any] = snapshot.usage
    return [
        snapshot.used.tolist(),
        snapshot.table.allocatable.tolist(),
        [
            (name, own.allocated.tolist(), own.request.tolist(), own.inqueue.tolist(), own.groups)
            for name, own in usage.items()
        ],
        [
            (key, gang.phase, gang.allocated.tolist(), gang.counts, dict(gang.role_ready))
            for key, gang in snapshot.gangs.items()
        ],
    ]


@themes
@PER_THEME
@given(data=st.data())
def test_what_is_not_tried_again_would_have_failed_again(theme: Theme, data: st.DataObject) -> None:
    world = data.draw(worlds(theme))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Futility, "recall", lambda *_: None)
        _, admitted, placed, refused = content(planned(world))
    assert content(planned(world))[1:3] == (admitted, placed)
    assert planned(world).refused.keys() == refused.keys()


# One cycle after the other


@EXAMPLES
@given(world=worlds(Theme.ROOM), rounds=st.integers(2, 4))
def test_cycle_after_cycle_nothing_is_given_twice_or_taken_back(world: World, rounds: int) -> None:
    snapshot = world.snapshot
    admitted: set[str] = set()
    served: set[str] = set()
    for _ in range(rounds):
        decided = plan(snapshot, world.by, now=NOW, shapes=None)
        uids = [p.task.uid for d in decided.placed for p in d.placements if p.task.uid]
        assert not admitted & set(decided.admitted)
        assert not served & set(uids)
        admitted |= set(decided.admitted)
        served |= set(uids)
        check_node_usage(snapshot, decided)
        snapshot = applied(snapshot, decided)


def gave_up_room(snapshot: Snapshot, each: GangPlacement, placement: Placement) -> bool:
    """Whether it has a place without the room that others are evicted from for it."""
    made = snapshot.nominated_room.get(each.gang, {}).get(placement.task.uid)
    return made is not None and not (made.done and made.node == placement.node)


@themes
@PER_THEME
@given(data=st.data())
def test_a_second_cycle_without_changes_decides_nothing_new(
    theme: Theme, data: st.DataObject
) -> None:
    world = data.draw(worlds(theme))
    first = planned(world)
    after = applied(world.snapshot, first)
    if any(
        placement.task.is_slot
        or gave_up_room(world.snapshot, each, placement)
        or placement.task.uid in world.snapshot.gangs[each.gang].unused
        for each in first.placed
        for placement in each.placements
    ):
        # Only once they hold room do all slots count in what their queue asks for, and only the
        # next cycle gives others what was held for a member that has its place without that. A
        # member that goes last may be the one that others must be near.
        after = applied(after, plan(after, world.by, now=NOW, shapes=None))
    again = plan(after, world.by, now=NOW, shapes=None)
    assert again.admitted == ()
    assert again.placed == ()


@EXAMPLES
@given(world=worlds(Theme.ROOM))
def test_a_gang_on_demand_gets_no_more_than_a_cycle_could_give_it(world: World) -> None:
    for gang in world.snapshot.pending:
        decided = plan_gang(world.snapshot, world.by, key=gang.key, now=NOW, shapes=None)
        assert {each.gang for each in decided.placed} <= {gang.key}
        assert set(decided.admitted) <= {gang.key}
        check_node_usage(world.snapshot, decided)
        got = given_to(decided, gang)
        assert not got or gang.counts.ready + len(got) >= gang.min_member
