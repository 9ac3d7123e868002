"""The last resort against evictions in circles: they are counted by job and by pair of jobs."""

from app.service.cycle.eviction_pauses import OF_ONE_JOB, OF_ONE_PAIR, WINDOW_S, EvictionGuard
from app.service.telling.evicting import state_of_evictions
from app.telemetry import metrics
from tests.service.evicting import Contended
from tests.service.rig import working
from tests.service.virtual_time import advance

NOW = 10_000.0


def guard_of(*pairs: tuple[str, str]) -> EvictionGuard:
    """A guard that saw in one cycle after the other how the second job lost pods to the first."""
    guard = EvictionGuard()
    for cycle, (preemptor, job) in enumerate(reversed(pairs), start=1):
        guard.note(preemptor, [job], now=NOW - cycle)
    return guard


def test_a_job_loses_pods_to_the_same_job_three_times_in_ten_minutes() -> None:
    guard = guard_of(*[("high", "low")] * (OF_ONE_PAIR - 1))
    assert guard.refuses("high", ["low"], now=NOW) == ""
    guard.note("high", ["low"], now=NOW)
    assert guard.refuses("high", ["low"], now=NOW) == "", "what one cycle decides counts once"
    later = NOW + 1
    assert guard.refuses("high", ["else", "low"], now=later) == "low"
    assert guard.refuses("other", ["low"], now=later) == "", "it is another pair"
    assert guard.refuses("low", ["high"], now=later) == "", "so it is the other way round"
    assert guard.refuses("high", ["low"], now=NOW + WINDOW_S) == ""


def test_a_job_loses_pods_to_all_jobs_six_times_in_ten_minutes() -> None:
    guard = guard_of(*((f"high{number}", "low") for number in range(OF_ONE_JOB)))
    assert guard.refuses("another", ["low"], now=NOW) == "low"
    assert guard.counts(now=NOW) == {"low": OF_ONE_JOB}
    assert guard.refuses("another", ["low"], now=NOW + WINDOW_S) == ""
    assert guard.counts(now=NOW + WINDOW_S) == {}


async def test_a_group_pauses_that_wants_pods_of_a_job_which_lost_some_again_and_again() -> None:
    rig, before = Contended(), guarded()
    low, high = rig.key("low"), rig.key("high")
    with working(rig):
        for _ in range(OF_ONE_PAIR):
            rig.evictions.guard.note(high, [low], now=rig.clock())
            await advance(1.0)
        rig.decide(rig.plan())
        await advance(1.0)
        assert rig.begun() is None
        assert rig.evicted() == []
        assert guarded() == before + 1
        state = state_of_evictions(rig.cache, rig.evictions, now=rig.clock())
        assert "again and again" in state["paused"][high].why
        assert state["decisionsByVictimsJob"] == {low: OF_ONE_PAIR}
        told = "no pods are evicted for it: default/low has lost pods again and again"
        assert ("Warning", "EvictionWasted", told) in rig.events("PodGroup default/high")


def guarded() -> float:
    [sample] = [
        each
        for each in next(iter(metrics.EVICTIONS_GUARDED.collect())).samples
        if each.name.endswith("_total")
    ]
    return sample.value
