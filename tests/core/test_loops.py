"""No loops: evictions come to an end by themselves, and each one goes downhill.

Random trees of queues on full nodes (:mod:`tests.core.random_crowds`), cycle after cycle.
"""

from hypothesis import given

from tests.core.crowds import Crowd
from tests.core.downhill import slope
from tests.core.random_crowds import WEIGHTS, Rules, crowds
from tests.scale import examples

ROUNDS = 20
"""More than evictions take to end; a loop takes more."""


@examples(500, derandomize=True)
@given(crowds(freezes=True))
def test_with_frozen_replacements_evictions_end(crowd_of: tuple[Rules, Crowd]) -> None:
    rules, crowd = crowd_of
    crowd.until_quiet(most=ROUNDS)
    assert_fair(rules, crowd)
    if rules.alike:
        assert crowd.evicted().total() <= crowd.ran, crowd.told()


@examples(500, derandomize=True)
@given(crowds(freezes=False))
def test_with_replacements_that_ask_for_their_room_evictions_end(
    crowd_of: tuple[Rules, Crowd],
) -> None:
    rules, crowd = crowd_of
    crowd.until_quiet(most=ROUNDS)
    assert_fair(rules, crowd)


def assert_fair(rules: Rules, crowd: Crowd) -> None:
    """No two jobs evicted one another, no pod was evicted twice, and each eviction fell."""
    pairs = {(each.preemptor, job) for each in crowd.evictions for job in each.jobs}
    assert not {(job, by) for by, job in pairs if by != job} & pairs, crowd.told()
    assert set(crowd.evicted().values()) <= {1}, crowd.told()
    down = slope(crowd, by_weights=rules.shares == WEIGHTS, ancestors=rules.level > 0)
    for each in crowd.evictions:
        assert down.falls(each), each
