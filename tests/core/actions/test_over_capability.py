"""Queues that hold more than their capability, and give the rest up where their annotation says."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.certificates import check
from app.core.policy import Policies
from app.model.conf import PluginConf
from app.model.disruption import DisruptionBudget
from app.model.eviction import EvictionAction
from app.model.ids import QueueName
from app.model.pod import COOLDOWN_TIME
from app.model.running import Protection
from app.model.shape import LabelSelector
from app.model.workload import EVICT_OVER_CAPABILITY, Queue
from tests.builders import make_queue
from tests.core.actions.rigs import Outcome, cores, gang_of, policies
from tests.core.contended import RunningGang, contended, running_gang, victims
from tests.scale import examples

BY = policies((("priority", "gang", "conformance"), ("predicates", "capacity")))
TREE = policies(
    (("gang",), ("predicates", PluginConf("capacity", switches={"enableHierarchy": True})))
)
NODES = cores(8, 8)


def cut(cpu: int, name: str = "q", *, says: str = "true", **fields: Any) -> Queue:
    """A queue whose capability is so many cores."""
    said = {EVICT_OVER_CAPABILITY: says} if says else {}
    return make_queue(name, capability=(("cpu", cpu * 1000),), annotations=said, **fields)


def after(
    *running: RunningGang, queue: Queue | None = None, by: Policies = BY, **more: Any
) -> Outcome:
    queues = more.pop("queues", (queue or cut(2),))
    return contended(running=running, nodes=NODES, queues=queues, by=by, **more)


def of_queue(name: str, rows: list[int], *, queue: str = "q", **fields: Any) -> RunningGang:
    return running_gang(name, rows, queue=queue, **fields)


def test_a_queue_gives_up_what_it_holds_beyond_its_capability() -> None:
    outcome = after(*(of_queue(f"g{i}", [i % 2]) for i in range(5)))
    [plan] = outcome.plan.evictions
    assert plan.action is EvictionAction.OVER_CAPABILITY
    assert (plan.preemptor, plan.places, plan.admits) == ("", (), False)
    assert len(victims(outcome)) == 3
    assert {victim.rule for victim in plan.victims} == {EVICT_OVER_CAPABILITY}


@pytest.mark.parametrize("says", ["", "false", "yes"])
def test_without_the_annotation_no_pod_goes(says: str) -> None:
    queue = cut(2, says=says)
    assert not after(of_queue("g", [0, 0, 1], minimum=1), queue=queue).plan.evictions


def test_a_queue_within_its_capability_keeps_its_pods() -> None:
    assert not after(of_queue("g", [0, 1], minimum=1)).plan.evictions


def test_what_the_capability_does_not_name_has_no_limit() -> None:
    queue = make_queue("q", capability=(("memory", 1),), annotations={EVICT_OVER_CAPABILITY: "1"})
    assert not after(of_queue("g", [0, 1, 1], minimum=1), queue=queue).plan.evictions


def test_members_beyond_a_minimum_go_before_whole_gangs() -> None:
    whole = of_queue("whole", [0, 1], priority=-5)
    grown = of_queue("grown", [0, 0, 1], minimum=1, priority=5)
    outcome = after(whole, grown, queue=cut(3))
    assert {name.partition("-")[0] for name in victims(outcome)} == {"grown"}
    assert len(victims(outcome)) == 2


def test_a_gang_goes_whole_where_its_members_are_all_needed() -> None:
    outcome = after(of_queue("low", [0, 1, 1]), of_queue("high", [0, 1], priority=9), queue=cut(4))
    assert victims(outcome) == {"low-0", "low-1", "low-2"}


def test_of_equal_pods_those_go_that_lose_the_least_work() -> None:
    old = of_queue("old", [0], pod={"started": 1.0})
    new = of_queue("new", [1], pod={"started": 9.0})
    outcome = after(old, new, queue=cut(1), now=10.0)
    assert victims(outcome) == {"new-0"}


def test_no_pod_too_many_goes() -> None:
    outcome = after(*(of_queue(f"g{i}", [i % 2]) for i in range(16)), queue=cut(1))
    assert len(victims(outcome)) == 15
    big = of_queue("big", [0], cpu=4, priority=-1)
    small = [of_queue(f"s{i}", [1]) for i in range(4)]
    assert victims(after(big, *small, queue=cut(4))) == {"big-0"}


@pytest.mark.parametrize(
    "protection",
    [p for p in Protection if p not in (Protection.NONE, Protection.FOREIGN, Protection.ENDING)],
)
def test_protected_pods_stay_and_the_others_go_as_far_as_they_reach(
    protection: Protection,
) -> None:
    kept = [of_queue(f"kept{i}", [0], protected=protection) for i in range(3)]
    outcome = after(*kept, of_queue("open", [1]), queue=cut(2))
    assert victims(outcome) == {"open-0"}
    assert not after(*kept, queue=cut(2)).plan.evictions


def test_a_pod_disruption_budget_is_kept() -> None:
    budget = DisruptionBudget("default", "pdb", LabelSelector(), allowed=1)
    outcome = after(*(of_queue(f"g{i}", [0]) for i in range(4)), queue=cut(1), budgets=(budget,))
    assert len(victims(outcome)) == 1


def test_the_minimum_run_time_of_the_queue_is_kept() -> None:
    queue = replace(
        cut(1),
        annotations={EVICT_OVER_CAPABILITY: "true", "pumice.sh/minimum-run-time": "60s"},
    )
    old = of_queue("old", [0], pod={"started": 1.0}, priority=5)
    new = of_queue("new", [0], pod={"started": 90.0})
    assert victims(after(old, new, queue=queue, now=100.0)) == {"old-0"}


def test_the_cooldown_time_of_a_pod_is_kept() -> None:
    by = policies((("gang", "cdp"), ("predicates", "capacity")))
    new = {"started": 9.0, "annotations": {COOLDOWN_TIME: "1h"}}
    outcome = after(
        of_queue("new", [0], pod=new), of_queue("old", [0], priority=9), queue=cut(1), by=by
    )
    assert victims(outcome) == {"old-0"}


def test_without_a_plugin_that_heeds_capabilities_no_pod_goes() -> None:
    by = policies((("gang",), ("predicates",)))
    assert not after(of_queue("g", [0, 1, 1], minimum=1), by=by).plan.evictions


def test_proportion_heeds_them_too() -> None:
    by = policies((("gang",), ("predicates", "proportion")))
    assert len(victims(after(of_queue("g", [0, 1, 1], minimum=1), by=by))) == 1


class TestTree:
    """``top`` with ``left`` and ``right`` below."""

    RUNNING = (
        of_queue("l", [0, 0, 1], queue="left", minimum=1),
        of_queue("r", [0, 1, 1], queue="right", minimum=1, priority=1),
    )

    def queues(self, top: Queue, left: Queue | None = None) -> tuple[Queue, ...]:
        below = {"parent": QueueName("top")}
        return top, left or make_queue("left", **below), make_queue("right", **below)

    def test_the_pods_of_queues_below_count(self) -> None:
        outcome = after(*self.RUNNING, queues=self.queues(cut(5, "top")), by=TREE)
        assert len(victims(outcome)) == 1
        assert victims(outcome) <= {"l-0", "l-1", "l-2"}

    def test_what_a_queue_below_gives_up_counts_for_those_above(self) -> None:
        left = cut(1, "left", parent=QueueName("top"))
        outcome = after(*self.RUNNING, queues=self.queues(cut(4, "top"), left), by=TREE)
        [plan] = outcome.plan.evictions
        assert {victim.queue for victim in plan.victims} == {"left"}
        assert len(plan.victims) == 2

    def test_a_queue_above_without_the_annotation_takes_nothing(self) -> None:
        top = cut(2, "top", says="")
        assert not after(*self.RUNNING, queues=self.queues(top), by=TREE).plan.evictions


def test_the_room_is_for_the_gangs_that_wait() -> None:
    """Other queues count on it in the same cycle, and evict no pod of their own for it."""
    waits = gang_of("waits", 1, queue=QueueName("other"))
    full = [of_queue(f"g{i}", [i % 2], cpu=4) for i in range(4)]
    queues = (cut(12), make_queue("other"))
    outcome = contended(waits, running=full, nodes=NODES, queues=queues, by=BY)
    assert [plan.action for plan in outcome.plan.evictions] == [EvictionAction.OVER_CAPABILITY]


class Drawn(NamedTuple):
    """A gang of ``pods`` pods that started at these times."""

    pods: tuple[int, ...]
    minimum: int
    cpu: int
    priority: int


@st.composite
def drawn(draw: st.DrawFn) -> list[Drawn]:
    """Gangs of no more than 8 units."""
    gangs: list[Drawn] = []
    units = 0
    for _ in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 3))
        units += size + 1
        if units > 8:
            break
        pods = tuple(draw(st.lists(st.integers(1, 9), min_size=size, max_size=size)))
        minimum, cpu = draw(st.integers(1, size)), draw(st.integers(1, 3))
        gangs.append(Drawn(pods, minimum, cpu, draw(st.integers(0, 2))))
    return gangs


Cost = tuple[int, int, int, int]


def ways(gang: Drawn) -> Iterator[tuple[Cost, int]]:
    """Cost and freed cores of each way in which the gang may lose pods."""
    work = [round(gang.cpu / 32 * (10 - started) * 1e6) for started in gang.pods]
    alone = len(gang.pods) == 1
    for count in range(1 + (len(work) if alone else len(work) - gang.minimum)):
        for lost in combinations(work, count):
            yield (0, gang.priority if count else -(1 << 31), sum(lost), count), gang.cpu * count
    if not alone:
        yield (1, gang.priority, sum(work), len(work)), gang.cpu * len(work)


def cheapest(gangs: list[Drawn], over: int) -> Cost | None:
    """The cost of the cheapest victims that free so many cores."""
    found: list[Cost] = []
    for chosen in product(*map(list, map(ways, gangs))):
        if sum(cores for _, cores in chosen) >= over:
            costs = [cost for cost, _ in chosen]
            ended, lost, pods = (sum(cost[at] for cost in costs) for at in (0, 2, 3))
            found.append((ended, max(cost[1] for cost in costs), lost, pods))
    return min(found, default=None)


@given(drawn(), st.integers(0, 12))
@examples(500)
def test_the_victims_are_the_cheapest_of_all_that_free_enough(
    gangs: list[Drawn], capability: int
) -> None:
    held = sum(len(gang.pods) * gang.cpu for gang in gangs)
    running = [of_started(f"g{number}", gang) for number, gang in enumerate(gangs)]
    outcome = contended(
        running=running, nodes=cores(16, 16), queues=(cut(capability),), by=BY, now=10.0
    )
    expected = cheapest(gangs, held - capability) if held > capability else None
    if expected is None:
        assert not outcome.plan.evictions
    else:
        [plan] = outcome.plan.evictions
        cost = plan.certificate["cost"]
        assert isinstance(cost, dict)
        assert tuple(cost.values()) == expected


def of_started(name: str, gang: Drawn) -> RunningGang:
    """The gang as it runs on the first node, each pod since its time."""
    made = of_queue(
        name, [0] * len(gang.pods), cpu=gang.cpu, minimum=gang.minimum, priority=gang.priority
    )
    runs = [
        replace(one, pod=replace(one.pod, started=float(started)))
        for one, started in zip(made.runs, gang.pods, strict=True)
    ]
    return RunningGang(made.gang, tuple(runs))


class TestChecker:
    """What ``pumice check-eviction`` says of other certificates than that of the decision."""

    @staticmethod
    def certificate() -> dict[str, Any]:
        [plan] = after(*(of_queue(f"g{i}", [i % 2]) for i in range(4))).plan.evictions
        found: dict[str, Any] = json.loads(json.dumps(plan.certificate))
        return found

    def test_a_victim_too_many_is_rejected(self) -> None:
        certificate = self.certificate()
        certificate["queues"]["q"]["limit"]["cpu"] += 1000
        assert any("is not proven to be needed" in text for _, text in check(certificate))

    def test_a_victim_too_few_is_rejected(self) -> None:
        certificate = self.certificate()
        certificate["queues"]["q"]["limit"]["cpu"] -= 1000
        assert any("more than its limit" in text for _, text in check(certificate))

    def test_a_victim_of_another_queue_is_rejected(self) -> None:
        certificate = self.certificate()
        certificate["queues"]["other"] = certificate["queues"]["q"]
        uid = certificate["victims"][0]
        certificate["pods"][uid]["queue"] = "other"
        assert any("is in queue other, not in q" in text for _, text in check(certificate))

    def test_no_other_action_may_do_without_a_preemptor(self) -> None:
        certificate = self.certificate() | {"action": "preempt"}
        assert any("priority" in text for _, text in check(certificate))
