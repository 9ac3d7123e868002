"""Gangs of pods that another operator makes, and that have lost a pod: restarted or released."""

from __future__ import annotations

from tests.clusters import workloads
from tests.clusters.client import Objects
from tests.clusters.resources import POD_GROUPS, PODS
from tests.scenarios.jobs.ground import Ground, ground, names_of

__all__ = ["ground"]

AFTER, ACTION = "pumice.sh/stranded-after", "pumice.sh/stranded-action"
RELEASED = "pumice.sh/stranded-released"


def strand(ground: Ground, name: str, action: str) -> None:
    """A gang of three runs, and one of its pods is lost for good."""
    said = {AFTER: "3s", ACTION: action}
    group = workloads.pod_group(name, min_member=3, annotations=said)
    ground.api.create(group, resource=POD_GROUPS, namespace=ground.name)
    for pod in workloads.members(name, 3):
        ground.api.create(pod, resource=PODS, namespace=ground.name)
    ground.wait(PODS, lambda pods: running(pods, name) == 3, what=f"{name} runs")
    ground.wait(POD_GROUPS, lambda found: phase(found, name) == "Running", what="Running")
    ground.bury(f"{name}-0")


def running(pods: Objects, group: str) -> int:
    mine = (pod for pod in pods if pod["metadata"]["labels"].get("group") == group)
    return sum(pod["status"].get("phase") == "Running" for pod in mine)


def phase(groups: Objects, name: str) -> str:
    [group] = [each for each in groups if each["metadata"]["name"] == name]
    return str(group.get("status", {}).get("phase"))


def reasons(ground: Ground, name: str) -> set[str]:
    return {each["reason"] for each in ground.api.events_of(name, namespace=ground.name)}


def clear(ground: Ground, name: str) -> None:
    ground.api.delete(POD_GROUPS, name, namespace=ground.name)
    ground.api.delete_all(PODS, namespace=ground.name, label_selector=f"group={name}")


def test_the_pods_that_are_left_are_evicted_so_that_all_are_made_anew(ground: Ground) -> None:
    strand(ground, "again", "restart")
    ground.wait(PODS, lambda pods: not running(pods, "again"), what="evicted")
    for pod in workloads.members("again", 3):
        if pod["metadata"]["name"] not in names_of(ground.api.list(PODS, namespace=ground.name)):
            ground.api.create(pod, resource=PODS, namespace=ground.name)
    ground.wait(PODS, lambda pods: running(pods, "again") == 3, what="runs again")
    ground.wait(POD_GROUPS, lambda found: phase(found, "again") == "Running", what="Running")
    assert {"Stranded", "StrandedRestarted"} <= reasons(ground, "again")
    clear(ground, "again")


def test_a_released_gang_runs_on_and_no_room_is_kept_for_the_rest(ground: Ground) -> None:
    strand(ground, "less", "release")

    def is_released(groups: Objects) -> bool:
        annotations = [each["metadata"].get("annotations", {}) for each in groups]
        return any(each.get(RELEASED) for each in annotations)

    ground.wait(POD_GROUPS, is_released, what="released")
    assert running(ground.api.list(PODS, namespace=ground.name), "less") == 2
    assert {"Stranded", "StrandedReleased"} <= reasons(ground, "less")
    clear(ground, "less")
