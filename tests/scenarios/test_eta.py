"""A job starts when its ETA says, after the end of the job whose run time is declared."""

from __future__ import annotations

from typing import Any

from tests.clusters.client import Object
from tests.clusters.place import Place
from tests.clusters.processes import wait_until

RUNS_S = 8
SLACK_S = 10
"""For a scheduler to start a pod on a busy machine."""


def submit(place: Place, name: str) -> None:
    annotations = {"pumice.sh/run-time": f"{RUNS_S}s"}
    place.add_gang(name, 1, spec={"annotations": annotations}, cpu="2")


def eta(place: Place, name: str) -> dict[str, Any]:
    found: dict[str, Any] = place.cluster.extender.get(f"/eta/{place.name}/{name}")
    return found


def groups(place: Place) -> list[Object]:
    found: list[Object] = place.cluster.extender.get(f"/eta/{place.name}")["etas"]
    return found


def test_a_job_starts_by_its_eta_behind_a_job_that_declares_its_run_time(place: Place) -> None:
    [node] = place.add_nodes(1, cpu="2")
    submit(place, "first")
    place.wait_bound("first", 1)
    submit(place, "next")
    wait_until(
        lambda: [each["group"] for each in groups(place)] == [f"{place.name}/next"],
        timeout_s=20,
        what="that the job waits",
    )
    wait_until(
        lambda: eta(place, "next")["outcome"] == "later",
        timeout_s=20,
        what="that the first job is known to run, and so until when",
    )
    found = eta(place, "next")
    assert (found["outcome"], found["nodes"]) == ("later", [node]), found
    assert found["after"] == [f"{place.name}/first"]
    assert found["p50"] == found["p90"]
    assert found["p90"] - found["now"] <= RUNS_S
    wait_until(
        lambda: eta(place, "next")["now"] > found["p50"] - 1,
        timeout_s=30,
        what="that the time of the first job is over",
    )
    place.delete_gang("first")
    place.wait_bound("next", 1)
    wait_until(
        lambda: eta(place, "next")["outcome"] == "running",
        timeout_s=20,
        what="that the job is told to run",
    )
    wait_until(
        lambda: eta(place, "next")["error"] is not None,
        timeout_s=20,
        what="that the answers are compared with what became of them",
    )
    error = eta(place, "next")["error"]
    assert error["answers"] >= 1
    assert error["median_s"] <= SLACK_S
