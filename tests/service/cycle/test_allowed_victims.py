"""What one preemptor may evict is lost for the next ones, though the watch does not show it yet."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.cluster import ClusterCache
from app.model.disruption import DisruptionBudget
from app.model.ids import NodeName, PodUid
from app.model.pod import Pod
from app.model.shape import LabelSelector
from app.service.calls.preemption import Candidate, Strike
from app.service.cycle.allowed_victims import KEPT_S, AllowedVictims
from tests.builders import make_pod
from tests.service.rig import Rig
from tests.service.virtual_time import advance

STOCK = "default-scheduler"


def gang_of_four(*, minimum: int) -> Rig:
    """Two members on either of two nodes, and foreign preemptors."""
    rig = Rig()
    rig.node("n1", "n2", cpu=4000)
    rig.group("g", minimum=minimum)
    for i in range(4):
        node = NodeName("n1" if i < 2 else "n2")
        rig.pod(f"g-{i}", group="g", node=node, phase="Running")
    for name in "abc":
        rig.pod(name, scheduler=STOCK)
    return rig


async def test_two_preemptions_in_a_row_leave_a_gang_its_minimum() -> None:
    rig = gang_of_four(minimum=3)
    assert rig.preempt("a", n1=["g-0"]) is None
    assert rig.preempt("b", n2=["g-2"]) is Strike.GANG_MINIMUM


async def test_what_a_gang_has_beyond_its_minimum_several_may_evict() -> None:
    rig = gang_of_four(minimum=2)
    assert rig.preempt("a", n1=["g-0"]) is None
    assert rig.preempt("b", n2=["g-2"]) is None
    assert rig.preempt("c", n2=["g-3"]) is Strike.GANG_MINIMUM


async def test_the_same_victim_is_lost_once() -> None:
    rig = gang_of_four(minimum=3)
    assert rig.preempt("a", n1=["g-0"]) is None
    assert rig.preempt("b", n1=["g-0"]) is None


async def test_who_asks_again_is_not_counted_against_itself() -> None:
    rig = gang_of_four(minimum=3)
    assert rig.preempt("a", n1=["g-0"]) is None
    assert rig.preempt("a", n2=["g-2"]) is None
    assert rig.preempt("b", n1=["g-0"]) is Strike.GANG_MINIMUM


async def test_once_the_deletion_shows_it_is_counted_once() -> None:
    rig = gang_of_four(minimum=2)
    assert rig.preempt("a", n1=["g-0"]) is None
    rig.store(replace(rig.api.pods["default/g-0"], deleting=True))
    assert rig.preempt("b", n2=["g-2"]) is None
    rig.delete("g-0", "g-2")
    assert rig.preempt("c", n2=["g-3"]) is Strike.GANG_MINIMUM


async def test_an_eviction_that_never_comes_is_forgotten() -> None:
    rig = gang_of_four(minimum=3)
    assert rig.preempt("a", n1=["g-0"]) is None
    await advance(KEPT_S - 1)
    assert rig.preempt("b", n2=["g-2"]) is Strike.GANG_MINIMUM
    await advance(1)
    assert rig.preempt("b", n2=["g-2"]) is None


async def test_the_rest_of_a_gang_is_not_the_whole_while_its_victim_may_stay() -> None:
    rig = gang_of_four(minimum=3)
    assert rig.preempt("a", n1=["g-0"]) is None
    assert rig.preempt("b", n2=["g-1", "g-2", "g-3"]) is Strike.GANG_MINIMUM
    assert rig.preempt("b", n2=["g-0", "g-1", "g-2", "g-3"]) is None


async def test_a_veto_evicts_nobody() -> None:
    rig = gang_of_four(minimum=3)
    assert rig.preempt("a", n1=["g-0", "g-1"]) is Strike.GANG_MINIMUM
    assert rig.preempt("b", n2=["g-2"]) is None


# PodDisruptionBudgets


def budgeted(*, allowed: int) -> Rig:
    """Two single pods under one budget."""
    rig = Rig()
    rig.node("n1", "n2", cpu=2000)
    for number in (1, 2):
        node = NodeName(f"n{number}")
        rig.pod(f"v{number}", node=node, phase="Running", labels={"app": "v"})
    set_budget(rig, allowed=allowed)
    for name in "ab":
        rig.pod(name, scheduler=STOCK)
    return rig


def set_budget(rig: Rig, *, allowed: int, disrupted: frozenset[str] = frozenset()) -> None:
    budget = DisruptionBudget("default", "v", LabelSelector(), allowed, disrupted)
    rig.see("poddisruptionbudgets", budget)


async def test_a_budget_that_allows_one_is_not_overdrawn_by_two() -> None:
    rig = budgeted(allowed=1)
    assert rig.preempt("a", n1=["v1"]) is None
    assert rig.preempt("b", n2=["v2"]) is Strike.DISRUPTION_BUDGET
    assert rig.preempt("b", n1=["v1"]) is None, "that one goes in any case"


async def test_a_budget_that_allows_two_gives_both() -> None:
    rig = budgeted(allowed=2)
    assert rig.preempt("a", n1=["v1"]) is None
    assert rig.preempt("b", n2=["v2"]) is None


async def test_a_victim_counts_until_the_budget_shows_that_it_goes() -> None:
    rig = budgeted(allowed=2)
    assert rig.preempt("a", n1=["v1"]) is None
    rig.delete("v1")
    rig.pod("v3", node=NodeName("n1"), phase="Running", labels={"app": "v"})
    assert rig.preempt("b", n2=["v2", "v3"]) is Strike.DISRUPTION_BUDGET
    set_budget(rig, allowed=2)
    assert rig.preempt("b", n2=["v2", "v3"]) is None


async def test_what_a_budget_has_in_its_books_is_not_taken_twice() -> None:
    rig = budgeted(allowed=1)
    assert rig.preempt("a", n1=["v1"]) is None
    set_budget(rig, allowed=1, disrupted=frozenset({"v1"}))
    assert rig.preempt("b", n2=["v2"]) is None


async def test_a_budget_that_came_later_counts_the_victims_that_still_show() -> None:
    rig = budgeted(allowed=1)
    rig.unsee("poddisruptionbudgets", DisruptionBudget("default", "v", LabelSelector(), 1))
    assert rig.preempt("a", n1=["v1"]) is None
    set_budget(rig, allowed=1)
    assert rig.preempt("b", n2=["v2"]) is Strike.DISRUPTION_BUDGET
    rig.delete("v1")
    assert rig.preempt("b", n2=["v2"]) is None, "it knows that the other is gone"


async def test_a_budget_that_is_gone_stops_nobody() -> None:
    rig = budgeted(allowed=1)
    assert rig.preempt("a", n1=["v1"]) is None
    rig.unsee("poddisruptionbudgets", DisruptionBudget("default", "v", LabelSelector(), 1))
    assert rig.preempt("b", n2=["v2"]) is None


def test_only_a_budget_that_changed_is_compared_with_what_was_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cache = ClusterCache(schedulers=frozenset({"volcano"}))
    for number in range(20):
        cache.budgets[f"default/{number}"] = budget = DisruptionBudget(
            "default", str(number), LabelSelector(), 1
        )
    allowed_victims = AllowedVictims(cache, clock=lambda: 0.0)
    allowed_victims.add(PodUid("a"), NodeName("n1"), [make_pod(f"v{i}") for i in range(30)])
    allowed_victims.losses(besides=PodUid("b"))
    compared = count_comparisons(monkeypatch)
    allowed_victims.losses(besides=PodUid("b"))
    assert len(compared) == 0
    cache.budgets["default/19"] = replace(budget)
    allowed_victims.losses(besides=PodUid("b"))
    assert len(compared) == 30


def count_comparisons(monkeypatch: pytest.MonkeyPatch) -> list[Pod]:
    """The pods that a budget is asked about from now on."""
    compared: list[Pod] = []
    covers = DisruptionBudget.covers

    def counted(budget: DisruptionBudget, pod: Pod) -> bool:
        compared.append(pod)
        return covers(budget, pod)

    monkeypatch.setattr(DisruptionBudget, "covers", counted)
    return compared


def test_budgets_are_of_their_namespace() -> None:
    budget = DisruptionBudget("elsewhere", "v", LabelSelector(), 0)
    assert not budget.covers(make_pod("v"))
    assert budget.covers(make_pod("v", namespace="elsewhere"))
    assert not DisruptionBudget("default", "v", None, 0).covers(make_pod("v"))


# One node


async def test_the_answer_is_the_node_that_kube_scheduler_would_take() -> None:
    rig = Rig()
    rig.node("n1", "n2", cpu=40_000)

    def chosen(**nodes: list[Pod]) -> str:
        for node, pods in nodes.items():
            rig.store(*(replace(pod, node=NodeName(node), phase="Running") for pod in pods))
        candidates = {
            NodeName(node): Candidate(tuple(pod.uid for pod in pods))
            for node, pods in nodes.items()
        }
        pod = make_pod("p", scheduler=STOCK)
        [(node, candidate)] = rig.parts.preemption.guard(pod, candidates).nodes.items()
        assert candidate is candidates[node]
        return node

    low, high = make_pod("low", priority=1), make_pod("high", priority=2)
    assert chosen(n1=[high], n2=[low]) == "n2", "the lowest of the highest priorities"
    many = [make_pod(f"l{i}", priority=1) for i in range(3)]
    assert chosen(n1=[*many[:2], high], n2=[make_pod("h2", priority=2), low]) == "n2"
    old, new = make_pod("old", created=1.0), make_pod("new", created=2.0)
    assert chosen(n1=[old], n2=[new]) == "n2", "who has run for the shortest time"
    assert chosen(n2=[make_pod("b")], n1=[make_pod("a")]) == "n1"


async def test_only_what_was_answered_is_lost() -> None:
    rig = gang_of_four(minimum=3)
    asked = {
        NodeName("n1"): Candidate((PodUid("uid-g-0"),)),
        NodeName("n2"): Candidate((PodUid("uid-g-2"),)),
    }
    verdict = rig.parts.preemption.guard(rig.api.pods["default/a"], asked)
    assert list(verdict.nodes) == ["n1"]
    assert rig.preempt("b", n1=["g-0"]) is None


# Bounds


def test_no_more_are_kept_than_the_limit() -> None:
    cache = ClusterCache(schedulers=frozenset({"volcano"}))
    allowed_victims = AllowedVictims(cache, clock=lambda: 0.0, limit=2)
    victims = [make_pod(f"v{i}", node=NodeName("n1"), phase="Running") for i in range(3)]
    for pod in victims:
        cache.set_pod(pod, now=0.0)
    allowed_victims.add(PodUid("a"), NodeName("n1"), victims)
    lost = allowed_victims.losses(besides=PodUid("b")).members
    assert {uid for uids in lost.values() for uid in uids} == {"uid-v1", "uid-v2"}


@given(
    sizes=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5)), min_size=1, max_size=2),
    asked=st.lists(st.sets(st.integers(0, 9), min_size=1, max_size=5), min_size=1, max_size=5),
    shown=st.sets(st.integers(0, 9)),
)
async def test_no_row_of_preemptors_ever_breaks_a_gang(
    sizes: list[tuple[int, int]], asked: list[set[int]], shown: set[int]
) -> None:
    """Of what was allowed, some deletions show and some do not: all together leave gangs whole."""

    rig = Rig()
    rig.node("n1", cpu=100_000)
    pods: list[str] = []
    for number, (size, minimum) in enumerate(sizes):
        rig.group(f"g{number}", minimum=min(minimum, size))
        for i in range(size):
            pods.append(f"g{number}-{i}")
            rig.pod(pods[-1], group=f"g{number}", node=NodeName("n1"), phase="Running")
    lost: set[str] = set()
    for number, picks in enumerate(asked):
        victims = [pods[i] for i in picks if i < len(pods)]
        there = [name for name in victims if f"default/{name}" in rig.api.pods]
        rig.pod(f"p{number}", scheduler=STOCK)
        if there and rig.preempt(f"p{number}", n1=there) is None:
            lost.update(there)
            rig.delete(*(name for name in there if pods.index(name) in shown))
    for number, (size, minimum) in enumerate(sizes):
        left = size - sum(name.startswith(f"g{number}-") for name in lost)
        assert left in (0, size) or left >= min(minimum, size)
