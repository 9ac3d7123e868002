"""No loops: evictions come to an end by themselves, and each one goes downhill.

Random trees of queues on full nodes (:mod:`tests.core.random_crowds`), cycle after cycle. Each pod
is evicted once at most. With frozen replacements, evictions are no more than the pods that ran at
first. With others, a gang that was evicted may come back and outrank one of its queue.
"""

from collections.abc import Iterator

from hypothesis import given

from app.core.settling import SETTLING_S
from app.model.eviction import VictimPod
from tests.builders import GIB, make_amounts, make_queue
from tests.core.crowds import ROUND_S, Crowd, Eviction, Job, boards
from tests.core.downhill import slope
from tests.core.random_crowds import WEIGHTS, Rules, crowds
from tests.scale import examples

ROUNDS = 20
"""More than evictions take to end; a loop takes more."""


@examples(500)
@given(crowds(freezes=True))
def test_with_frozen_replacements_evictions_end(crowd_of: tuple[Rules, Crowd]) -> None:
    rules, crowd = crowd_of
    crowd.until_quiet(most=ROUNDS)
    assert_fair(rules, crowd)
    assert crowd.evicted().total() <= crowd.ran, crowd.told()


@examples(500)
@given(crowds(freezes=False))
def test_with_replacements_that_ask_for_their_room_evictions_end(
    crowd_of: tuple[Rules, Crowd],
) -> None:
    rules, crowd = crowd_of
    crowd.until_quiet(most=ROUNDS)
    assert_fair(rules, crowd)


def assert_fair(rules: Rules, crowd: Crowd) -> None:
    """No two jobs evicted one another, only pods that ran at first went, and each eviction fell."""
    pairs = {(each.preemptor, job) for each in crowd.evictions for job in each.jobs}
    assert not {(job, by) for by, job in pairs if by != job} & pairs, crowd.told()
    unranked = _victims_but_outranked(crowd)
    assert all(_ran_at_first(crowd, victim) for victim in unranked), crowd.told()
    assert set(crowd.evicted().values()) <= {1}, crowd.told()
    down = slope(crowd, by_weights=rules.shares == WEIGHTS, ancestors=rules.level > 0)
    for each in crowd.evictions:
        assert down.falls(each), each


def _victims_but_outranked(crowd: Crowd) -> Iterator[VictimPod]:
    for eviction in crowd.evictions:
        for victim in eviction.plan.victims:
            if not _is_outranked(crowd, eviction, victim):
                yield victim


def _is_outranked(crowd: Crowd, eviction: Eviction, victim: VictimPod) -> bool:
    """Whether a pod that did not run at first goes for a gang of higher priority of its queue."""
    job, preemptor = crowd.jobs[_job(victim)], crowd.jobs[eviction.preemptor]
    higher = job.queue == preemptor.queue and job.priority < preemptor.priority
    return higher and not _ran_at_first(crowd, victim)


def _ran_at_first(crowd: Crowd, victim: VictimPod) -> bool:
    number = victim.name.rpartition("-")[2]
    return number.isdecimal() and int(number) < len(crowd.jobs[_job(victim)].rows)


def _job(victim: VictimPod) -> str:
    return victim.name.rpartition("-")[0]


def test_what_a_whole_gang_leaves_beside_its_preemptor_stays_with_the_next_gang() -> None:
    """``j4`` takes one core of three that ``j0`` leaves, and ``j5`` finds its core there.

    The replacements of ``j0`` would have that core first in the next cycle, and ``j5`` would evict
    ``j3``, which had just taken back the share of their queue.
    """
    shares = ((2, 1), (4, 3), (0, 4), (3, 4))
    queues = [
        make_queue(
            f"q{number}",
            deserved=make_amounts(cpu=cpu * 1000, memory=gib * GIB),
            priority=int(number == 2),
        )
        for number, (cpu, gib) in enumerate(shares)
    ]
    jobs = (
        Job("j0", 3, 1, 0, 2, "q2", 2, (0, 0, 0), ends_whole=True),
        Job("j1", 3, 1, 2, 2, "q2", 1, (0, 0, 1), ends_whole=True),
        Job("j2", 1, 2, 2, 0, "q2", 1, (1,)),
        Job("j3", 2, 2, 1, 1, "q1"),
        Job("j4", 1, 1, 0, 0, "q1", 2),
        Job("j5", 1, 1, 0, 0, "q1", 2),
    )
    rules = Rules("flat", 1, whole=True, drf=True, level=1)
    crowd = Crowd(jobs, boards((5, 5), (3, 5)), rules.policies(), queues=queues, freezes=False)
    crowd.until_quiet(most=ROUNDS)
    assert "j3-0" not in crowd.evicted()
    assert crowd.evicted().total() <= crowd.ran


def test_a_gang_that_pods_were_evicted_for_keeps_its_place_though_one_goes_before_it() -> None:
    """``j6`` deserves no cpu and cannot reclaim; ``j5`` of its queue can, for its memory.

    If ``j6`` took its place, both pods of ``j0`` had gone for nothing, and three had gone of two.
    """
    queues = [
        make_queue("t0", reclaimable=False),
        make_queue("q0"),
        make_queue("q1", parent="t0", deserved=make_amounts(memory=GIB), reclaimable=False),
    ]
    jobs = (
        Job("j0", 2, 2, 0, 2, "q0", rows=(0, 1)),
        *(Job(f"j{number}", 1, 1, 0, 1, "q0") for number in range(1, 5)),
        Job("j5", 1, 1, 1, 1, "q1"),
        Job("j6", 1, 1, 0, 1, "q1", 1),
    )
    rules = Rules("tree", 0, whole=True, drf=False, level=0, borrows=False)
    crowd = Crowd(jobs, boards((2, 2), (2, 2)), rules.policies(), queues=queues)
    crowd.until_quiet(most=ROUNDS)
    assert [(each.preemptor, each.victims) for each in crowd.evictions] == [
        ("j5", ["j0-0", "j0-1"])
    ]
    crowd.rounds += int(SETTLING_S / ROUND_S)
    crowd.until_quiet(most=ROUNDS)
    assert crowd.runs("j6") == 1, "it does not wait for ever"


def test_room_that_an_ended_gang_leaves_is_not_kept_for_a_lower_one_of_its_queue() -> None:
    """``j1`` ends ``j0`` and needs half of its room; ``j0`` comes back to the other half.

    If ``j2`` were given that half first, ``j0`` would evict it a moment later.
    """
    jobs = (
        Job("j0", 3, 2, 0, 1, "q0", 1, rows=(0, 0), ends_whole=True),
        Job("j1", 1, 2, 0, 1, "q0", 2),
        Job("j2", 1, 1, 0, 1, "q0", 0),
    )
    rules = Rules("flat", 0, whole=True, drf=False, borrows=False)
    crowd = Crowd(jobs, boards((4, 2)), rules.policies(), queues=[make_queue("q0")])
    crowd.until_quiet(most=ROUNDS)
    assert [(each.preemptor, each.victims) for each in crowd.evictions] == [
        ("j1", ["j0-0", "j0-1"])
    ]
    assert crowd.runs("j0") == 1
