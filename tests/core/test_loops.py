"""No loops: evictions come to an end by themselves, and each one goes downhill.

Random trees of queues on full nodes (:mod:`tests.core.random_crowds`), cycle after cycle. Only pods
that ran at first are evicted, each once, so evictions are no more than these; but for priority
inside a queue: a gang may be outranked by one that could not have the room before it.
"""

from collections.abc import Iterator

from hypothesis import given

from app.model.eviction import VictimPod
from tests.core.crowds import Crowd, Eviction
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
    unranked = list(_victims_but_outranked(crowd))
    assert all(_ran_at_first(crowd, victim) for victim in unranked), crowd.told()
    assert len(unranked) <= crowd.ran, crowd.told()
    assert set(crowd.evicted().values()) <= {1}, crowd.told()
    if rules.alike:
        assert crowd.evicted().total() <= crowd.ran, crowd.told()
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
