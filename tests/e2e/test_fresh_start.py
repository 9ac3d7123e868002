"""Processes that start anew find nothing to do: nothing depends on what one remembers.

Users do this and that to jobs, flows, CronJobs, queues and nodes until all has come to rest. Then
extender, controllers and kube-scheduler are killed, and others start. What they know is what is
stored; had the old ones decided by anything else, the new ones would change something.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any

import pytest

from tests.clusters.client import Event, Object
from tests.clusters.following import Follower
from tests.clusters.processes import wait_until
from tests.clusters.resources import (
    COMMANDS,
    CRON_JOBS,
    JOB_FLOWS,
    JOBS,
    POD_GROUPS,
    PODS,
    QUEUES,
    Resource,
)
from tests.clusters.rig import Rig, Setting, Stage
from tests.controllers.job import stand
from tests.controllers.job.stand import Stand
from tests.e2e import harms
from tests.e2e.courses import Course
from tests.scale import FULL, ROUND_S, ROUNDS, dice

pytestmark = pytest.mark.real

COURSES = max(ROUNDS // 4, 1)
STEPS = 80 if FULL else 25
SHORT_WAITS = Setting(flags=("--slot-timeout=4", "--barrier-timeout=4"))
"""Room is not kept for long for pods that nobody creates, nor for a gang that lacks some."""
STILL_S = 6.0
"""Nothing has changed for so long: it is at rest."""
REST_S = 60.0
_COUNTS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
_OF_FLOWS = ("pendingJobs", "runningJobs", "failedJobs", "completedJobs", "terminatedJobs")
_OF_QUEUES = ("pending", "running", "inqueue", "unknown", "completed", "allocated")


class Changes(Follower):
    """When an object of a kind was last seen to change."""

    def __init__(self, place: Stand, resource: Resource) -> None:
        super().__init__(place.api, place.name, resource)
        self.last = time.monotonic()

    def listed(self, items: Sequence[Object]) -> None:
        """A listing is no change."""

    def changed(self, _event: Event) -> None:
        self.last = time.monotonic()


def wait_at_rest(rig: Rig, place: Stand, followed: Sequence[Changes]) -> None:
    """Wait until nothing changes any more, nor will when some time is over.

    A gang may be kept from being tried again, room be kept for members that nobody creates, some be
    at Bind while others are lacking, a deleted job wait for the garbage collector, and a queue for
    the controllers to say that it is open.
    """
    since = time.monotonic()

    def rests() -> bool:
        if time.monotonic() < max(since, *(each.last for each in followed)) + STILL_S:
            return False
        refused = rig.extender.get("/debug/plan")["refused"].values()
        gangs = rig.extender.get("/debug/gangs").values()
        return not (
            any(each["cause"] == "CoolingDown" for each in refused)
            or any(each["slots"] or each["heldBinds"] for each in gangs)
            or any("deletionTimestamp" in job["metadata"] for job in place.all(JOBS))
            or any("state" not in queue.get("status", {}) for queue in place.api.list(QUEUES))
        )

    wait_until(rests, timeout_s=REST_S, what="all at rest")


def picture(place: Stand) -> dict[str, Any]:
    """All that there is, without times and texts."""
    queues = {f"Queue {item['metadata']['name']}": _queue(item) for item in place.api.list(QUEUES)}
    return queues | {
        f"{resource.kind} {item['metadata']['name']}": shown(item)
        for resource, shown in (
            (JOBS, _job),
            (JOB_FLOWS, _flow),
            (CRON_JOBS, _cron),
            (POD_GROUPS, _group),
            (PODS, _pod),
            (COMMANDS, _any),
        )
        for item in place.all(resource)
    }


def _job(item: Object) -> dict[str, Any]:
    status = item["status"]
    kept = {key: status[key] for key in (*_COUNTS, "retryCount", "version") if status.get(key)}
    return {"uid": item["metadata"]["uid"], "phase": status["state"]["phase"], **kept}


def _flow(item: Object) -> dict[str, Any]:
    status = item["status"]
    jobs = {key: sorted(status[key]) for key in _OF_FLOWS if status.get(key)}
    return {"uid": item["metadata"]["uid"], "phase": status["state"]["phase"], **jobs}


def _cron(item: Object) -> dict[str, Any]:
    active = item.get("status", {}).get("active", [])
    return {"uid": item["metadata"]["uid"], "active": sorted(job["name"] for job in active)}


def _queue(item: Object) -> dict[str, Any]:
    status = item["status"]
    kept = {key: status[key] for key in _OF_QUEUES if status.get(key)}
    return {"uid": item["metadata"]["uid"], "state": status["state"], **kept}


def _group(item: Object) -> dict[str, Any]:
    status = item["status"]
    verdicts = {each["type"]: each["status"] for each in status.get("conditions", [])}
    counts = {key: status[key] for key in _COUNTS if status.get(key)}
    return {"uid": item["metadata"]["uid"], "phase": status["phase"], **verdicts, **counts}


def _pod(item: Object) -> dict[str, Any]:
    spec, about = item["spec"], item["metadata"]
    found = {"uid": about["uid"], "phase": item["status"]["phase"], "node": spec.get("nodeName")}
    return {**found, "gates": spec.get("schedulingGates"), "ends": about.get("deletionTimestamp")}


def _any(item: Object) -> dict[str, Any]:
    return {"uid": item["metadata"]["uid"]}


def start_anew(rig: Rig, place: Stand) -> None:
    place.kill_controllers()
    harms.kill_extender(rig)
    harms.kill_scheduler(rig)
    place.start_controllers()


@pytest.mark.timeout(COURSES * 2 * ROUND_S)
def test_processes_that_start_anew_find_nothing_to_do(stage: Stage) -> None:
    die, rig = dice(), stage.rig(SHORT_WAITS)
    for _ in range(COURSES):
        with stand.opened(rig) as place, contextlib.ExitStack() as stack:
            kinds = (JOBS, JOB_FLOWS, POD_GROUPS, PODS)
            followed = [stack.enter_context(Changes(place, kind)) for kind in kinds]
            course = Course(place, die)
            stack.callback(course.clear)
            for _ in range(STEPS):
                course.step()
                time.sleep(die.choice([0, 0, 0.05, 0.2, 0.4]))
            course.end()
            wait_at_rest(rig, place, followed)
            before = picture(place)
            start_anew(rig, place)
            wait_at_rest(rig, place, followed)
            assert picture(place) == before
            assert not [name for name in before if name.startswith(COMMANDS.kind)]
