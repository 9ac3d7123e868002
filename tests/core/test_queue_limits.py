"""Whatever is asked for in whatever order: no queue gets beyond its limits."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.ledger import Ledger
from app.core.points import Opened
from app.core.tiers import build, open_policies
from app.model.conf import PluginConf, SchedulerConf
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.reason import Cause, Refusal, Shortfall
from app.model.workload import GroupPhase, Queue
from tests.builders import GIB, make_gang, make_node, make_queue, make_snapshot
from tests.core.plugins.sessions import amounts_of, room, sized_task

NODES = (make_node("n", cpu=20_000, memory=100 * GIB, pods=1000),)
PARENTS = {"top": "", "left": "top", "right": "top", "alone": ""}
LEAVES = ("left", "right", "alone")

PLUGINS = {
    "proportion": PluginConf("proportion"),
    "capacity": PluginConf("capacity"),
    "tree": PluginConf("capacity", switches={"enableHierarchy": True}),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one queue, in cores; None: not set."""

    capability: int | None
    guarantee: int
    weight: int


LIMITS = st.builds(
    Limits,
    capability=st.one_of(st.none(), st.integers(0, 12)),
    guarantee=st.integers(0, 4),
    weight=st.integers(1, 5),
)
REQUESTS = st.lists(st.tuples(st.sampled_from(LEAVES), st.integers(1, 5)), min_size=1, max_size=12)


def queue(name: str, limits: Limits) -> Queue:
    return make_queue(
        name,
        parent=QueueName(PARENTS[name]),
        capability=(("cpu", limits.capability * 1000),) if limits.capability is not None else (),
        guarantee=amounts_of(cpu=limits.guarantee),
        weight=limits.weight,
    )


def gang(i: int, leaf: str, cpu: int) -> Gang:
    return make_gang(
        f"g{i}",
        queue=QueueName(leaf),
        waiting=(sized_task(f"g{i}-0", cpu=cpu, gib=0),),
        min_request=room(cpu=cpu),
        phase=GroupPhase.PENDING,
    )


def terminating(leaf: str, cpu: int) -> Gang:
    return make_gang(f"gone-{leaf}", queue=QueueName(leaf), releasing=room(cpu=cpu))


def opened_on(
    plugin: str, limits: dict[str, Limits], gangs: tuple[Gang, ...]
) -> tuple[Opened, Ledger]:
    queues = tuple(queue(name, own) for name, own in limits.items())
    ledger = Ledger(make_snapshot(nodes=NODES, queues=queues, gangs=gangs))
    conf = SchedulerConf(actions=(), tiers=((PLUGINS[plugin],),))
    return open_policies(build(conf), ledger, now=0.0), ledger


@pytest.mark.parametrize("plugin", PLUGINS)
@given(
    limits=st.fixed_dictionaries(dict.fromkeys(PARENTS, LIMITS)),
    requests=REQUESTS,
    going=st.dictionaries(st.sampled_from(LEAVES), st.integers(0, 5)),
)
def test_no_queue_gets_beyond_its_capability(
    plugin: str, limits: dict[str, Limits], requests: list[tuple[str, int]], going: dict[str, int]
) -> None:
    gangs = tuple(gang(i, leaf, cpu) for i, (leaf, cpu) in enumerate(requests))
    gangs += tuple(terminating(leaf, cpu) for leaf, cpu in going.items())
    opened, ledger = opened_on(plugin, limits, gangs)
    refusals: list[Refusal | None] = []
    for each in gangs[: len(requests)]:
        refusals.append(opened.enqueueable(each))
        if refusals[-1] is None:
            ledger.admit(each)
            opened.enqueued(each)
    for name, own in limits.items():
        account = ledger.queue(QueueName(name))
        claimed = account.tree_inqueue if plugin == "tree" else account.inqueue
        assert own.capability is None or claimed[0] <= own.capability * 1000
    for each in gangs[: len(requests)]:
        refusals.append(opened.allocatable(each.queue, each.waiting[0]))
        if refusals[-1] is None:
            ledger.place(each, each.waiting[0], node=0)
    for name, own in limits.items():
        account, below = ledger.queue(QueueName(name)), plugin == "tree"
        held = account.tree_allocated if below else account.allocated
        leaving = ledger.terminating(QueueName(name), below=below)
        there = 0 if leaving is None else leaving[0]
        assert own.capability is None or not held[0] or held[0] + there <= own.capability * 1000
    assert all(has_numbers(refusal) for refusal in refusals if refusal is not None)


def has_numbers(refusal: Refusal) -> bool:
    assert refusal.cause in {Cause.QUEUE_QUOTA, Cause.QUEUE_ROOM, Cause.QUEUE_OVERUSED}
    assert refusal.where in PARENTS
    assert refusal.detail.startswith("queue resource quota insufficient: insufficient ")
    return all(s.asked > s.free and s.limit is not None for s in refusal.shortfalls)


@pytest.mark.parametrize(
    ("plugin", "of", "where"),
    [*((plugin, "left", "left") for plugin in PLUGINS), ("tree", "right", "top")],
)
def test_terminating_pods_count_for_what_is_placed_now_and_not_for_what_is_claimed(
    plugin: str, of: str, where: str
) -> None:
    """Nor for whose turn it is."""
    limits = dict.fromkeys(PARENTS, Limits(capability=4, guarantee=0, weight=1))
    gangs = (gang(0, "left", 2), terminating(of, 3))
    opened, ledger = opened_on(plugin, limits, gangs)
    assert opened.enqueueable(gangs[0]) is None
    ledger.admit(gangs[0])
    opened.enqueued(gangs[0])
    assert opened.overused(QueueName("left")) is None
    assert opened.queue_shares is not None
    assert opened.queue_shares(QueueName("left")).share == 0
    refusal = opened.allocatable(QueueName("left"), gangs[0].waiting[0])
    assert refusal is not None
    numbers = Shortfall("cpu", asked=2000, free=1000, limit=4000, terminating=3000)
    assert (refusal.cause, refusal.where) == (Cause.QUEUE_QUOTA, where)
    assert refusal.shortfalls == (numbers,)
