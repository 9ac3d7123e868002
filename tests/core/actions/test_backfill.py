"""backfill: members that request nothing, beyond the minimum of their gang."""

from dataclasses import replace

from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.reason import Cause
from app.model.workload import GroupPhase, QueueState
from tests.builders import make_gang, make_queue
from tests.core.actions.rigs import HELM, IDLE, cores, counts_of, cycle, members, policies, vector

ALONE = policies(actions=("enqueue", "backfill"))


def mixed(busy: int, idle: int, minimum: int) -> Gang:
    """A gang with ``busy`` members of a core and ``idle`` ones that request nothing."""
    waiting = members("g", busy) + members("g", idle, shape=IDLE, role="idle")
    return make_gang("g", waiting=waiting, min_member=minimum)


def test_members_beyond_the_minimum_are_placed_one_by_one() -> None:
    outcome = cycle(mixed(1, 3, 1), nodes=cores(4))
    assert outcome.members("g") == ["g-0", "g-idle-0", "g-idle-1", "g-idle-2"]
    assert [d.whole for d in outcome.decisions("g")] == [True, False, False, False]
    assert outcome.refused == set()


def test_they_are_placed_when_the_cluster_is_full_of_requests() -> None:
    outcome = cycle(mixed(1, 1, 1), nodes=cores(1))
    assert set(outcome.members("g")) == {"g-0", "g-idle-0"}


def test_they_need_room_in_pods() -> None:
    outcome = cycle(mixed(1, 3, 1), nodes=cores(4, pods=2))
    assert outcome.members("g") == ["g-0", "g-idle-0"]
    refusal = outcome.refusal("g")
    assert refusal.cause is Cause.NOT_ENOUGH_RESOURCES
    assert [n.text for n in refusal.nodes] == ["node(s) pod number exceeded"]


def test_they_get_nothing_while_their_gang_lacks_its_minimum() -> None:
    outcome = cycle(mixed(6, 1, 6), nodes=cores(4))
    assert outcome.order == []


def test_without_backfill_they_wait_and_are_told() -> None:
    outcome = cycle(mixed(1, 1, 1), nodes=cores(4), by=policies(actions=("enqueue", "allocate")))
    assert outcome.members("g") == ["g-0"]
    assert outcome.refusal("g").cause is Cause.NOT_ADMITTED


def test_alone_it_places_gangs_that_request_nothing() -> None:
    assert len(cycle(mixed(0, 3, 2), nodes=cores(4), by=ALONE).members("g")) == 3
    assert cycle(mixed(0, 3, 2), nodes=cores(4, pods=1), by=ALONE).order == []


def test_alone_it_leaves_gangs_with_requests_alone() -> None:
    outcome = cycle(mixed(1, 3, 2), nodes=cores(4), by=ALONE)
    assert outcome.order == []
    assert outcome.refused == {"g"}


def test_members_of_a_running_gang_are_placed() -> None:
    waiting = members("g", 1, shape=IDLE)
    gang = make_gang(
        "g",
        waiting=waiting,
        min_member=1,
        phase=GroupPhase.RUNNING,
        counts=replace(counts_of(waiting), running=1),
        allocated=vector(cpu=1),
    )
    assert cycle(gang, nodes=cores(4), by=ALONE).members("g") == ["g-0"]


def test_members_of_groups_that_are_not_in_wait() -> None:
    gang = replace(mixed(0, 1, 0), phase=GroupPhase.PENDING, min_request=vector(cpu=100))
    by = policies((("overcommit",),))
    outcome = cycle(gang, nodes=cores(4), by=by)
    assert outcome.order == []
    assert outcome.refusal("g").cause is Cause.CLUSTER_OVERUSED


def test_a_closed_queue_gets_none_either() -> None:
    gang = replace(mixed(0, 1, 0), queue=QueueName("q"))
    queue = make_queue("q", state=QueueState.CLOSED)
    outcome = cycle(gang, nodes=cores(4), queues=[queue])
    assert outcome.order == []
    assert outcome.refusal("g").cause is Cause.QUEUE_CLOSED


def test_a_group_that_no_action_votes_on_is_told_that_it_is_not_in() -> None:
    gang = replace(mixed(1, 0, 1), phase=GroupPhase.PENDING)
    outcome = cycle(gang, nodes=cores(4), by=policies(actions=("backfill",)))
    assert outcome.refusal("g").cause is Cause.NOT_ADMITTED
    assert outcome.text("g") == "default/g: waiting for the group to be admitted"


def test_who_gets_all_places_here_keeps_no_refusal_of_before() -> None:
    """A queue may deserve no pod at all; what requests nothing gets its place all the same."""
    queues = (make_queue("left"), make_queue("right", weight=9))
    idle = make_gang(
        "g", waiting=members("g", 1, shape=IDLE), min_member=0, queue=QueueName("left")
    )
    many = make_gang("other", waiting=members("other", 9), queue=QueueName("right"))
    outcome = cycle(idle, many, nodes=cores(1, pods=5), queues=queues, by=policies(HELM))
    assert outcome.members("g") == ["g-0"]
    assert outcome.refused == {"other"}
