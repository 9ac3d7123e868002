"""The stock preemption goes on working, and no gang is broken by it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.resources import DISRUPTION_BUDGETS


@pytest.fixture
def urgent(place: Place) -> str:
    """A priority class above the default."""
    return place.add_priority_class("urgent", 1000)


def submit_urgent(place: Place, urgent: str, *, cpu: str = "1") -> None:
    """A pod that goes to the scheduler as it is: gated pods never preempt."""
    pod = workloads.pod("urgent", cpu=cpu, priorityClassName=urgent)
    pod["metadata"]["annotations"] |= workloads.UNGATED
    place.submit_one(pod)


def submit_urgent_behind_queue_gate(place: Place, urgent: str, *, cpu: str) -> None:
    """One that comes there when its queue has room for it, be there a node or not."""
    pod = workloads.pod("urgent", cpu=cpu, priorityClassName=urgent)
    place.submit_one(workloads.behind_queue_gate(pod))


def names_left(place: Place, group: str) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in place.bound(group))


def test_a_single_pod_is_evicted_for_a_more_urgent_one(place: Place, urgent: str) -> None:
    place.add_nodes(1, cpu="1")
    place.submit_one(workloads.pod("plain"))
    place.wait_pod_bound("plain")
    submit_urgent(place, urgent)
    place.wait_pod_bound("urgent")
    assert not workloads.bound([p for p in place.pods() if p["metadata"]["name"] == "plain"])


@pytest.mark.parametrize("submit", [submit_urgent, submit_urgent_behind_queue_gate])
def test_no_more_pods_are_evicted_than_have_to_be(
    place: Place, urgent: str, submit: Callable[..., None]
) -> None:
    """kube-scheduler comes again as soon as the victim is gone, which the extender may not know."""
    place.add_nodes(3, cpu="4")
    place.add_gang("low", 6, minimum=1, cpu="2")
    place.wait_bound("low", 6)
    for spare in ("low-6", "low-7", "low-8"):
        submit(place, urgent, cpu="2")
        place.wait_pod_bound("urgent", timeout_s=5)
        assert len(place.bound("low")) == 5
        place.delete_pod("urgent")
        place.submit_one(workloads.pod(spare, cpu="2", group="low"))
        place.wait_bound("low", 6)


def test_no_pod_is_evicted_for_others_that_wait_and_are_as_urgent(
    place: Place, urgent: str
) -> None:
    place.add_nodes(3, cpu="2")
    place.add_gang("low", 3, minimum=1, cpu="2")
    place.wait_bound("low", 3)
    for number in range(3):
        place.submit_one(workloads.pod(f"older-{number}", cpu="2", priorityClassName=urgent))
    place.wait_pod_condition("older-2", "PodScheduled", "False")
    submit_urgent(place, urgent, cpu="2")
    place.wait_pod_bound("urgent")
    assert len(names_left(place, "low")) == 2


def test_a_gang_is_not_broken_for_a_more_urgent_pod(place: Place, urgent: str) -> None:
    place.add_nodes(1, cpu="3")
    place.add_gang("gang", 3)
    place.wait_bound("gang", 3)
    submit_urgent(place, urgent)
    place.wait_pod_condition("urgent", "PodScheduled", "False", says="Insufficient cpu")
    assert names_left(place, "gang") == ["gang-0", "gang-1", "gang-2"]

    place.delete_gang("gang")
    place.wait_pod_bound("urgent")


def test_members_beyond_the_minimum_may_be_preempted(place: Place, urgent: str) -> None:
    place.add_nodes(1, cpu="3")
    place.add_gang("elastic", 3, minimum=2)
    place.wait_bound("elastic", 3)
    submit_urgent(place, urgent)
    place.wait_pod_bound("urgent")
    assert len(names_left(place, "elastic")) == 2


def test_a_queue_that_is_not_reclaimable_keeps_its_pods(place: Place, urgent: str) -> None:
    place.add_nodes(1, cpu="2")
    kept = place.add_queue("kept", reclaimable=False)
    place.add_gang("single", 2, minimum=1, spec={"queue": kept})
    place.wait_bound("single", 2)
    submit_urgent(place, urgent)
    place.wait_pod_condition("urgent", "PodScheduled", "False", says="Insufficient cpu")
    assert len(names_left(place, "single")) == 2


def test_a_pod_that_a_disruption_budget_keeps_stays(place: Place, urgent: str) -> None:
    place.add_nodes(1, cpu="1")
    kept = workloads.pod("kept")
    kept["metadata"]["labels"] = {"app": "kept"}
    place.submit_one(kept)
    place.wait_pod_bound("kept")
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kept"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}},
    }
    place.api.create(budget, resource=DISRUPTION_BUDGETS, namespace=place.name)
    place.api.until_one(
        DISRUPTION_BUDGETS,
        "kept",
        lambda found: bool(found.get("status", {}).get("expectedPods")),
        namespace=place.name,
    )
    submit_urgent(place, urgent)
    place.wait_pod_condition("urgent", "PodScheduled", "False", says="Insufficient cpu")
    assert workloads.node_of(place.pod("kept"))
    assert "deletionTimestamp" not in place.pod("kept")["metadata"]
