"""What a user reads: phases, counts, conditions, events; the same words everywhere."""

from __future__ import annotations

from tests.clusters import workloads
from tests.clusters.place import Place, condition
from tests.clusters.processes import wait_until

PLACED = "pumice.sh/Placed"


def test_a_group_goes_from_pending_over_inqueue_to_running_and_completed(place: Place) -> None:
    queue = place.add_queue("gate")
    place.set_state(queue, "Closed")
    place.add_group("gang", 2, queue=queue)
    place.wait_phase("gang", "Pending")

    place.set_state(queue, "Open")
    place.wait_phase("gang", "Inqueue")

    place.add_nodes(1, cpu="4")
    place.submit(workloads.members("gang", 2))
    place.wait_bound("gang", 2)
    place.wait_phase("gang", "Running")
    place.wait_event("gang", "Scheduled", says="pod group is ready")

    place.set_pod_phase("gang-0", "Running")
    place.set_pod_phase("gang-1", "Running")
    place.wait_group("gang", lambda group: group["status"].get("running") == 2)

    place.set_pod_phase("gang-0", "Succeeded")
    place.wait_group("gang", lambda group: group["status"].get("succeeded") == 1)
    place.set_pod_phase("gang-1", "Succeeded")
    place.wait_phase("gang", "Completed")


def test_a_completed_group_whose_pods_are_deleted_stays_so_and_claims_nothing(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    queue = place.add_queue("four", capability={"cpu": "4"})
    place.add_gang("old", 1, cpu="3", spec={"queue": queue, "minResources": {"cpu": "3"}})
    place.wait_bound("old", 1)
    place.set_pod_phase("old-0", "Succeeded")
    place.wait_phase("old", "Completed")
    place.delete_pod("old-0")
    place.wait_group("old", lambda group: not group["status"].get("succeeded"))

    place.add_gang("new", 1, cpu="4", spec={"queue": queue, "minResources": {"cpu": "4"}})
    place.wait_bound("new", 1)
    assert place.group("old")["status"]["phase"] == "Completed"

    place.submit_one(workloads.pod("old-1", group="old"))
    place.wait_phase("old", "Pending")
    place.delete_gang("new")
    place.wait_bound("old", 1)


def test_a_gang_that_loses_a_member_is_unknown_until_it_is_back(place: Place) -> None:
    place.add_nodes(1, cpu="2")
    place.add_gang("gang", 2)
    place.wait_bound("gang", 2)
    for name in ("gang-0", "gang-1"):
        place.set_pod_phase(name, "Running")
    place.wait_phase("gang", "Running")

    place.set_pod_phase("gang-1", "Failed")
    place.wait_group("gang", lambda group: group["status"].get("failed") == 1)
    place.delete_pod("gang-1")
    place.wait_phase("gang", "Unknown")
    place.submit_one(workloads.pod("gang-2", group="gang"))
    place.wait_pod_bound("gang-2")
    place.wait_phase("gang", "Running")


def test_a_waiting_pod_says_why_in_the_words_of_its_group(place: Place) -> None:
    place.add_nodes(1, cpu="2")
    place.add_gang("big", 3)
    last = "never: more than the whole cluster has"
    sentence = place.wait_condition("big", "Reserved", "False", says=last)["message"]

    def told() -> bool:
        found = condition(place.pod("big-0"), PLACED)
        return found is not None and (found["status"], found["reason"]) == ("False", "QueueRoom")

    wait_until(told, timeout_s=30, what="the pod says why")
    why = condition(place.pod("big-0"), PLACED)
    assert why is not None
    assert place.explain("big")["reason"]["cause"] == "QueueRoom"
    assert why["message"].startswith("queue default: cpu asked")
    assert place.wait_summary("big", sentence) == sentence
    scheduled = condition(place.pod("big-0"), "PodScheduled")
    assert scheduled is not None
    assert scheduled["reason"] == "SchedulingGated"

    place.add_nodes(1, cpu="1")
    place.wait_bound("big", 3)
    why = condition(place.pod("big-0"), PLACED)
    assert why is None or why["status"] == "True"


def test_a_pod_behind_the_gate_has_an_event_that_says_why_and_numbers_that_stay_right(
    place: Place,
) -> None:
    place.add_nodes(1, cpu="2")
    place.add_gang("big", 2, cpu="2")
    for name in ("big-0", "big-1"):
        said = place.wait_event(name, "FailedScheduling", says="cpu asked 4, free 2 of 2")
        assert said["type"] == "Warning"

    place.add_nodes(1, cpu="1")
    place.wait_pod_condition("big-0", PLACED, "False", says="cpu asked 4, free 3 of 3")
    assert len(place.events("big-0")) <= 2, "new numbers of a cause make no event"


def test_a_pod_without_a_gate_does_not_go_on_waiting_for_what_has_come(place: Place) -> None:
    def said(text: str) -> bool:
        found = condition(place.pod("big-0"), "PodScheduled")
        return found is not None and text in found["message"]

    place.add_nodes(1, cpu="2")
    place.submit_ungated("big", 3)
    wait_until(lambda: said("waiting for the pod group to exist"), timeout_s=30, what="no PodGroup")
    place.add_group("big", 3)
    wait_until(
        lambda: said("waiting for what the cluster leaves to the queue"),
        timeout_s=30,
        what="no room",
    )


def test_explain_tells_the_numbers_of_the_reason(place: Place) -> None:
    place.add_nodes(2, cpu="2")
    place.add_gang("first", 3)
    place.wait_bound("first", 3)
    place.add_gang("second", 2)
    place.wait_condition("second", "Reserved", "False", says="cpu asked 2")

    story = place.explain("second")
    (lack,) = [s for s in story["reason"]["shortfalls"] if s["resource"] == "cpu"]
    numbers = {"resource": "cpu", "asked": 2000, "free": 1000, "limit": 4000}
    assert numbers.items() <= lack.items()
    assert story["reason"]["holders"] == [
        {"who": f"{place.name}/first", "resource": "cpu", "amount": 3000}
    ]
    assert {member["stage"] for member in story["members"]} == {"waiting"}
    assert story["min_member"] == 2


def test_a_group_with_too_few_pods_says_how_many_there_are(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    place.add_group("few", 4)
    told = place.wait_condition("few", "Reserved", "False", reason="NotEnoughTasks")
    assert "pods asked 4, present 0" in told["message"]


def test_a_gang_that_lacks_the_member_of_one_role_is_not_scheduled(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    place.add_group("roles", 3, minTaskMember={"ps": 1, "worker": 2})
    place.submit(workloads.pod(f"worker-{i}", group="roles", role="worker") for i in range(3))
    place.wait_condition("roles", "Unschedulable", "True", reason="NotEnoughPodsOfTask")
    assert condition(place.group("roles"), "Scheduled") is None

    place.submit_one(workloads.pod("ps", group="roles", role="ps"))
    place.wait_phase("roles", "Running")
    place.wait_condition("roles", "Scheduled", "True")


def test_what_no_end_of_other_pods_brings_is_said_to_be_never(place: Place) -> None:
    place.add_nodes(2, cpu="4")
    place.add_gang("holds", 1, cpu="3")
    place.wait_bound("holds", 1)
    device = {"cpu": "1", "example.com/none": "1"}
    nothing_has = {"requests": device, "limits": {"example.com/none": "1"}}
    place.add_gang("large", 1, cpu="5")
    place.add_gang("huge", 9)
    place.add_gang("device", 1, resources=nothing_has)
    place.add_gang("waits", 2, cpu="3")

    place.wait_condition("large", "Reserved", "False", says="of 4; 0/2 nodes are available")
    place.wait_summary("large", "; never: more than any node has that the pod may go to")
    place.wait_summary("huge", "; never: more than the whole cluster has")
    place.wait_summary("device", "example.com/none asked 1, free 0 of 0")
    place.wait_summary("device", "; never: no node has that resource")
    place.wait_summary("waits", "cpu asked 6, free 5 of 8")
    told = {name: place.explain(name)["reason"]["never"] for name in ("large", "huge", "waits")}
    assert told == {"large": "NodesTooSmall", "huge": "ClusterTooSmall", "waits": None}
