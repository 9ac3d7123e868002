"""What readers of the whole state are told while jobs run."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from tests.clusters.place import Place
from tests.clusters.processes import wait_until
from tests.clusters.resources import PODS

STAGES = ["submitted", "enqueued", "planned", "held", "bound", "running", "ended"]
_LISTED_S = 1.0
"""The API server dates what is created in whole seconds."""


def story(place: Place, name: str) -> Any:
    return place.cluster.extender.get(f"/view/jobs/{place.name}/{name}")


def jobs(place: Place) -> dict[str, Any]:
    """The jobs of the place in the view, by name."""
    view = place.cluster.extender.get(f"/view?namespace={place.name}")
    return {row["name"]: row for row in view["jobs"]}


def start(place: Place, group: str) -> None:
    """Let the bound pods start as a kubelet would, where there is none."""
    begun = datetime.fromtimestamp(time.time() + 1, UTC)  # noqa: TID251 - the node's own clock
    status = {"phase": "Running", "startTime": begun.strftime("%Y-%m-%dT%H:%M:%SZ")}
    for each in place.bound(group):
        if not each["status"].get("startTime"):
            name = each["metadata"]["name"]
            place.api.patch(
                PODS, name, {"status": status}, namespace=place.name, subresource="status"
            )


def test_the_story_of_a_gang_has_the_time_of_each_stage(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    place.add_gang("train", 3)
    place.wait_bound("train", 3)
    start(place, "train")
    wait_until(
        lambda: story(place, "train")["current"] == "running", timeout_s=20, what="that it runs"
    )
    told = story(place, "train")
    assert [each["stage"] for each in told["stages"]] == STAGES
    times = [each["at"] for each in told["stages"][:-1]]
    assert None not in times
    assert told["stages"][-1]["at"] is None
    assert times[0] <= times[1] + _LISTED_S
    assert times[1:] == sorted(times[1:])
    assert {each["state"] for each in told["members"]} == {"running"}
    [row] = jobs(place).values()
    assert (row["stage"], row["members"]["running"], row["waits"]) == ("running", 3, False)


def test_a_gang_that_waits_says_why_in_the_view_and_in_its_story(place: Place) -> None:
    place.add_nodes(1, cpu="2")
    place.add_gang("holds", 2)
    place.wait_bound("holds", 2)
    place.add_gang("waits", 2)
    wait_until(
        lambda: "cpu" in jobs(place).get("waits", {}).get("reason", ""),
        timeout_s=20,
        what="the reason that there is no room",
    )
    row, told = jobs(place)["waits"], story(place, "waits")
    assert told["why"]["reason"] == row["reason"]
    assert row["outlook"] == "not yet"
    assert told["stages"][2]["at"] is None
    view = place.cluster.extender.get(f"/view?namespace={place.name}")
    shares = [each for each in view["nodes"] for each in each["by"] if not each["others"]]
    assert {(each["job"], each["pods"]) for each in shares} == {(f"{place.name}/holds", 2)}


def test_a_gang_that_runs_and_does_not_work_is_told_of(place: Place) -> None:
    place.add_nodes(1, cpu="4")
    place.add_gang("train", 2)
    place.wait_bound("train", 2)
    start(place, "train")

    def trouble() -> str:
        told: str = jobs(place).get("train", {"trouble": ""})["trouble"]
        return told

    state = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    last = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    first, _ = sorted(each["metadata"]["name"] for each in place.bound("train"))
    report(place, first, state=state, lastState=last, restartCount=2)
    why = f"{first}: container main: CrashLoopBackOff, 2 restarts, last ended with exit code 137"
    wait_until(lambda: why in trouble(), timeout_s=20, what="that it does not work")
    assert trouble().startswith("1 of 2 pods does not work: ")
    report(place, first, state={"running": {}}, restartCount=3)
    wait_until(lambda: not trouble(), timeout_s=20, what="that it works")


def report(place: Place, name: str, **said: Any) -> None:
    """Say of a pod's only container what a kubelet would."""
    pod = place.api.get(PODS, name, namespace=place.name)
    [container] = pod["spec"]["containers"]
    now = {"name": "main", "image": container["image"], "imageID": "", "ready": False, **said}
    status = {"containerStatuses": [{**now, "name": container["name"]}]}
    place.api.patch(PODS, name, {"status": status}, namespace=place.name, subresource="status")
