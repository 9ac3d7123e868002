"""A job that is applied together with what it names, and a moment before it, on both clusters."""

from __future__ import annotations

import pytest

from tests.clusters.client import Object
from tests.clusters.resources import CLAIMS, EVENTS, POD_GROUPS
from tests.scenarios.jobs.ground import Ground, ground
from tests.scenarios.jobs.shapes import make_job, up

__all__ = ["ground"]

pytestmark = pytest.mark.timeout(200)


def _claim(name: str) -> Object:
    asked = {"requests": {"storage": "1Gi"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": asked},
    }


def test_a_claim_that_comes_a_moment_later_is_not_said_to_be_missing(ground: Ground) -> None:
    volumes = [{"mountPath": "/data", "volumeClaimName": "later"}]
    ground.submit("together", make_job(up(), needs=1, volumes=volumes))
    ground.api.create(_claim("later"), resource=CLAIMS, namespace=ground.name)
    try:
        ground.wait(POD_GROUPS, bool, what="the job is prepared")
        events = ground.api.list(EVENTS, namespace=ground.name)
        said = [each["message"] for each in events if each["involvedObject"]["name"] == "together"]
        assert [message for message in said if "is not found" in message] == []
    finally:
        ground.api.delete(CLAIMS, "later", namespace=ground.name)
