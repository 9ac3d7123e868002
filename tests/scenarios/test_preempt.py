"""preempt: a job takes the room of jobs of lower priority in its queue (volcano.md §9.2).

The numbers are those of the specs of ``schedulingaction/preempt.go``. Where Volcano would answer
otherwise, the scenario says so.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest

from app.cli.certificates import check
from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.place import Place
from tests.clusters.resources import DISRUPTION_BUDGETS, PODS
from tests.scenarios.confs import evicting

FOREIGN_GATE = {"schedulingGates": [{"name": "example.com/not-yet"}]}


@pytest.fixture(scope="module")
def scheduler_conf() -> str:
    """Without reclaim, which would move room between queues."""
    return evicting("enqueue, allocate, preempt, backfill")


class Ranks(NamedTuple):
    """Names of three priority classes."""

    low: str
    middle: str
    high: str


@pytest.fixture
def ranks(place: Place) -> Ranks:
    values = {"low": 10, "middle": 50, "high": 100}
    return Ranks(*(place.add_priority_class(name, value) for name, value in values.items()))


def names(pods: list[Object]) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in pods)


def test_a_higher_job_takes_free_room_first(place: Place, ranks: Ranks) -> None:
    """Spec 1: schedule high priority job without preemption when resource is enough."""
    place.add_nodes(1, cpu="2")
    place.add_gang("low", 1, rank=ranks.low)
    place.wait_bound("low", 1)
    place.add_gang("high", 1, rank=ranks.high)
    place.wait_bound("high", 1)
    assert len(place.bound("low")) == 1


def test_a_higher_job_takes_its_minimum_from_a_lower_one(place: Place, ranks: Ranks) -> None:
    """Spec 2: ... when idle resource is NOT enough but preemptee resource is enough.

    Both jobs have four members; what the higher one has beyond its minimum evicts no pod.
    """
    place.add_nodes(2, cpu="2")
    place.add_gang("low", 4, minimum=1, rank=ranks.low)
    place.wait_bound("low", 4)
    place.add_gang("high", 4, minimum=2, rank=ranks.high)
    place.wait_bound("high", 2)
    place.wait_event("low-3", "Evict", says="priority allows it")
    place.wait_event("low", "Evict", says="2 Pods are evicted, because of preempt")
    place.wait_event("high", "Evicts", says="evicts 2 pods of 1 group for 2 places")
    place.wait_phase("high", "Running")
    assert len(place.bound("low")) == len(place.bound("high")) == 2


def test_a_group_that_no_eviction_admits_evicts_no_pod(place: Place, ranks: Ranks) -> None:
    """Spec 3: preemption doesn't work when podgroup is pending due to insufficient resource."""
    place.add_nodes(2, cpu="2")
    place.add_gang("low", 4, minimum=1, rank=ranks.low)
    place.wait_bound("low", 4)
    place.add_gang("high", 1, rank=ranks.high, spec={"minResources": {"cpu": "30"}})
    place.wait_summary("high", "never: more than the whole cluster has")
    place.wait_phase("high", "Pending")
    assert len(place.bound("low")) == 4


def test_a_group_that_evictions_do_not_free_all_for_stays_pending(
    place: Place, ranks: Ranks
) -> None:
    """Spec 3 where the cluster could hold it: its one pod would find room, its resources not."""
    place.add_nodes(2, cpu="2")
    place.add_gang("low", 2, minimum=1, rank=ranks.low)
    place.add_gang("equal", 2, rank=ranks.high)
    place.wait_bound("low", 2)
    place.wait_bound("equal", 2)
    place.add_gang("high", 1, rank=ranks.high, spec={"minResources": {"cpu": "3"}})
    place.wait_summary("high", "preempt: 4 candidates: 2 same priority")
    place.wait_phase("high", "Pending")
    assert len(place.bound("low")) == len(place.bound("equal")) == 2


def test_a_group_that_evictions_admit_is_admitted_with_them(place: Place, ranks: Ranks) -> None:
    """The other half of spec 3, where Volcano evicts nothing: only admitted jobs preempt there.

    A job whose pods do not exist before its admission could then never preempt on a full cluster.
    """
    place.add_nodes(2, cpu="2")
    four, two = {"cpu": "4"}, {"cpu": "2"}
    place.add_gang("low", 4, minimum=1, rank=ranks.low, spec={"minResources": four})
    place.wait_bound("low", 4)
    place.add_gang("high", 2, rank=ranks.high, spec={"minResources": two})
    place.wait_bound("high", 2)
    assert len(place.bound("low")) == 2


def test_a_job_preempts_in_its_queue_only(place: Place, ranks: Ranks) -> None:
    """Spec 4: preemption only works in the same queue.

    The lower job of the queue goes whole, though its minimum is one: both its pods are needed.
    """
    place.add_nodes(2, cpu="2")
    ours, other = place.add_queue("ours"), place.add_queue("other")
    place.add_gang("low", 2, minimum=1, rank=ranks.low, spec={"queue": ours})
    place.add_gang("other", 2, minimum=1, rank=ranks.low, spec={"queue": other})
    place.wait_bound("low", 2)
    place.wait_bound("other", 2)
    place.add_gang("high", 4, minimum=2, rank=ranks.high, spec={"queue": ours})
    place.wait_bound("high", 2)
    assert not place.bound("low")
    assert len(place.bound("other")) == 2


def test_a_job_that_eviction_does_not_make_room_for_evicts_no_pod(
    place: Place, ranks: Ranks
) -> None:
    """Spec 5: ... when total resource of idle resource and preemptee is NOT enough."""
    place.add_nodes(2, cpu="2")
    ours, other = place.add_queue("ours"), place.add_queue("other")
    place.add_gang("low", 1, rank=ranks.low, spec={"queue": ours})
    place.add_gang("other", 2, rank=ranks.low, spec={"queue": other})
    place.wait_bound("low", 1)
    place.wait_bound("other", 2)
    place.add_gang("high", 4, rank=ranks.high, spec={"queue": ours})
    place.wait_summary("high", "preempt: 1 candidate")
    assert not place.bound("high")
    assert len(place.bound("low")) == 1
    assert len(place.bound("other")) == 2


def test_a_disruption_budget_keeps_its_pods_though_no_plugin_asks_for_it(
    place: Place, ranks: Ranks
) -> None:
    """The API server would answer evictions with 429: none is asked for, and the job says so."""
    place.add_nodes(2, cpu="2")
    place.add_gang("low", 4, minimum=1, rank=ranks.low)
    place.wait_bound("low", 4)
    selector = {"matchLabels": {"group": "low"}}
    budget = workloads.item(
        DISRUPTION_BUDGETS, "low", spec={"minAvailable": 4, "selector": selector}
    )
    place.api.create(budget, resource=DISRUPTION_BUDGETS, namespace=place.name)

    def is_counted(found: Object) -> bool:
        return bool(found.get("status", {}).get("expectedPods"))

    place.api.until_one(DISRUPTION_BUDGETS, "low", is_counted, namespace=place.name)
    place.add_gang("high", 2, rank=ranks.high)
    place.wait_summary("high", "preempt: 4 candidates: 4 protected by a PodDisruptionBudget")
    assert len(place.bound("low")) == 4

    place.api.delete(DISRUPTION_BUDGETS, "low", namespace=place.name)
    place.wait_bound("high", 2)
    assert len(place.bound("low")) == 2


def test_the_highest_of_three_jobs_has_all_in_the_end(place: Place, ranks: Ranks) -> None:
    """Spec 6: multi-preemptor-jobs who are in different priority."""
    place.add_nodes(2, cpu="2")
    place.add_gang("low", 4, minimum=1, rank=ranks.low)
    place.wait_bound("low", 4)
    place.add_gang("middle", 2, rank=ranks.middle)
    place.wait_bound("middle", 2)
    assert len(place.bound("low")) == 2
    place.add_gang("high", 4, rank=ranks.high)
    place.wait_bound("high", 4)
    assert not place.bound("low")
    assert not place.bound("middle")


def test_a_job_behind_gates_of_others_preempts_once_they_are_gone(
    place: Place, ranks: Ranks
) -> None:
    """Spec 7: Jobs unschedulable due to scheduling gates will not preempt other jobs ..."""
    place.add_nodes(2, cpu="2")
    place.add_gang("low", 4, minimum=1, rank=ranks.low)
    place.wait_bound("low", 4)
    place.add_group("high", 2, priorityClassName=ranks.high)
    fields: dict[str, Any] = {"priorityClassName": ranks.high, **FOREIGN_GATE}
    place.submit(workloads.members("high", 4, **fields))
    place.wait_summary("high", "gate")
    place.wait_known("high", pods=4)
    assert len(place.bound("low")) == 4

    for pod in place.pods("high"):
        about = pod["metadata"]["name"], pod["spec"]["schedulingGates"]
        left = [gate for gate in about[1] if gate not in FOREIGN_GATE["schedulingGates"]]
        change = {"spec": {"schedulingGates": left}}
        place.api.patch(PODS, about[0], change, namespace=place.name)
    place.wait_bound("high", 2)
    assert len(place.bound("low")) == 2


def test_room_is_kept_until_victims_have_gone_and_the_decision_is_certified(
    place: Place, ranks: Ranks
) -> None:
    """Victims may take their time: the room that one has left goes to no other pod meanwhile."""
    place.add_nodes(1, cpu="2")
    place.add_gang("low", 2, rank=ranks.low, **workloads.lingering())
    place.wait_bound("low", 2)
    place.add_gang("high", 2, rank=ranks.high)
    place.wait_condition("high", "Reserved", "False", reason="Pipelined", says="2 pods to go")
    [plan] = place.cluster.extender.get("/debug/evictions")["begun"]
    assert plan["group"] == f"{place.name}/high"
    assert check(plan["certificate"]) == []

    place.wait_leaving("low-0")
    place.delete_pod("low-0")
    place.add_gang("other", 1, rank=ranks.middle)
    place.wait_condition("other", "Reserved", "False", says="free 0 of 2")
    assert not place.bound("high")
    place.wait_leaving("low-1")
    place.delete_pod("low-1")
    place.wait_bound("high", 2)
    assert not place.bound("other")


def test_a_lower_job_stands_back_for_one_that_evicts_for_the_rest_of_its_room(
    place: Place, ranks: Ranks
) -> None:
    """The core that comes free is half of what the higher job needs; Volcano gives it away."""
    place.add_nodes(1, cpu="3")
    place.add_gang("low", 1, rank=ranks.low, **workloads.lingering())
    place.add_gang("done", 1, rank=ranks.high)
    place.add_gang("stays", 1, rank=ranks.high)
    for name in ("low", "done", "stays"):
        place.wait_bound(name, 1)
    place.add_gang("high", 2, rank=ranks.high)
    place.wait_summary("high", "preempt: 3 candidates: 2 same priority")
    place.add_gang("next", 1, rank=ranks.low)
    place.wait_condition("next", "Reserved", "False", says="free 0 of 3")

    place.delete_gang("done")
    says = f"it stands back for {place.name}/high, which evicts 1 pod for the rest of its room"
    place.wait_condition("next", "Reserved", "False", reason="StandsBack", says=says)
    place.wait_leaving("low-0")
    place.delete_pod("low-0")
    place.wait_bound("high", 2)
    assert not place.bound("next")


def test_a_member_goes_for_a_higher_one_that_its_own_job_needs(place: Place, ranks: Ranks) -> None:
    """Inside a job: no spec does that, and it is the second half of Volcano's action.

    The ps was lost, and a pod of another scheduler has its room. The job needs it and two workers.
    """
    (node,) = place.add_nodes(1, cpu="4")
    place.add_group("job", 3, priorityClassName=ranks.low, minTaskMember={"ps": 1, "worker": 2})
    ps = workloads.pod("ps", group="job", role="ps", priorityClassName=ranks.high)
    fields = {"role": "worker", "priorityClassName": ranks.low}
    place.submit([ps, *workloads.members("job", 3, **fields)])
    place.wait_bound("job", 4)
    place.delete_pod("ps")
    place.submit_one(workloads.pod("foreign", scheduler="other", nodeName=node))
    place.submit_one(ps)
    place.wait_pod_bound("ps")
    assert Counter(map(workloads.role_of, place.bound("job"))) == {"ps": 1, "worker": 2}


def test_a_lower_pod_goes_that_a_higher_one_may_not_be_beside(place: Place, ranks: Ranks) -> None:
    """Spec 8: should preempt low priority pod with anti-affinity constraint.

    The node has room for both.
    """
    place.add_nodes(1, cpu="3")
    place.add_gang("low", 1, rank=ranks.low)
    place.add_gang("beside", 1, rank=ranks.low)
    place.wait_bound("low", 1)
    place.wait_bound("beside", 1)
    apart = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"group": "low"}},
    }
    place.add_group("high", 1, priorityClassName=ranks.high)
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    pods = workloads.members("high", 1, priorityClassName=ranks.high, affinity=rule)
    place.submit(pods)
    place.wait_bound("high", 1)
    assert not place.bound("low")
    assert names(place.bound("beside")) == ["beside-0"]
