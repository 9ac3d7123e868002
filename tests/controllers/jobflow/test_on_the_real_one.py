"""Flows whose jobs go as soon as they end, on the real control plane.

A job that is gone leaves nothing but the status of its flow to tell that its step is done.
`PUMICE_ROUNDS=10` makes it 100 flows and 10 kills.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.clusters.client import Event, Object
from tests.clusters.following import Follower
from tests.clusters.processes import wait_until
from tests.clusters.resources import JOB_FLOWS, JOB_TEMPLATES, JOBS
from tests.clusters.rig import Rig
from tests.controllers.job import stand
from tests.controllers.job.stand import Stand, phase_of
from tests.scale import ROUNDS, dice

pytestmark = pytest.mark.real

FLOWS = 10
"""In each round."""
STEPS: list[dict[str, Any]] = [
    {"name": "first"},
    {"name": "left", "dependsOn": {"targets": ["first"]}},
    {"name": "right", "dependsOn": {"targets": ["first"]}},
    {"name": "last", "dependsOn": {"targets": ["left", "right"]}},
]
PATIENCE_S = 120.0


class Made(Follower):
    """The UIDs under which each job was seen."""

    def __init__(self, place: Stand) -> None:
        super().__init__(place.api, place.name, JOBS)
        self.uids: defaultdict[str, set[str]] = defaultdict(set)

    def listed(self, items: Sequence[Object]) -> None:
        for job in items:
            self.changed(Event("ADDED", job))

    def changed(self, event: Event) -> None:
        about = event.object["metadata"]
        self.uids[about["name"]].add(about["uid"])

    def wait(self, count: int) -> None:
        """Wait until so many jobs were made."""
        wait_until(
            lambda: len(self.times()) >= count, timeout_s=PATIENCE_S, what=f"{count} jobs made"
        )

    def times(self) -> dict[str, int]:
        """How often each job was made."""
        with self.lock:
            return {name: len(uids) for name, uids in self.uids.items()}


@pytest.fixture
def place(rig: Rig) -> Iterator[Stand]:
    """A stand with a template for each step."""
    with stand.opened(rig) as made:
        for step in STEPS:
            made.create(JOB_TEMPLATES, step["name"], template())
        yield made
        for resource in (JOB_FLOWS, JOB_TEMPLATES):
            made.api.delete_all(resource, namespace=made.name)


def template() -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "busybox",
        "command": ["sh", "-c", "exit 0"],
        "resources": {"requests": {"cpu": "10m"}},
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "schedulerName": "volcano",
        "minAvailable": 1,
        "ttlSecondsAfterFinished": 0,
        "tasks": [{"name": "main", "replicas": 1, "template": {"spec": pod}}],
    }


def run(place: Stand, names: Sequence[str]) -> None:
    for name in names:
        place.create(JOB_FLOWS, name, {"flows": STEPS})


def wait_done(place: Stand, names: Sequence[str]) -> None:
    def done(flows: list[Object]) -> bool:
        return {f["metadata"]["name"] for f in flows if phase_of(f) == "Succeed"} == set(names)

    place.api.until(JOB_FLOWS, done, namespace=place.name, timeout_s=PATIENCE_S)
    place.wait_none(JOBS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [0, ROUNDS], ids=["undisturbed", "kills"])
def test_each_step_is_done_once_though_its_job_goes_when_it_ends(place: Stand, kills: int) -> None:
    names = [f"flow-{number}" for number in range(FLOWS * ROUNDS)]
    jobs = [f"{name}-{step['name']}" for name in names for step in STEPS]
    with Made(place) as made:
        run(place, names)
        for moment in sorted(dice().sample(range(1, len(jobs)), kills)):
            made.wait(moment)
            place.kill_controllers()
            place.start_controllers()
        wait_done(place, names)
        assert made.times() == dict.fromkeys(jobs, 1)
