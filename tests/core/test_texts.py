"""Refusals in words."""

import pytest

from app.core.texts import closeness_text, describe, filter_text
from app.kit.quantities import amount_text
from app.model.amounts import Amounts
from app.model.reason import (
    Cause,
    Closeness,
    Holder,
    NearestDomain,
    NodeCount,
    NoDomain,
    NoVictims,
    Refusal,
    Shortfall,
    Spared,
)
from tests.builders import make_amounts

GIB = 1 << 30


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (
            Refusal(
                Cause.QUEUE_QUOTA,
                where="test",
                shortfalls=(Shortfall("cpu", asked=2000, free=0, limit=2000),),
                holders=(Holder("default/job-1", "cpu", 2000),),
                detail="queue resource quota insufficient: insufficient cpu",
            ),
            "queue test: cpu asked 2, free 0 of 2; held by default/job-1 (cpu 2)",
        ),
        (
            Refusal(
                Cause.QUEUE_QUOTA,
                where="test",
                shortfalls=(
                    Shortfall("cpu", asked=1500, free=500, limit=2000),
                    Shortfall("memory", asked=2 * GIB, free=512 << 20),
                ),
                holders=(Holder("a/x", "cpu", 1000), Holder("a/y", "cpu", 500)),
            ),
            "queue test: cpu asked 1500m, free 500m of 2, memory asked 2Gi, free 512Mi; "
            "held by a/x (cpu 1), a/y (cpu 500m)",
        ),
        (
            Refusal(
                Cause.QUEUE_QUOTA,
                where="test",
                shortfalls=(Shortfall("cpu", asked=1000, free=0, limit=4000, terminating=4000),),
            ),
            "queue test: cpu asked 1, free 0 of 4, of which 4 are terminating",
        ),
        (
            Refusal(
                Cause.NOT_ENOUGH_RESOURCES,
                where="a/g",
                shortfalls=(Shortfall("cpu", asked=2000, free=1000, terminating=1000),),
            ),
            "group a/g: cpu asked 2, free 1 (1 terminating)",
        ),
        (
            Refusal(
                Cause.CLUSTER_OVERUSED,
                where="cluster",
                shortfalls=(Shortfall("nvidia.com/gpu", asked=8, free=4, limit=12),),
            ),
            "cluster: nvidia.com/gpu asked 8, free 4 of 12",
        ),
        (
            Refusal(
                Cause.NAMESPACE_QUOTA,
                where="team",
                shortfalls=(Shortfall("requests.cpu", asked=2000, free=0, limit=1000),),
            ),
            "resource quota of namespace team: requests.cpu asked 2, free 0 of 1",
        ),
        (
            Refusal(
                Cause.NOT_ENOUGH_TASKS,
                where="default/job-1",
                shortfalls=(Shortfall("pods", asked=3, free=2),),
            ),
            "group default/job-1: pods asked 3, present 2",
        ),
        (
            Refusal(
                Cause.NO_NODE_FITS,
                where="worker",
                nodes=(NodeCount("node(s) had a taint", 1), NodeCount("Insufficient cpu", 4)),
                total_nodes=5,
            ),
            "0/5 nodes are available: 4 Insufficient cpu, 1 node(s) had a taint",
        ),
        (
            Refusal(
                Cause.NOT_ENOUGH_RESOURCES,
                where="default/g",
                shortfalls=(Shortfall("cpu", asked=2000, free=1000),),
                total_nodes=5,
            ),
            "group default/g: cpu asked 2, free 1; 0/5 nodes are available",
        ),
        (Refusal(Cause.QUEUE_MISSING, where="lost"), "queue lost does not exist"),
        (Refusal(Cause.QUEUE_CLOSED, where="test"), "queue test is not open"),
        (Refusal(Cause.QUEUE_OVERUSED, where="test"), "share of queue test is used up"),
        (
            Refusal(Cause.QUEUE_BROKEN, where="a", detail="queue a is its own ancestor"),
            "queue a is its own ancestor",
        ),
        (
            Refusal(Cause.QUEUE_BROKEN, where="a"),
            "queue a: waiting for the tree of queues to be mended",
        ),
        (Refusal(Cause.GATED), "waiting for a scheduling gate to be removed"),
    ],
)
def test_a_refusal_is_one_sentence_with_its_numbers(refusal: Refusal, text: str) -> None:
    assert describe(refusal) == text


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_has_a_constant_text_for_filter_without_numbers(cause: Cause) -> None:
    text = filter_text(cause)
    assert text
    assert not any(char.isdigit() for char in text)


def test_the_texts_for_filter_differ() -> None:
    assert len({filter_text(cause) for cause in Cause}) == len(Cause)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 0, "0"),
        ("cpu", 2000, "2"),
        ("cpu", 1500, "1500m"),
        ("limits.cpu", 250, "250m"),
        ("memory", 0, "0"),
        ("memory", 1000, "1000"),
        ("memory", 1 << 20, "1Mi"),
        ("memory", 3 << 29, "1536Mi"),
        ("memory", 1 << 40, "1Ti"),
        ("requests.memory", 1 << 30, "1Gi"),
        ("memory", 16_393_244 << 10, "15.63Gi"),
        ("memory", 2_000_000_000, "1.86Gi"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("ephemeral-storage", 5 << 30, "5Gi"),
        ("nvidia.com/gpu", 4, "4"),
        ("pods", 110, "110"),
    ],
)
def test_amounts_are_written_as_people_write_them(resource: str, amount: int, text: str) -> None:
    assert amount_text(resource, amount) == text


def test_a_refusal_tells_how_many_candidates_each_rule_spares() -> None:
    none = NoVictims(
        "preempt",
        12,
        (Spared("same priority", 7), Spared("protected by a PodDisruptionBudget", 2)),
        "with all candidates gone, cpu 2 is free, and the members ask 3",
    )
    refusal = Refusal(
        Cause.NO_NODE_FITS, detail="no", no_victims=(none, NoVictims("reclaim", 0, ()))
    )
    assert describe(refusal) == (
        "no; preempt: 12 candidates: 7 same priority, 2 protected by a PodDisruptionBudget; "
        "with all candidates gone, cpu 2 is free, and the members ask 3"
    )


@pytest.mark.parametrize(
    ("takes", "lacks", "said"),
    [
        pytest.param(1, make_amounts(cpu=3000), "a lacks cpu 3", id="too little"),
        pytest.param(1, (), "a has nodes for 1 of 2", id="in pieces"),
        pytest.param(0, (), "no node of a takes any of them", id="ruled out"),
    ],
)
def test_the_best_domain_is_told_with_what_it_lacks(takes: int, lacks: Amounts, said: str) -> None:
    nearest = NearestDomain("a", takes, lacks)
    domain = NoDomain(2, make_amounts(cpu=2000), True, 1, nearest=nearest)
    refusal = Refusal(Cause.NO_DOMAIN, where="default/g", domain=domain)
    assert describe(refusal) == (
        f"group default/g: no domain of tier <= 1 has room for 2 pods of cpu 2; {said}"
    )
    held = (Holder("default/x", "cpu", 4000),)
    close = Closeness(2, "spine", 2, 1, nearest)
    assert closeness_text(close) == f"spine (tier 2); tier 1 could hold all: {said}"
    assert closeness_text(close, held).endswith(f"{said}, held by default/x (cpu 4)")


def test_a_domain_whose_sums_allow_all_members_is_told_to_have_no_room_side_by_side() -> None:
    nearest = NearestDomain("a", 2, ())
    domain = NoDomain(2, make_amounts(cpu=2000), False, 1, nearest=nearest)
    assert describe(Refusal(Cause.NO_DOMAIN, where="default/g", domain=domain)) == (
        "group default/g: no domain of tier <= 1 has room for 2 pods; the members do not fit side "
        "by side in a"
    )
