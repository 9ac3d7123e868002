"""What a job's events tell of pods that are gone and of policies that come to nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.clusters.client import Objects
from tests.clusters.processes import wait_until
from tests.clusters.resources import JOBS, PODS
from tests.scenarios.jobs.ground import Ground, ground
from tests.scenarios.jobs.shapes import make_job, policy, up

__all__ = ["ground"]

pytestmark = pytest.mark.timeout(200)


def _told(ground: Ground, name: str) -> list[str]:
    return [event["message"] for event in ground.api.events_of(name, namespace=ground.name)]


def _runs(name: str, count: int) -> Callable[[Objects], bool]:
    def reached(jobs: Objects) -> bool:
        statuses = [j.get("status", {}) for j in jobs if j["metadata"]["name"] == name]
        return [status.get("running") for status in statuses] == [count]

    return reached


def test_why_a_pod_failed_can_be_read_after_it_was_restarted(ground: Ground) -> None:
    ground.submit("fails", make_job(up(2), needs=2, policies=[policy("PodFailed", "RestartPod")]))
    ground.wait(JOBS, _runs("fails", 2), what="both pods run")
    ended = {"exitCode": 3, "reason": "Error", "message": "loading\nno such dataset\n"}
    times = dict.fromkeys(("startedAt", "finishedAt"), "2026-01-01T00:00:00Z")
    container = {
        "name": "c",
        "image": "busybox",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": {**ended, **times}},
    }
    status = {"status": {"phase": "Failed", "containerStatuses": [container]}}
    ground.api.patch(PODS, "fails-up-1", status, namespace=ground.name, subresource="status")
    told = (
        "task up, pod fails-up-1: container c ended with exit code 3 (Error), its last words:"
        " loading | no such dataset"
    )
    wait_until(lambda: told in _told(ground, "fails"), timeout_s=60, what="the failure is told")


def test_a_pending_pod_without_a_timeout_is_told_of(ground: Ground) -> None:
    spec = make_job(up(), needs=1, policies=[policy("PodPending", "AbortJob")])
    ground.submit("waits", {**spec, "queue": ground.full})
    ground.submit("pends", spec)
    told = (
        "AbortJob on PodPending of task up is not executed: every pod is pending at first, so the"
        " policy needs a timeout"
    )
    wait_until(lambda: told in _told(ground, "pends"), timeout_s=60, what="the policy is told of")
    assert told not in _told(ground, "waits")
