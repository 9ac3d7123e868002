"""Many jobs at once on the real control plane while the controllers are killed again and again.

`PUMICE_ROUNDS=20` makes it 200 jobs of 10 pods and 20 kills. Nothing is made twice, nothing is left
over, no job runs in part, and every count is exact at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clusters import nodes
from tests.clusters.partials import Partials
from tests.clusters.resources import CONFIG_MAPS, JOBS, POD_GROUPS, PODS, SECRETS, SERVICES
from tests.clusters.rig import Rig
from tests.controllers.job import stand
from tests.controllers.job.stand import Stand
from tests.scale import FULL, ROUNDS, dice

pytestmark = pytest.mark.real

JOB_COUNT = 200 if FULL else 20
SIZE = 10
BARRIER_S = 20.0
"""The extender's default: no job may be bound in part for longer."""
PATIENCE_S = 120.0


@pytest.fixture
def jobs(rig: Rig) -> Iterator[Stand]:
    """A stand with room for all jobs side by side."""
    with stand.opened(rig) as made:
        more = nodes.create(rig.api, 10, prefix=f"{made.name}-more", cpu="32", pods=250)
        try:
            yield made
        finally:
            nodes.delete(rig.api, more)


def _spec() -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "busybox",
        "command": ["sleep", "2"],
        "resources": {"requests": {"cpu": "100m"}},
    }
    task = {
        "name": "w",
        "replicas": SIZE,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    return {"minAvailable": SIZE, "plugins": {"svc": [], "ssh": []}, "tasks": [task]}


def _group(job: Any) -> str:
    return f"{job['metadata']['name']}-{job['metadata']['uid']}"


@pytest.mark.timeout(600)
def test_many_jobs_complete_though_their_controllers_are_killed_again_and_again(
    jobs: Stand,
) -> None:
    die = dice()
    names = [f"job-{number}" for number in range(JOB_COUNT)]
    minimums = {_group(jobs.submit(name, _spec())): SIZE for name in names}
    pods = JOB_COUNT * SIZE
    with Partials(jobs.api, jobs.name, minimums) as seen:
        for moment in sorted(die.sample(range(pods), ROUNDS)):
            seen.wait_bound(moment, timeout_s=PATIENCE_S)
            jobs.kill_controllers()
            jobs.start_controllers()
        seen.wait_whole(timeout_s=PATIENCE_S)
        jobs.wait_phase("Completed", *names, timeout_s=PATIENCE_S)
        assert seen.longest_s() < BARRIER_S, seen.partial()
        assert seen.made_twice() == []
    for job in jobs.all(JOBS):
        counts = {name: n for name, n in job["status"].items() if isinstance(n, int)}
        assert counts == {"minAvailable": SIZE, "succeeded": SIZE}
    expected = sorted(f"{name}-w-{number}" for name in names for number in range(SIZE))
    assert sorted(pod["metadata"]["name"] for pod in jobs.all(PODS)) == expected
    jobs.wait_none(POD_GROUPS, SERVICES, SECRETS)
    assert [item["metadata"]["name"] for item in jobs.all(CONFIG_MAPS)] == ["kube-root-ca.crt"]
    jobs.kill_controllers()
    print(  # noqa: T201 - the figures of a long run
        f"{JOB_COUNT} jobs of {SIZE}, {ROUNDS} kills: longest in part {seen.longest_s():.1f} s, "
        f"controllers {jobs.cpu_s:.1f} CPU-s, {jobs.rss_mib:.0f} MiB"
    )
    jobs.start_controllers()
