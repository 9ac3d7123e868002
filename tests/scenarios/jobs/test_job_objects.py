"""Job plugins and objects of others in the namespace, and lists of hosts while a job scales."""

from __future__ import annotations

import base64

import pytest

from tests.clusters.client import Object, Objects
from tests.clusters.resources import CONFIG_MAPS, JOBS, SECRETS, Resource
from tests.scenarios.jobs.ground import Ground, ground
from tests.scenarios.jobs.shapes import make_job, up

__all__ = ["ground"]

pytestmark = pytest.mark.timeout(200)


def _wait_phase(ground: Ground, name: str, phase: str) -> Object:
    def reached(jobs: Objects) -> bool:
        return any(_phase(job) == phase for job in jobs if job["metadata"]["name"] == name)

    ground.wait(JOBS, reached, what=phase)
    return ground.api.get(JOBS, name, namespace=ground.name)


def _phase(job: Object) -> str:
    return str(job.get("status", {}).get("state", {}).get("phase"))


def _create(ground: Ground, kind: Resource, name: str, data: Object) -> Object:
    item = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
    return ground.api.create({**item, "data": data}, resource=kind, namespace=ground.name)


def test_a_secret_and_a_config_map_of_others_are_left_alone(ground: Ground) -> None:
    keys = {"authorized_keys": base64.b64encode(b"ssh-rsa theirs").decode()}
    theirs = {
        SECRETS: _create(ground, SECRETS, "team2-ssh", keys),
        CONFIG_MAPS: _create(ground, CONFIG_MAPS, "team2-svc", {"mine": "1"}),
    }
    ground.submit("team2", make_job(up(), needs=1, plugins={"ssh": [], "svc": []}))
    state = _wait_phase(ground, "team2", "Failed")["status"]["state"]
    for kind, before in theirs.items():
        name = before["metadata"]["name"]
        assert f"{kind.kind} {ground.name}/{name}" in state["message"]
        assert ground.api.get(kind, name, namespace=ground.name) == before
    told = [event["message"] for event in ground.api.events_of("team2", namespace=ground.name)]
    assert any("left alone" in message for message in told)


@pytest.mark.parametrize("replicas", [1, 3])
def test_lists_of_hosts_are_new_when_the_status_is(ground: Ground, replicas: int) -> None:
    """A client waits for the number of running pods, and reads the lists then."""
    name = f"scaled-{replicas}"
    ground.submit(name, make_job(up(2), needs=1, plugins={"svc": []}))
    _wait_running(ground, name, 2)
    ground.edit(name, make_job(up(replicas), needs=1, plugins={"svc": []}))
    _wait_running(ground, name, replicas)
    lists = ground.api.get(CONFIG_MAPS, f"{name}-svc", namespace=ground.name)
    assert lists["data"]["VC_UP_NUM"] == str(replicas)


def _wait_running(ground: Ground, name: str, count: int) -> None:
    def reached(jobs: Objects) -> bool:
        [job] = [job for job in jobs if job["metadata"]["name"] == name]
        return bool(job.get("status", {}).get("running") == count)

    ground.wait(JOBS, reached, what=f"{count} pods run")
