"""Gangs bigger than their queue's share: when they get room, and whom they leave it to."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.reason import Cause
from app.model.workload import GroupPhase, Queue
from tests.builders import make_gang, make_node, make_queue
from tests.core.actions.rigs import (
    HELM,
    Outcome,
    amounts_of,
    cores,
    cycle,
    gang_of,
    members,
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


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")])
def test_of_two_queues_whose_gangs_need_more_than_half_the_older_one_runs(
    first: str, second: str
) -> None:
    old, young = of(first, "old", 6, created=1.0), of(second, "young", 6, created=2.0)
    outcome = shared(old, young)
    assert outcome.order == ["old"]
    assert len(outcome.nodes("old")) == 6
    assert outcome.refused == {"young"}
    assert outcome.text("young").startswith("group default/young: cpu asked 6, free 4 of 10")
    assert shared(young, old).order == ["old"]


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


def test_what_the_others_deserve_is_theirs_first() -> None:
    whale = of("a", "whale", 6, created=1.0)
    fish = [of("b", f"fish-{number}", 1, created=2.0) for number in range(9)]
    outcome = shared(whale, *fish)
    assert set(outcome.order) == {f"fish-{number}" for number in range(5)}
    assert outcome.refused == {"whale", *(f"fish-{number}" for number in range(5, 9))}


def test_two_of_them_run_when_both_fit() -> None:
    queues = [make_queue("a"), make_queue("b"), make_queue("c", weight=3)]
    waits = of("c", "waits", 9, phase=GroupPhase.PENDING, min_request=vector(cpu=99))
    outcome = shared(of("a", "one", 4), of("b", "two", 5), waits, queues=queues)
    assert set(outcome.order) == {"one", "two"}


def test_room_that_somebody_is_entitled_to_is_left_to_him() -> None:
    queues = [make_queue("a"), make_queue("b", weight=8), make_queue("c")]
    whale, entitled = of("c", "whale", 4), of("b", "entitled", 5, created=1.0)
    outcome = beside([running("a", 6)], whale, entitled, queues=queues)
    assert outcome.order == []
    assert outcome.refusal("whale").cause is Cause.QUEUE_OVERUSED
    assert outcome.refusal("entitled").cause is Cause.NOT_ENOUGH_RESOURCES


def test_a_queue_that_holds_its_share_gets_nothing_lent() -> None:
    queues = [make_queue("a"), make_queue("b", weight=4)]
    more, whale = of("a", "more", 3), of("b", "whale", 9, created=1.0)
    outcome = beside([running("a", 2)], more, whale, queues=queues)
    assert outcome.order == []
    assert outcome.refusal("more").cause is Cause.QUEUE_OVERUSED


def test_a_queue_that_holds_part_of_its_share_may_get_one_gang_beyond_it() -> None:
    outcome = beside([running("a", 1)], of("a", "more", 6), of("b", "whale", 7, created=1.0))
    assert outcome.order == ["more"]
    assert outcome.refusal("whale").cause is Cause.NOT_ENOUGH_RESOURCES


def test_a_gang_that_the_share_could_hold_waits_for_its_own_queue() -> None:
    outcome = beside([running("a", 2)], of("a", "more", 4), of("b", "whale", 9))
    assert outcome.order == []
    assert outcome.refusal("more").cause is Cause.QUEUE_OVERUSED


def test_no_capability_is_exceeded() -> None:
    queues = (make_queue("a", capability=amounts_of(cpu=6)), make_queue("b"))
    held = [running("a", 1)]
    outcome = beside(held, of("a", "more", 6), of("b", "whale", 8, created=1.0), queues=queues)
    assert outcome.order == ["whale"]
    assert outcome.refusal("more").cause in (Cause.QUEUE_OVERUSED, Cause.QUEUE_QUOTA)


def test_the_oldest_that_does_not_fit_yet_keeps_younger_ones_out() -> None:
    old, young = of("b", "old", 8, created=1.0), of("c", "young", 4, created=2.0)
    outcome = beside([running("a", 6)], old, young, queues=THREE)
    assert outcome.order == []
    assert outcome.refusal("old").cause is Cause.NOT_ENOUGH_RESOURCES


def test_one_that_can_never_fit_keeps_nobody_out() -> None:
    never = of("b", "never", 1, cpu=6, created=1.0)
    outcome = shared(never, of("a", "young", 6, created=2.0), nodes=cores(5, 5))
    assert outcome.order == ["young"]
    assert outcome.refused == {"never"}


def test_one_that_asks_for_more_than_there_is_keeps_nobody_out() -> None:
    never, young = of("b", "never", 12, created=1.0), of("c", "young", 4, created=2.0)
    outcome = beside([running("a", 1)], never, young, queues=THREE)
    assert outcome.order == ["young"]
    assert outcome.refused == {"never"}


def test_what_one_could_not_use_is_lent_to_the_next_of_its_queue() -> None:
    never, young = of("a", "never", 1, cpu=6, created=1.0), of("a", "young", 6, created=2.0)
    outcome = shared(never, young, of("b", "whale", 9, created=3.0), nodes=cores(5, 5))
    assert outcome.order == ["young"]


def test_what_cannot_be_shared_at_all_goes_to_the_oldest() -> None:
    node = make_node("n", cpu=1)
    old, young = (of(q, q, 1, cpu=0.001, created=at) for q, at in (("b", 1.0), ("a", 2.0)))
    assert shared(young, old, nodes=[node]).order == ["b"]


def test_members_beyond_the_minimum_are_not_lent_to() -> None:
    elastic = replace(of("a", "elastic", 9, created=1.0), min_member=6)
    outcome = shared(elastic, of("b", "whale", 9, created=2.0))
    assert len(outcome.nodes("elastic")) == 6
    assert outcome.refusal("elastic").cause is Cause.QUEUE_OVERUSED


def test_a_gang_with_its_minimum_takes_no_more_than_its_share() -> None:
    reached = make_gang(
        "reached",
        queue=QueueName("a"),
        phase=GroupPhase.RUNNING,
        waiting=members("reached", 3, cpu=3),
        min_member=1,
        allocated=vector(cpu=3),
        request=vector(cpu=12),
        counts=replace(of("a", "x", 3).counts, running=1),
    )
    taken = used(cores(10), n0=3)
    outcome = shared(reached, of("b", "whale", 8), used=taken)
    assert outcome.order == []


def test_on_demand_nothing_is_lent() -> None:
    old, young = of("a", "old", 6, created=1.0), of("b", "young", 6, created=2.0)
    outcome = shared(old, young, on_demand="old")
    assert outcome.order == []
    assert outcome.refusal("old").cause is Cause.QUEUE_OVERUSED
