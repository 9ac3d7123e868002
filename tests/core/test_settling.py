"""Pods that have just got their places are left alone by gangs that were there already."""

from dataclasses import replace

from app.core.settling import SETTLING, SETTLING_S
from app.model.conf import PluginConf
from app.model.gang import Gang
from app.model.reason import Spared
from tests.builders import make_queue
from tests.core.actions.rigs import Outcome, cores, gang_of, policies
from tests.core.contended import RunningGang, contended, running_gang, victims
from tests.core.crowds import ROUND_S, Crowd, Job, boards
from tests.core.random_crowds import WEIGHTS, Rules

NOW = 10_000.0
A, B = make_queue("a"), make_queue("b")
ACTIONS = ("enqueue", "allocate", "preempt", "reclaim", "backfill")
WHOLE = PluginConf("gang", switches={"enablePreemptable": False, "enableReclaimable": False})
BY = policies((("priority", WHOLE, "conformance"), ("predicates", "proportion")), ACTIONS)
DRF = policies((("priority", "gang", "conformance"), ("predicates", "drf")), ACTIONS)


def lent(count: int, *, started: float) -> list[RunningGang]:
    """So many single pods of queue ``a``, all on one node."""
    pod = {"created": 1.0, "started": started}
    return [running_gang(f"lent{n}", [0], queue="a", pod=pod) for n in range(count)]


def asks(*, created: float, queue: str = "b", priority: int = 0) -> Gang:
    return replace(gang_of("asks", 1, queue=queue, priority=priority), created=created)


def full(
    gang: Gang, *running: RunningGang, beside: Gang | None = None, now: float = NOW
) -> Outcome:
    """A cycle for ``gang``, and one ``beside`` it, on a node of a core for each that runs."""
    waiting = (gang,) if beside is None else (gang, beside)
    nodes = cores(sum(len(each.runs) for each in running))
    return contended(*waiting, running=running, nodes=nodes, queues=(A, B), by=BY, now=now)


def test_what_a_queue_was_lent_while_a_gang_waited_is_not_taken_back_at_once() -> None:
    outcome = full(asks(created=NOW - 60), *lent(4, started=NOW - 50))
    assert victims(outcome) == set()
    none = outcome.refusal("asks").no_victims[0]
    assert (none.action, none.candidates) == ("reclaim", 4)
    assert none.spared == (Spared(SETTLING, 4),)


def test_after_five_minutes_it_is_taken_back() -> None:
    late = NOW - 50 + SETTLING_S
    assert len(victims(full(asks(created=NOW - 60), *lent(4, started=NOW - 50), now=late))) == 1


def test_a_gang_that_comes_later_takes_its_share_at_once() -> None:
    assert len(victims(full(asks(created=NOW - 40), *lent(4, started=NOW - 50)))) == 1


def test_a_pod_that_started_a_moment_after_a_gang_came_had_its_place_before() -> None:
    assert len(victims(full(asks(created=NOW - 54), *lent(4, started=NOW - 50)))) == 1


def test_no_older_pod_goes_in_the_stead_of_one_that_was_lent_room() -> None:
    older, *rest = lent(2, started=5.0)
    young = running_gang("young", [0, 0], queue="a", pod={"created": 1.0, "started": NOW - 50})
    assert victims(full(asks(created=NOW - 60), older, *rest, young)) == set()


def test_older_pods_go_where_their_queue_holds_too_much_without_the_young_ones() -> None:
    older = lent(4, started=5.0)
    young = running_gang("young", [0], queue="a", pod={"created": 1.0, "started": NOW - 50})
    gang, large = asks(created=NOW - 60), gang_of("large", 3, queue="b")
    gone = victims(full(gang, *older, young, beside=large))
    assert len(gone) == 1
    assert gone < {f"lent{n}-0" for n in range(4)}


def test_priority_inside_a_queue_goes_before_it() -> None:
    high = asks(created=NOW - 60, queue="a", priority=1)
    assert len(victims(full(high, *lent(4, started=NOW - 50)))) == 1


def test_priority_goes_not_before_pods_that_came_after_the_gang_was_refused_for_room() -> None:
    for refused_since, count in ((NOW - 51, 0), (NOW - 49, 1)):
        gang = asks(created=NOW - 60, queue="a", priority=1)
        high = replace(gang, refused_since=refused_since)
        assert len(victims(full(high, *lent(4, started=NOW - 50)))) == count


def test_an_equal_of_the_same_queue_waits() -> None:
    large = running_gang("large", [0, 0, 0], minimum=1, queue="a")
    young = running_gang(
        "large", [0, 0, 0], minimum=1, queue="a", pod={"created": 1.0, "started": NOW - 50}
    )
    gang = asks(created=NOW - 60, queue="a")
    for running, count in ((large, 1), (young, 0)):
        outcome = contended(gang, running=[running], nodes=cores(3), queues=(A, B), by=DRF, now=NOW)
        assert len(victims(outcome)) == count


def test_of_two_equal_gangs_the_one_that_came_later_may_evict() -> None:
    first = asks(created=NOW - 60)
    later = replace(gang_of("later", 1, queue="b"), created=NOW - 40)
    outcome = full(first, *lent(4, started=NOW - 50), beside=later)
    assert [plan.preemptor for plan in outcome.plan.evictions] == [later.key]


def test_two_jobs_do_not_evict_one_another_over_room_that_one_of_them_was_lent() -> None:
    rules = Rules(WEIGHTS, actions=0, whole=False, drf=False)
    crowd = Crowd(
        [
            Job("j0", 1, cpu=1, gib=2, queue="a", rows=(0,)),
            Job("j1", 3, cpu=2, gib=1, minimum=2, queue="b", ends_whole=True, rows=(0, 0, 1)),
            Job("j2", 2, cpu=1, gib=2, minimum=1, queue="a"),
        ],
        boards((5, 4), (2, 3)),
        rules.policies(),
        queues=(A, B),
        freezes=False,
    )
    crowd.until_quiet(most=6)
    assert [(each.preemptor, each.jobs) for each in crowd.evictions] == [("j2", {"j1"})]
    assert crowd.runs("j2") == 2, "the room of its second member is not left idle"
    assert f"2 {SETTLING}" in crowd.text("j1")
    crowd.rounds += int(SETTLING_S / ROUND_S)
    crowd.until_quiet(most=6)
    assert crowd.runs("j1") == 2, "it does not wait for ever"
