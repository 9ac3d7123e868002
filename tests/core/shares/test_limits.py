"""What counts when a claim is compared with a limit."""

import pytest

from app.core.planner import plan
from app.core.shares.limits import exceeding, guaranteed, missing, over_limit
from app.model.conf import PluginConf
from app.model.ids import QueueName
from app.model.reason import Cause, Holder, Refusal, Shortfall
from app.model.resources import CPU_COLUMN, MEMORY_COLUMN, Vector
from app.model.workload import GroupPhase, Queue
from tests.builders import make_gang, make_queue, make_snapshot
from tests.core.actions.rigs import cores, gang_of, policies
from tests.core.plugins.sessions import amounts_of, claiming, holding, room


@pytest.mark.parametrize(
    ("asked", "held", "expected"),
    [
        (room(cpu=1), room(cpu=3), ()),
        (room(cpu=1.5), room(cpu=3), (CPU_COLUMN,)),
        (room(cpu=1), room(cpu=1, gib=9), ()),
        (room(cpu=1, gib=1), room(cpu=5, gib=9), (CPU_COLUMN, MEMORY_COLUMN)),
        (room(pods=3), room(pods=9), ()),
    ],
    ids=["fits", "too much", "not asked for", "of two", "pods"],
)
def test_only_what_is_asked_for_exceeds_a_limit(
    asked: Vector, held: Vector, expected: tuple[int, ...]
) -> None:
    assert exceeding(asked, held=held, limit=room(cpu=4, gib=8, pods=2)) == expected


def test_what_a_gang_holds_is_not_missing() -> None:
    assert missing(make_gang()) is None
    assert missing(holding("h", cpu=3)) is None
    whole, part = (
        missing(claiming("c", cpu=4)),
        missing(holding("p", cpu=3, min_request=room(cpu=4))),
    )
    more = missing(holding("m", cpu=5, min_request=room(cpu=4)))
    assert whole is not None
    assert part is not None
    assert more is not None
    assert [v[CPU_COLUMN] for v in (whole, part, more)] == [4000, 1000, 0]


def sure(name: str, cpu: int, gib: int = 0) -> Queue:
    return make_queue(name, guarantee=amounts_of(cpu=cpu, gib=gib))


RIVALS = guaranteed((make_queue("none"), sure("a", 1), sure("b", 2), sure("c", 3), sure("d", 4)))


def refused(queue: Queue, *, limit: int) -> Refusal:
    lack = Shortfall("cpu", asked=9000, free=0, limit=limit)
    return over_limit(queue, (lack,), rivals=RIVALS)


def test_what_the_capability_of_a_queue_forbids_is_in_nobody_elses_hands() -> None:
    refusal = refused(make_queue("q", capability=amounts_of(cpu=4)), limit=4000)
    assert (refusal.cause, refusal.holders) == (Cause.QUEUE_QUOTA, ())


@pytest.mark.parametrize("capability", [amounts_of(), amounts_of(gib=1), amounts_of(cpu=5)])
def test_whoever_is_guaranteed_the_room_holds_it(capability: tuple[tuple[str, int], ...]) -> None:
    refusal = refused(make_queue("q", capability=capability), limit=4000)
    assert refusal.cause is Cause.QUEUE_ROOM
    assert refusal.holders == (
        Holder("guarantee of queue d", "cpu", 4000),
        Holder("guarantee of queue c", "cpu", 3000),
        Holder("guarantee of queue b", "cpu", 2000),
    )


def test_a_queue_is_not_in_its_own_way_nor_who_is_guaranteed_something_else() -> None:
    lack = (Shortfall("cpu", asked=9000, free=0, limit=4000),)
    own, other = sure("own", 1), sure("other", cpu=0, gib=3)
    refusal = over_limit(own, lack, rivals=(own, other))
    assert (refusal.cause, refusal.holders) == (Cause.QUEUE_ROOM, ())


@pytest.mark.parametrize(
    "plugin",
    ["proportion", "capacity", PluginConf("capacity", switches={"enableHierarchy": True})],
    ids=["proportion", "capacity", "tree"],
)
def test_what_several_idle_queues_are_guaranteed_is_kept_from_another_one(
    plugin: str | PluginConf,
) -> None:
    """Two queues keep 8 of 10 cores, so a third one gets 2 however much it asks for."""
    sure = [
        make_queue(name, guarantee=amounts_of(cpu=4), deserved=amounts_of(cpu=4)) for name in "ab"
    ]
    queues = (make_queue("root"), *sure, make_queue("c", deserved=amounts_of(cpu=2)))
    gangs = tuple(
        gang_of(f"g{number}", 1, queue=QueueName("c"), phase=GroupPhase.PENDING)
        for number in range(10)
    )
    snapshot = make_snapshot(nodes=cores(10), gangs=gangs, queues=queues)
    by = policies((("gang",), ("predicates", plugin)), ("enqueue", "allocate", "backfill"))
    assert len(plan(snapshot, by, now=1000.0, shapes=None).placed) == 2
