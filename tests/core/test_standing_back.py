"""Gangs that stand back, on random clusters with some room left.

A lower gang makes no eviction larger, and where no pod is evicted no gang waits that has room.
"""

from collections.abc import Collection
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from app.core.planner import plan
from app.core.policy import Policies
from app.model.ids import group_key
from app.model.plan import Plan
from tests.builders import make_queue
from tests.core.crowds import Crowd, Job, boards
from tests.core.random_crowds import FLAT, WEIGHTS, Rules, named
from tests.scale import examples

HIGH = group_key("default", "high")
QUEUES = ("a", "a", "a", "b")
RULES = st.builds(
    Rules,
    shares=st.sampled_from((FLAT, WEIGHTS)),
    actions=st.integers(0, 2),
    whole=st.booleans(),
    drf=st.just(False),
    borrows=st.booleans(),
)


def jobs(sizes: tuple[int, ...], queues: tuple[str, ...], most: int) -> st.SearchStrategy[Job]:
    """Jobs of single cores without names, of priorities up to ``most``."""
    return st.builds(
        lambda size, spare, queue, priority: Job(
            "", size, minimum=max(size - spare, 1), queue=queue, priority=priority
        ),
        st.sampled_from(sizes),
        st.integers(0, 1),
        st.sampled_from(queues),
        st.integers(0, most),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Crowd:
    """Jobs run on a node with a few cores more than they hold; others wait, and one outranks them.

    It needs more than is free.
    """
    ran = draw(st.lists(jobs((1, 2), QUEUES, 1), min_size=2, max_size=4))
    waits = draw(st.lists(jobs((1, 2), QUEUES, 1), min_size=1, max_size=3))
    spare = draw(st.integers(1, 2))
    high = Job("high", spare + draw(st.integers(1, 2)), queue="a", priority=2)
    there = [named(f"r{n}", job, (0,) * job.members) for n, job in enumerate(ran)]
    size = sum(job.members for job in ran) + spare
    queues = [make_queue(name) for name in sorted(set(QUEUES))]
    others = [named(f"w{n}", job) for n, job in enumerate(waits)]
    by = draw(RULES).policies()
    return Crowd([*there, *others, high], boards(size), by, queues=queues, freezes=False)


def planned(crowd: Crowd, by: Policies, *, without: Collection[str] = ()) -> Plan:
    """A cycle in which the gangs ``without`` do not wait."""
    snapshot = crowd.snapshot()
    pending = tuple(gang for gang in snapshot.pending if gang.name not in without)
    return plan(replace(snapshot, pending=pending), by, now=crowd.now, shapes=None)


def giving_only(by: Policies) -> Policies:
    """The same without the actions that evict."""
    names = tuple(name for name in by.conf.actions if name in ("enqueue", "allocate", "backfill"))
    return replace(by, conf=replace(by.conf, actions=names))


@examples(100)
@given(clusters())
def test_no_room_is_left_where_a_gang_waits_for_it(crowd: Crowd) -> None:
    decided = crowd.round()
    assume(not decided.evictions)
    assert planned(crowd, giving_only(crowd.by)).placed == ()


@examples(100)
@given(clusters())
def test_lower_gangs_of_its_queue_change_nothing_for_the_one_that_outranks_them(
    crowd: Crowd,
) -> None:
    lower = {job.name for job in crowd.jobs.values() if job.queue == "a" and job.name != "high"}
    both = [planned(crowd, crowd.by), planned(crowd, crowd.by, without=lower)]
    beside, alone = (
        {each.preemptor: len(each.victims) for each in found.evictions} for found in both
    )
    assert beside.get(HIGH) == alone.get(HIGH)
