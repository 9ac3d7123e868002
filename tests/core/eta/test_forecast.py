"""When gangs start: by hand for small clusters, and against the planner cycle by cycle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.eta.course import COURSES, share_of
from app.core.eta.forecast import EtaOutcome
from app.core.eta.run_times import RunTime, Sketches
from app.model.ids import group_key
from tests.builders import make_amounts, make_queue
from tests.core.actions.rigs import HELM, policies
from tests.core.crowds import Job, boards
from tests.core.eta.timed import Timed
from tests.core.random_crowds import WHOLE
from tests.scale import examples

FIFO = policies()
HELM_CHART = policies(HELM)


def named(*names: str) -> tuple[str, ...]:
    return tuple(group_key("default", name) for name in names)


def test_on_one_node_jobs_start_one_after_the_other() -> None:
    crowd = Timed(
        [
            (Job("runs", 1, cpu=4, rows=(0,)), 20),
            (Job("next", 1, cpu=4), 30),
            (Job("last", 1, cpu=4), 5),
        ],
        boards(4),
        FIFO,
    )
    crowd.clock = 5.0
    one, last = crowd.eta("next"), crowd.eta("last")
    assert (one.p50, one.p90, one.nodes, one.after) == (20.0, 20.0, ("n0",), named("runs"))
    assert (last.p50, last.p90, last.after) == (50.0, 50.0, named("next", "runs"))
    assert last.ahead == named("next")


def test_a_gang_waits_for_the_last_end_that_it_needs() -> None:
    crowd = Timed(
        [
            (Job("short", 1, cpu=4, rows=(0,)), 10),
            (Job("long", 1, cpu=4, rows=(1,)), 60),
            (Job("both", 2, cpu=4), 1),
        ],
        boards(4, 4),
        FIFO,
    )
    eta = crowd.eta("both")
    assert (eta.p50, eta.nodes, eta.after) == (60.0, ("n0", "n1"), named("long", "short"))


def test_a_gang_that_fits_starts_now() -> None:
    crowd = Timed([(Job("fits", 2, cpu=1), 10)], boards(4), FIFO)
    eta = crowd.eta("fits")
    assert (eta.outcome, eta.p50, eta.nodes) == (EtaOutcome.NOW, 0.0, ("n0",))


def test_a_gang_that_no_node_can_take_never_starts() -> None:
    crowd = Timed([(Job("large", 1, cpu=8), 10)], boards(4), FIFO)
    eta = crowd.eta("large")
    assert eta.outcome is EtaOutcome.NEVER
    assert eta.refusal is not None


def test_without_a_run_time_it_is_unknown_and_the_job_is_named() -> None:
    crowd = Timed(
        [(Job("runs", 1, cpu=4, rows=(0,)), 20), (Job("next", 1, cpu=4), 30)], boards(4), FIFO
    )
    eta = crowd.eta("next", {})
    assert (eta.outcome, eta.p50, eta.lasting) == (EtaOutcome.UNKNOWN, None, named("runs"))


def test_a_job_of_unknown_time_that_is_not_in_the_way_does_not_matter() -> None:
    crowd = Timed(
        [
            (Job("runs", 1, cpu=4, rows=(0,)), 20),
            (Job("other", 1, cpu=4, rows=(1,)), 99),
            (Job("next", 1, cpu=4), 30),
        ],
        boards(4, 4),
        FIFO,
    )
    eta = crowd.eta("next", {"runs": RunTime(declared=20)})
    assert (eta.outcome, eta.p50, eta.lasting) == (EtaOutcome.LATER, 20.0, ())


def test_a_job_that_waits_for_a_limit_starts_when_its_queue_gives_room() -> None:
    queue = make_queue("small", capability=make_amounts(cpu=2000))
    crowd = Timed(
        [
            (Job("runs", 1, cpu=2, rows=(0,), queue="small"), 40),
            (Job("next", 1, cpu=2, queue="small"), 30),
        ],
        boards(8, 8),
        HELM_CHART,
        queues=[queue],
    )
    eta = crowd.eta("next")
    assert (eta.p50, eta.after) == (40.0, named("runs"))


def test_a_job_that_pods_are_evicted_for_starts_after_their_grace_period() -> None:
    tiers = (("priority", WHOLE, "conformance"), ("predicates",))
    by = policies(tiers, actions=("enqueue", "allocate", "preempt"))
    crowd = Timed(
        [
            (Job("low", 1, cpu=4, rows=(0,)), 9000),
            (Job("high", 1, cpu=4, priority=10), 50),
        ],
        boards(4),
        by,
    )
    crowd.clock = 1000.0
    eta = crowd.eta("high")
    assert (eta.outcome, eta.p50, eta.evicts) == (EtaOutcome.LATER, 1030.0, True)


def test_the_longer_a_job_has_run_the_later_its_end_counts() -> None:
    """Half of the runs take 10 s, the others 1,000 s: after 100 s it is one of the long ones."""
    learned = Sketches()
    for seconds in (10, 1000) * 10:
        learned.feed(b"k", seconds)
    counts = learned.of(b"k")
    assert counts is not None
    known = {"runs": RunTime(learned=(counts,))}
    crowd = Timed(
        [(Job("runs", 1, cpu=4, rows=(0,)), 1), (Job("next", 1, cpu=4), 1)], boards(4), FIFO
    )
    at_first = crowd.eta("next", known)
    crowd.clock = 100.0
    later = crowd.eta("next", known)
    assert at_first.p50 is not None
    assert at_first.p90 is not None
    assert at_first.p50 < at_first.p90
    assert at_first.p90 == pytest.approx(1000, rel=0.08)
    assert later.p50 == pytest.approx(1000, rel=0.08)


def test_the_first_of_many_ends_is_earlier_than_the_median_of_one() -> None:
    learned = Sketches()
    for seconds in range(10, 1010, 10):
        learned.feed(b"k", seconds)
    counts = learned.of(b"k")
    assert counts is not None
    running = [(Job(f"r{number}", 1, cpu=4, rows=(number,)), 1.0) for number in range(8)]
    known = {job.name: RunTime(learned=(counts,)) for job, _ in running}
    crowd = Timed([*running, (Job("next", 1, cpu=4), 1)], boards(*[4] * 8), FIFO)
    eta = crowd.eta("next", known)
    assert eta.p50 is not None
    assert 40 < eta.p50 < 200


def test_a_course_that_is_stopped_tells_how_far_it_came() -> None:
    crowd = Timed(
        [
            (Job("runs", 1, cpu=4, rows=(0,)), 20),
            (Job("next", 1, cpu=4), 30),
            (Job("last", 1, cpu=4), 5),
        ],
        boards(4),
        FIFO,
    )
    asked = iter((False, True))
    found = crowd.forecast(stops=lambda: next(asked))
    etas = found.etas
    assert etas[group_key("default", "next")].p50 == 20.0
    last = etas[group_key("default", "last")]
    assert (last.outcome, last.beyond) == (EtaOutcome.BEYOND, 50.0)


def test_each_gang_has_each_part_of_its_run_times_once() -> None:
    for name in ("a/b", "c/d", "e/f"):
        drawn = sorted(share_of(group_key(*name.split("/")), draw) for draw in range(COURSES))
        assert drawn == [(number + 0.5) / COURSES for number in range(COURSES)]


SECONDS = st.integers(1, 40).map(float)


@st.composite
def timed(draw: st.DrawFn) -> Timed:
    """A few nodes, full in part, with jobs of all sizes that wait."""
    sizes = draw(st.lists(st.sampled_from((2, 4, 4, 8)), min_size=1, max_size=4))
    free, jobs = list(sizes), []
    for number in range(draw(st.integers(0, 6))):
        cpu = draw(st.sampled_from((1, 2, 4)))
        rows = []
        for _ in range(draw(st.integers(1, 2))):
            row = draw(st.integers(0, len(sizes) - 1))
            if free[row] >= cpu:
                free[row] -= cpu
                rows.append(row)
        if rows:
            jobs.append((Job(f"r{number}", len(rows), cpu=cpu, rows=tuple(rows)), draw(SECONDS)))
    for number in range(draw(st.integers(1, 6))):
        cpu = draw(st.sampled_from((1, 2, 4, 8)))
        members, priority = draw(st.integers(1, 3)), draw(st.sampled_from((0, 0, 5)))
        jobs.append((Job(f"w{number}", members, cpu=cpu, priority=priority), draw(SECONDS)))
    return Timed(jobs, boards(*sizes), draw(st.sampled_from((FIFO, HELM_CHART))))


@examples(60)
@given(timed())
def test_with_exact_run_times_the_planner_does_what_was_forecast(crowd: Timed) -> None:
    found = crowd.forecast()
    crowd.run()
    for key, eta in found.etas.items():
        name = key.partition("/")[2]
        assert eta.p50 == eta.p90 == crowd.began.get(name), name
        if eta.p50 is not None:
            assert eta.nodes == tuple(f"n{row}" for row in crowd.first_rows[name])
