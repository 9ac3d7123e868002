"""What ``pumice explain`` advises: what would really help."""

from __future__ import annotations

import pytest

from app.cli.next_steps import next_step
from app.core.texts import ONE_BY_ONE, describe
from app.model.amounts import PODS
from app.model.reason import (
    GUARANTEE,
    MEMBERS_MISSING,
    SCHEDULER,
    Cause,
    Holder,
    Refusal,
    Shortfall,
)

LACK = Shortfall("cpu", asked=4000, free=1000, limit=2000)
JOB = Holder("default/job", "cpu", 1000)


def advice(refusal: Refusal, *, queue: str = "q") -> str:
    return next_step(refusal.cause, describe(refusal), queue=queue)


def guaranteed(queue: str) -> Holder:
    return Holder(f"{GUARANTEE} queue {queue}", "cpu", 6000)


def short(cause: Cause, *holders: Holder, where: str = "q") -> Refusal:
    return Refusal(cause, where=where, shortfalls=(LACK,), holders=holders)


def test_a_capability_that_is_used_up_may_be_raised() -> None:
    quota = short(Cause.QUEUE_QUOTA, JOB)
    assert advice(quota) == "wait for jobs of the queue to end, or raise its capability"


def test_a_stateful_set_that_makes_its_pods_one_by_one_has_to_make_them_at_once() -> None:
    lacks = Refusal(
        Cause.NOT_ENOUGH_TASKS,
        where="default/web",
        shortfalls=(Shortfall(PODS, asked=3, free=1),),
        note=ONE_BY_ONE,
    )
    assert advice(lacks) == (
        "make the StatefulSet anew with podManagementPolicy: Parallel, "
        "or lower scheduling.volcano.sh/group-min-member"
    )


def test_in_a_tree_the_queue_above_is_named_when_its_capability_is_meant() -> None:
    quota = short(Cause.QUEUE_QUOTA, JOB, where="above")
    assert advice(quota) == "wait for jobs of queue above to end, or raise its capability"


def test_pods_that_are_terminating_need_no_job_to_end() -> None:
    lack = Shortfall("cpu", asked=4000, free=0, limit=4000, terminating=4000)
    quota = Refusal(Cause.QUEUE_QUOTA, where="above", shortfalls=(lack,))
    assert advice(quota) == (
        "wait for pods of queue above to end (some are terminating already),"
        " or raise its capability"
    )


@pytest.mark.parametrize(
    ("holders", "step"),
    [
        ((), "wait for jobs of the queue to end, or add nodes"),
        ((JOB,), "wait for jobs of the queue to end, or add nodes"),
        (
            (guaranteed("a"), JOB),
            "wait for jobs of the queue to end, lower the guarantee of queue a, or add nodes",
        ),
        (
            (guaranteed("a"), guaranteed("b")),
            "wait for jobs of the queue to end, "
            "lower the guarantee of queue a and queue b, or add nodes",
        ),
    ],
    ids=["nothing", "a job", "a guarantee", "guarantees"],
)
def test_what_limits_a_queue_below_its_capability_is_named(
    holders: tuple[Holder, ...], step: str
) -> None:
    assert advice(short(Cause.QUEUE_ROOM, *holders)) == step


def test_a_queue_that_is_shut_is_opened_by_name() -> None:
    shut = Refusal(Cause.QUEUE_CLOSED, where="q")
    assert advice(shut) == "open the queue: pumice queue operate --action open --name q"


@pytest.mark.parametrize("cause", list(Cause))
def test_there_is_something_to_say_for_every_cause(cause: Cause) -> None:
    step = advice(Refusal(cause, where="q"))
    assert step
    assert not set("{}") & set(step)


@pytest.mark.parametrize(
    ("cause", "says"),
    [
        (Cause.VETOED, "tries these nodes again by itself"),
        (Cause.SCHEDULER_REFUSES, "tries the pod again by itself"),
        (Cause.IN_PREBIND, "binds the pod by itself"),
        (Cause.NOT_ADMITTED, "volcano-scheduler.conf has the actions"),
        (Cause.COOLING_DOWN, "plans the group again by itself"),
        (Cause.COLLECTING, "keeps what comes free until"),
        (Cause.QUEUE_ORDER, "wait for the earlier group of the queue"),
        (Cause.STANDS_BACK, "the group named goes first"),
    ],
)
def test_where_there_is_something_to_wait_for_it_says_so(cause: Cause, says: str) -> None:
    assert says in advice(Refusal(cause, where="q"))


def test_what_nobody_knows_gets_no_advice() -> None:
    assert next_step("ErrImagePull", "pod default/p: ErrImagePull", queue="q") == ""


@pytest.mark.parametrize("cause", sorted(MEMBERS_MISSING))
def test_pods_that_another_scheduler_took_need_our_name_in_their_template(cause: Cause) -> None:
    lack = Shortfall(PODS, asked=4, free=0)
    taken = Holder(f"{SCHEDULER} default-scheduler", PODS, 4)
    missing = Refusal(cause, where="default/g", shortfalls=(lack,), holders=(taken,))
    assert advice(missing) == (
        "set schedulerName in the template of its pods: they are those of scheduler "
        "default-scheduler"
    )


def test_members_that_nobody_took_have_to_be_created() -> None:
    lack = Shortfall(PODS, asked=4, free=0)
    missing = Refusal(Cause.NOT_ENOUGH_TASKS, where="default/g", shortfalls=(lack,))
    assert advice(missing) == "create the missing pods, or lower minMember"
