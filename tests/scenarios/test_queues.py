"""Queues: what they may hold, who may use them, what they tell."""

from __future__ import annotations

from collections.abc import Iterable

from tests.clusters import workloads
from tests.clusters.client import ApiError, Object
from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.resources import NODES, POD_GROUPS, PODS, QUEUES, Resource

BINDINGS = Resource(
    "admissionregistration.k8s.io/v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)
KEEPER = "validate-queues.pumice.sh"
"""The policy by which the queues default and root stay."""


def test_a_queue_holds_no_more_than_its_capability(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    small = place.add_queue("small", capability={"cpu": "2"})
    place.add_gang("first", 2, spec={"queue": small})
    place.wait_bound("first", 2)
    place.add_gang("second", 1, spec={"queue": small})

    says = f"queue {small}: cpu asked 1, free 0 of 2; held by {place.name}/first (cpu 2)"
    place.wait_condition("second", "Reserved", "False", reason="QueueQuota", says=says)
    assert not place.bound("second")

    place.delete_gang("first")
    place.wait_bound("second", 1)


def leave(place: Place, group: str) -> None:
    """Delete the group and, politely, its pods."""
    place.api.delete(POD_GROUPS, group, namespace=place.name)
    for pod in place.pods(group):
        place.api.delete(PODS, pod["metadata"]["name"], namespace=place.name)
        place.wait_leaving(pod["metadata"]["name"])


def test_pods_count_in_the_capability_of_their_queue_until_they_are_gone(place: Place) -> None:
    place.add_nodes(3, cpu="4")
    small = place.add_queue("small", capability={"cpu": "4"})
    place.add_gang("first", 4, spec={"queue": small}, **workloads.lingering())
    place.wait_bound("first", 4)
    leave(place, "first")
    place.add_gang("second", 4, spec={"queue": small, "minResources": {"cpu": "4"}})

    says = f"queue {small}: cpu asked 4, free 0 of 4, of which 4 are terminating"
    place.wait_condition("second", "Reserved", "False", reason="QueueQuota", says=says)
    assert place.group("second")["status"]["phase"] == "Inqueue"
    told = place.cluster.extender.get("/debug/queues")[small]
    assert (told["terminating"]["cpu"], told["allocated"].get("cpu", 0)) == (4000, 0)
    assert (told["overused"], told["share"]) == (False, 0)
    assert not place.bound("second")

    place.delete_pods("first")
    place.wait_bound("second", 4)


def test_what_terminates_on_a_node_that_is_down_counts_no_more(place: Place) -> None:
    (lost,) = place.add_nodes(1, cpu="2")
    small = place.add_queue("small", capability={"cpu": "2"})
    place.add_gang("first", 2, spec={"queue": small}, **workloads.lingering())
    place.wait_bound("first", 2)
    place.add_nodes(1, cpu="2")
    leave(place, "first")
    place.add_gang("second", 2, spec={"queue": small})
    says = "cpu asked 2, free 0 of 2, of which 2 are terminating"
    place.wait_condition("second", "Reserved", "False", reason="QueueQuota", says=says)

    down = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    place.api.patch(NODES, lost, {"status": {"conditions": down}}, subresource="status")
    place.wait_bound("second", 2)


def test_a_pod_waits_for_the_one_that_it_replaces_and_says_so(place: Place) -> None:
    place.add_nodes(1, cpu="2")
    place.add_gang("gang", 2, minimum=1, **workloads.lingering())
    place.wait_bound("gang", 2)
    place.api.delete(PODS, "gang-0", namespace=place.name)
    place.wait_leaving("gang-0")
    place.submit_one(workloads.pod("new", group="gang"))

    place.wait_summary("gang", "cpu asked 1, free 0 of 2, of which 1 is terminating")
    place.delete_pod("gang-0")
    place.wait_pod_bound("new")


def test_a_gang_that_never_fits_its_queue_is_not_admitted(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    small = place.add_queue("small", capability={"cpu": "2"})
    place.add_gang("big", 3, spec={"queue": small, "minResources": {"cpu": "3"}})

    place.wait_condition(
        "big", "Reserved", "False", reason="QueueQuota", says="cpu asked 3, free 2"
    )
    assert place.group("big")["status"]["phase"] == "Pending"
    event = place.wait_event("big", "Unschedulable", says="queue resource quota insufficient")
    assert event["type"] == "Normal"


def test_a_larger_capability_admits_the_waiting_gang(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    small = place.add_queue("small", capability={"cpu": "1"})
    place.add_gang("gang", 3, spec={"queue": small})
    place.wait_condition("gang", "Reserved", "False", reason="QueueQuota")

    place.api.patch(QUEUES, small, {"spec": {"capability": {"cpu": "3"}}})
    place.wait_bound("gang", 3)


def test_a_lowered_capability_takes_back_the_reservations_of_a_gang_at_the_barrier(
    place: Place,
) -> None:
    place.add_nodes(1, cpu="4")
    small = place.add_queue("small", capability={"cpu": "3"})
    place.add_group("gang", 3, queue=small)
    place.submit(workloads.members("gang", 2))
    place.wait_held("gang", 2)

    place.api.patch(QUEUES, small, {"spec": {"capability": {"cpu": "1"}}})
    wait_until(lambda: not place.gang_state("gang"), timeout_s=12, what="all is given back")
    place.submit_one(workloads.pod("gang-2", group="gang"))
    says = f"queue {small}: cpu asked 3, free 1 of 1"
    place.wait_condition("gang", "Reserved", "False", reason="QueueQuota", says=says)
    assert not place.bound("gang")

    place.api.patch(QUEUES, small, {"spec": {"capability": {"cpu": "3"}}})
    place.wait_bound("gang", 3)


def test_a_closed_queue_takes_no_groups_and_keeps_what_runs(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    queue = place.add_queue("moody")
    place.add_gang("before", 2, spec={"queue": queue})
    place.wait_bound("before", 2)
    place.set_state(queue, "Closed")
    place.add_gang("after", 2, spec={"queue": queue})

    place.wait_condition(
        "after", "Reserved", "False", reason="QueueNotOpen", says=f"queue {queue} is not open"
    )
    assert place.group("after")["status"]["phase"] == "Pending"
    assert len(place.bound("before")) == 2
    assert not place.bound("after")

    place.set_state(queue, "Open")
    place.wait_bound("after", 2)


def test_a_group_whose_queue_is_missing_waits_for_it(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    place.add_gang("gang", 2, spec={"queue": f"{place.name}-late"})

    place.wait_condition("gang", "Reserved", "False", reason="QueueMissing")
    place.wait_summary("gang", f"queue {place.name}-late")
    assert not place.bound("gang")

    place.add_queue("late")
    place.wait_bound("gang", 2)


def test_queues_share_the_cluster_by_weight(place: Place) -> None:
    heavy = place.add_queue("heavy", weight=3)
    light = place.add_queue("light", weight=1)
    place.add_gang("heavy", 8, minimum=1, spec={"queue": heavy})
    place.add_gang("light", 8, minimum=1, spec={"queue": light})
    place.wait_known("heavy", "light", pods=16)

    place.add_nodes(1, cpu="8")
    place.wait_bound("heavy", 6)
    place.wait_bound("light", 2)


def test_queues_share_what_is_not_cordoned_by_weight(place: Place) -> None:
    heavy = place.add_queue("heavy", weight=3)
    light = place.add_queue("light", weight=1)
    both = place.add_nodes(2, cpu="8")
    for node in both:
        place.change_node(node, {"spec": {"unschedulable": True}})
        place.wait_node(node, takes_pods=False)
    place.add_gang("heavy", 8, minimum=1, spec={"queue": heavy})
    place.add_gang("light", 8, minimum=1, spec={"queue": light})
    place.wait_known("heavy", "light", pods=16)

    place.change_node(both[0], {"spec": {"unschedulable": None}})
    place.wait_bound("heavy", 6)
    place.wait_bound("light", 2)


def test_gangs_of_two_queues_that_each_need_most_of_the_cluster_run_in_turn(place: Place) -> None:
    for name in ("one", "other"):
        place.add_gang(name, 6, spec={"queue": place.add_queue(name)})
    place.wait_known("one", "other", pods=12)

    place.add_nodes(2, cpu="5")
    wait_until(lambda: len(place.bound()) == 6, timeout_s=20, what="one of them runs")
    first, second = ("one", "other") if place.bound("one") else ("other", "one")
    assert len(place.bound(first)) == 6
    place.wait_summary(second, "cpu asked 6, free 4 of 10")

    place.delete_gang(first)
    place.wait_bound(second, 6)


def test_a_plain_pod_goes_to_the_queue_of_its_annotation(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    small = place.add_queue("small", capability={"cpu": "1"})
    for number in range(2):
        place.submit_one(workloads.pod(f"plain-{number}", queue=small))
    place.wait_bound("", 1)
    (waiting,) = [pod for pod in place.pods() if not workloads.node_of(pod)]
    place.wait_summary(waiting["metadata"]["name"], f"queue {small}")


def test_a_queue_tells_what_is_allocated(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    queue = place.add_queue("busy")
    place.add_gang("gang", 3, spec={"queue": queue}, cpu="500m")
    place.wait_bound("gang", 3)

    def allocates(cpu: str | None) -> bool:
        told = place.api.get(QUEUES, queue).get("status", {}).get("allocated", {})
        return bool(told.get("cpu") == cpu)

    wait_until(lambda: allocates("1500m"), timeout_s=30, what="1500m are allocated")
    assert milli_cpu(place, queue, "allocated") == 1_500
    assert milli_cpu(place, queue, "real_capacity") == 4_000
    place.delete_gang("gang")
    wait_until(lambda: not place.pods("gang"), timeout_s=30, what="the pods are gone")
    wait_until(lambda: allocates(None) or allocates("0"), timeout_s=30, what="nothing is allocated")


def milli_cpu(place: Place, queue: str, what: str) -> float:
    """As dashboards made for Volcano read it."""
    name = f'volcano_queue_{what}_milli_cpu{{queue_name="{queue}"}}'
    return place.cluster.extender.metrics()[name]


def delete_by_force(place: Place, queue: str) -> None:
    """Delete a queue that a policy keeps, while the policy is not bound."""
    if place.cluster.kind == "sandbox":
        place.api.delete(QUEUES, queue)
        return
    binding = place.api.get(BINDINGS, KEEPER)
    place.api.delete(BINDINGS, KEEPER)

    def is_deleted() -> bool:
        try:
            place.api.delete(QUEUES, queue)
        except ApiError as error:
            if "can not be deleted" in str(error):  # the policy still acts
                return False
            raise
        return True

    try:
        wait_until(is_deleted, timeout_s=30, what=f"queue {queue} is deleted")
    finally:
        again = {key: binding[key] for key in ("apiVersion", "kind", "spec")}
        place.api.apply({**again, "metadata": {"name": KEEPER}})


def test_the_default_queue_comes_back(place: Place) -> None:
    assert place.api.find(QUEUES, "root")
    before = place.api.get(QUEUES, "default")["metadata"]["uid"]
    delete_by_force(place, "default")
    made = place.api.until_one(
        QUEUES,
        "default",
        lambda queue: bool(queue["metadata"]["uid"] != before),
        timeout_s=30,
    )
    assert (made["spec"]["weight"], made["spec"]["reclaimable"]) == (1, True)
    place.add_nodes(1, cpu="1")
    place.add_gang("gang", 1)
    place.wait_bound("gang", 1)


def test_a_group_moves_to_another_queue(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    shut = place.add_queue("shut")
    place.set_state(shut, "Closed")
    place.add_gang("gang", 2, spec={"queue": shut})
    place.wait_condition("gang", "Reserved", "False", reason="QueueNotOpen")

    place.api.patch(POD_GROUPS, "gang", {"spec": {"queue": "default"}}, namespace=place.name)
    place.wait_bound("gang", 2)


def test_single_pods_fill_their_queue_where_nodes_are_many(place: Place) -> None:
    """kube-scheduler asks for each as soon as it is there, and offers a part of the nodes."""
    place.add_nodes(120, cpu="2")
    queue = place.add_queue("narrow", capability={"cpu": "20"})
    pods = [workloads.pod(f"alone-{number}", queue=queue) for number in range(30)]
    for pod in pods:
        pod["metadata"]["annotations"] |= workloads.UNGATED
    place.submit(pods)
    first = names(place.wait_bound("", 20))
    for name in names(pods) - first:
        place.wait_pod_condition(name, "PodScheduled", "False")
    assert names(place.bound()) == first

    place.delete_pod(min(first))
    wait_until(lambda: bool(names(place.bound()) - first), timeout_s=30, what="the next one's turn")


def names(pods: Iterable[Object]) -> set[str]:
    return {pod["metadata"]["name"] for pod in pods}
