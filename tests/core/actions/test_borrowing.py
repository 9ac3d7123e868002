"""Room beyond the shares of queues: who borrows it, up to which limits, and in which order."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.reason import Cause
from app.model.workload import GroupPhase, Queue
from tests.builders import make_gang, make_queue
from tests.core.actions.rigs import (
    HELM,
    STRICT,
    Outcome,
    amounts_of,
    cores,
    cycle,
    gang_of,
    policies,
    used,
    vector,
)

TWO = (make_queue("a"), make_queue("b"))
THREE = (*TWO, make_queue("c"))


def shared(*gangs: Gang, queues: Sequence[Queue] = TWO, **fields: Any) -> Outcome:
    """A cycle on 10 cores, if not told otherwise, that queues share by weight."""
    defaults: dict[str, Any] = {"nodes": cores(10), "by": policies(HELM)}
    return cycle(*gangs, queues=queues, **(defaults | fields))


def of(queue: str, name: str, size: int, **fields: Any) -> Gang:
    return gang_of(name, size, queue=QueueName(queue), **fields)


def running(queue: str, size: int) -> Gang:
    """A gang of ``queue`` that runs on that many cores."""
    return make_gang(
        f"old-{queue}",
        queue=QueueName(queue),
        phase=GroupPhase.RUNNING,
        min_member=1,
        allocated=vector(cpu=size),
        request=vector(cpu=size),
    )


def beside(held: Sequence[Gang], *gangs: Gang, queues: Sequence[Queue] = TWO) -> Outcome:
    """A cycle beside gangs that run already."""
    taken = used(cores(10), n0=sum(gang.allocated[0] for gang in held) / 1000)
    return shared(*held, *gangs, queues=queues, pending=gangs, used=taken)


GANGS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 10), st.integers(0, 3)), min_size=1, max_size=6
)


@given(asked=GANGS, weights=st.tuples(*[st.integers(1, 9)] * 3))
def test_whatever_is_asked_and_by_whom_all_run_one_after_the_other(
    asked: list[tuple[str, int, int]], weights: tuple[int, ...]
) -> None:
    queues = [make_queue(name, weight=w) for name, w in zip("abc", weights, strict=True)]
    waiting = {
        f"g{i}": of(queue, f"g{i}", size, created=float(created))
        for i, (queue, size, created) in enumerate(asked)
    }
    while waiting:
        ran = shared(*waiting.values(), queues=queues).order
        assert ran
        for name in ran:
            del waiting[name]


def test_of_two_gangs_larger_than_their_shares_one_runs_and_the_other_waits_whole() -> None:
    old, young = of("a", "old", 6, created=1.0), of("b", "young", 6, created=2.0)
    outcome = shared(old, young)
    assert outcome.order == ["old"]
    assert len(outcome.nodes("old")) == 6
    assert outcome.refused == {"young"}


def test_with_strict_shares_neither_runs_as_in_volcano() -> None:
    old, young = of("a", "old", 6, created=1.0), of("b", "young", 6, created=2.0)
    outcome = shared(old, young, by=policies(STRICT))
    assert outcome.order == []
    assert outcome.refusal("old").cause is Cause.QUEUE_OVERUSED


def test_what_a_queue_deserves_is_its_own_first() -> None:
    whale = of("a", "whale", 5, created=9.0)
    fish = [of("b", f"fish-{number}", 1, created=2.0) for number in range(9)]
    outcome = shared(whale, *fish)
    assert len(outcome.nodes("whale")) == 5
    assert sum(name.startswith("fish") for name in outcome.order) == 5


def test_what_an_entitled_gang_is_too_large_for_is_borrowed_by_others() -> None:
    whale = of("a", "whale", 6, created=1.0)
    fish = [of("b", f"fish-{number}", 1, created=2.0) for number in range(9)]
    outcome = shared(whale, *fish)
    assert set(outcome.order) == {f"fish-{number}" for number in range(9)}
    assert outcome.refused == {"whale"}


def test_with_strict_shares_it_stays_idle() -> None:
    whale = of("a", "whale", 6, created=1.0)
    fish = [of("b", f"fish-{number}", 1, created=2.0) for number in range(9)]
    outcome = shared(whale, *fish, by=policies(STRICT))
    assert len(outcome.order) == 5


def test_a_queue_that_holds_its_share_borrows_what_no_other_can_use() -> None:
    queues = [make_queue("a"), make_queue("b", weight=4)]
    more, whale = of("a", "more", 3), of("b", "whale", 9, created=1.0)
    outcome = beside([running("a", 2)], more, whale, queues=queues)
    assert outcome.order == ["more"]


def test_the_queue_that_holds_less_of_its_share_borrows_first() -> None:
    fits_one = [of("a", "of-a", 4), of("b", "of-b", 4), of("c", "of-c", 9)]
    outcome = beside([running("a", 4), running("b", 2)], *fits_one, queues=THREE)
    assert outcome.order == ["of-b"]


def test_no_capability_is_exceeded_by_borrowing() -> None:
    queues = (make_queue("a", capability=amounts_of(cpu=6)), make_queue("b"))
    held = [running("a", 1)]
    outcome = beside(held, of("a", "more", 6), of("b", "whale", 8, created=1.0), queues=queues)
    assert outcome.order == ["whale"]
    assert outcome.refusal("more").cause in (Cause.QUEUE_OVERUSED, Cause.QUEUE_QUOTA)


def test_what_another_queue_is_guaranteed_is_never_borrowed() -> None:
    queues = (make_queue("a"), make_queue("b", guarantee=amounts_of(cpu=3)))
    outcome = shared(of("a", "large", 8), of("a", "fits", 7, created=1.0), queues=queues)
    assert outcome.order == ["fits"]


def test_a_gang_that_no_node_fits_keeps_no_other_out() -> None:
    never = of("b", "never", 1, cpu=6, created=1.0)
    outcome = shared(never, of("a", "young", 6, created=2.0), nodes=cores(5, 5))
    assert outcome.order == ["young"]
    assert outcome.refused == {"never"}


def test_members_beyond_the_minimum_borrow_after_all_minimums() -> None:
    elastic = replace(of("a", "elastic", 9, created=1.0), min_member=6)
    other = of("b", "other", 4, created=2.0)
    outcome = shared(elastic, other)
    assert len(outcome.nodes("elastic")) == 6
    assert len(outcome.nodes("other")) == 4
    assert len(shared(elastic).nodes("elastic")) == 9


def test_on_demand_nothing_is_borrowed() -> None:
    old, young = of("a", "old", 6, created=1.0), of("b", "young", 6, created=2.0)
    outcome = shared(old, young, on_demand="old")
    assert outcome.order == []
    assert outcome.refusal("old").cause is Cause.QUEUE_OVERUSED


def test_what_a_gang_borrows_is_told_with_the_queue_that_it_borrows_from() -> None:
    whale = of("a", "whale", 6, created=1.0)
    fish = [of("b", f"fish-{number}", 1, created=2.0 + number) for number in range(9)]
    loans = shared(whale, *fish).plan.loans
    assert {key.partition("/")[2] for key in loans} == {f"fish-{n}" for n in range(5, 9)}
    assert {loan.borrowed_from for loan in loans.values()} == {"a"}
    assert all(loan.amount[0] == 1000 for loan in loans.values())


def test_who_holds_its_share_and_no_more_borrows_nothing() -> None:
    assert not shared(of("a", "one", 5), of("b", "two", 5)).plan.loans
