"""Gangs run whole or wait whole, and who waits is told why, with numbers."""

from __future__ import annotations

import pytest

from tests.clusters import workloads
from tests.clusters.place import Place
from tests.clusters.resources import POD_GROUPS, PODS


def test_a_gang_that_fits_runs_whole(place: Place) -> None:
    place.add_nodes(5, cpu="4")
    place.add_gang("whole", 20)

    assert len(place.wait_bound("whole", 20)) == 20
    running = place.wait_phase("whole", "Running")
    kinds = {c["type"]: c["status"] for c in running["status"]["conditions"]}
    assert kinds.pop("Unschedulable", "False") == "False", "that it waited a moment is over"
    assert kinds == {"Scheduled": "True", "Reserved": "True"}


def test_a_gang_that_does_not_fit_waits_whole_with_numbers_and_follows_when_there_is_room(
    place: Place,
) -> None:
    place.add_nodes(3, cpu="4")
    place.add_gang("first", 8)
    place.wait_bound("first", 8)
    place.add_gang("second", 6)

    held = f"held by {place.name}/first (cpu 8)"
    sentence = f"queue default: cpu asked 6, free 4 of 12; {held}"
    told = place.wait_condition(
        "second", "Unschedulable", says=f"6/6 tasks in gang unschedulable: {sentence}"
    )
    assert not place.bound("second")
    assert told["reason"] == "NotEnoughResources"
    assert place.wait_condition("second", "Reserved", "False", says=sentence)
    event = place.wait_event("second", "Unschedulable", says=sentence)
    assert (event["type"], event["message"]) == ("Warning", told["message"])
    assert place.wait_summary("second", sentence) == sentence
    assert place.wait_summary("second-0", sentence) == sentence

    place.delete_gang("first")
    place.wait_bound("second", 6)
    place.wait_phase("second", "Running")
    assert place.wait_condition("second", "Unschedulable", "False")


def test_members_beyond_the_minimum_are_bound_as_far_as_there_is_room(place: Place) -> None:
    place.add_nodes(2, cpu="3")
    place.add_gang("elastic", 8, minimum=4)

    place.wait_bound("elastic", 6)
    place.wait_phase("elastic", "Running")
    waiting = [pod for pod in place.pods("elastic") if not workloads.node_of(pod)]
    assert len(waiting) == 2
    assert all(pod["spec"]["schedulingGates"] == [{"name": workloads.GATE}] for pod in waiting)

    place.add_nodes(1, cpu="2")
    place.wait_bound("elastic", 8)


def test_every_role_gets_its_minimum_or_nobody_runs(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    minimum = {"ps": 1, "worker": 3}
    place.add_group("roles", 4, minTaskMember=minimum)
    place.submit(
        workloads.pod(f"worker-{i}", group="roles", role="worker", cpu="1") for i in range(5)
    )
    # Room is kept for the ps that nobody has created; who is there waits at the barrier.
    place.wait_held("roles", 3)
    assert list(place.gang_state("roles")["slots"]) == ["ps"]
    assert not place.bound("roles")

    place.submit_one(workloads.pod("ps-0", group="roles", role="ps", cpu="2"))
    place.wait_bound("roles", 6)


def test_a_gang_whose_role_does_not_fit_waits_whole(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    place.add_group("roles", 4, minTaskMember={"ps": 1, "worker": 3})
    pods = [workloads.pod(f"worker-{i}", group="roles", role="worker") for i in range(5)]
    place.submit([*pods, workloads.pod("ps-0", group="roles", role="ps", cpu="6")])

    place.wait_condition("roles", "Unschedulable", says="cpu asked")
    assert not place.bound("roles")


def test_a_gang_of_pods_that_come_late_finds_its_room_kept(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    place.add_group("late", 6, minResources={"cpu": "6", "memory": "384Mi"})
    place.wait_condition("late", "Reserved")
    # 6 of 8 are kept, so 4 more do not fit.
    place.add_gang("other", 4)
    place.wait_condition("other", "Unschedulable")

    place.submit(workloads.members("late", 6))
    place.wait_bound("late", 6)
    assert not place.bound("other")


@pytest.mark.parametrize("at_the_gate", [True, False], ids=["gated", "ungated"])
def test_the_room_of_a_lost_member_stays_its_gang_s(place: Place, *, at_the_gate: bool) -> None:
    place.add_nodes(1, cpu="4")
    place.add_gang("gang", 4)
    place.wait_bound("gang", 4)
    place.add_group("rival", 1, queue=place.add_queue("idle"))
    if at_the_gate:
        place.submit(workloads.members("rival", 1))
    else:
        place.submit_ungated("rival", 1)
    place.wait_condition("rival", "Reserved", "False")

    place.delete_pod("gang-0")
    place.wait_condition("gang", "Reserved", says="room is kept for a member")
    place.submit_one(workloads.pod("gang-0", group="gang"))
    place.wait_bound("gang", 4)
    assert not place.bound("rival")


def test_nor_do_others_get_the_room_of_a_member_that_terminates(place: Place) -> None:
    """It ends as `Failed` before its object is gone, and its room is free from then on."""
    place.add_nodes(1, cpu="4")
    place.add_group("gang", 4)
    pods = workloads.members("gang", 4)
    pods[0]["metadata"]["finalizers"] = ["example.com/look-at-it"]
    place.submit(pods)
    place.wait_phase("gang", "Running")
    place.add_group("rival", 1, queue=place.add_queue("idle"))
    place.submit(workloads.members("rival", 1))
    place.wait_condition("rival", "Reserved", "False")

    place.delete_pod("gang-0")
    place.set_pod_phase("gang-0", "Failed")
    place.wait_condition("gang", "Reserved", says="room is kept for a member")
    place.api.patch(PODS, "gang-0", {"metadata": {"finalizers": None}}, namespace=place.name)
    place.api.until_gone(PODS, "gang-0", namespace=place.name)
    place.submit_one(workloads.pod("gang-0", group="gang"))
    place.wait_bound("gang", 4)
    assert not place.bound("rival")


def test_a_gang_that_asks_for_more_than_it_had_takes_its_queue_s_turn(place: Place) -> None:
    place.add_nodes(1, cpu="8")
    first, second = place.add_queue("first"), place.add_queue("second")
    place.add_gang("scaled", 2, spec={"queue": second})
    place.wait_phase("scaled", "Running")
    place.add_gang("filler", 1, cpu="6", spec={"queue": first})
    place.wait_phase("filler", "Running")
    place.add_gang("older", 4, spec={"queue": first})
    place.wait_condition("older", "Reserved", "False")

    place.api.patch(POD_GROUPS, "scaled", {"spec": {"minMember": 7}}, namespace=place.name)
    place.submit(workloads.pod(f"scaled-{i}", group="scaled") for i in range(2, 7))
    place.wait_known("scaled", pods=7)
    place.delete_gang("filler")
    place.wait_bound("older", 4)
    assert len(place.bound("scaled")) == 2
    annotations = place.group("scaled")["metadata"]["annotations"]
    assert '"members":2' in annotations["pumice.sh/reached"]


def test_a_pod_without_a_group_is_a_gang_of_one(place: Place) -> None:
    place.add_nodes(1, cpu="2")
    place.submit([workloads.pod("alone-0"), workloads.pod("alone-1"), workloads.pod("alone-2")])

    place.wait_bound("", 2)
    (waiting,) = [pod for pod in place.pods("") if not workloads.node_of(pod)]
    # Admission counts with the overcommit factor of 1.2.
    place.wait_summary(waiting["metadata"]["name"], "cpu asked 1, free 400m of 2400m")
    place.add_nodes(1, cpu="1")
    place.wait_bound("", 3)


def test_the_gang_of_higher_priority_goes_first(place: Place) -> None:
    urgent = place.add_priority_class("urgent", 1000)
    place.add_gang("calm", 4)
    place.add_gang("urgent", 4, spec={"priorityClassName": urgent})
    place.wait_condition("calm", "Unschedulable")
    place.wait_condition("urgent", "Unschedulable")

    place.add_nodes(1, cpu="5")
    place.wait_bound("urgent", 4)
    assert not place.bound("calm")


def test_a_group_that_is_missing_keeps_its_pods_waiting(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    place.submit(workloads.members("later", 2))
    assert not place.bound("later")
    place.wait_summary("later-0", "waiting for the pod group to exist")

    place.add_group("later", 2)
    place.wait_bound("later", 2)


def test_members_that_have_finished_count_for_a_new_group_of_the_same_name(place: Place) -> None:
    place.add_nodes(1)
    place.add_gang("again", 2)
    place.wait_bound("again", 2)
    place.set_pod_phase("again-0", "Succeeded")
    place.wait_group("again", lambda group: group["status"].get("succeeded") == 1)
    place.api.delete(POD_GROUPS, "again", namespace=place.name)
    place.delete_pod("again-1")

    place.add_group("again", 2)
    place.submit_one(workloads.pod("again-1", group="again"))
    place.wait_pod_bound("again-1")
