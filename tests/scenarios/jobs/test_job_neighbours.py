"""Jobs whose workers must be near their server, on both clusters."""

from __future__ import annotations

import pytest

from tests.clusters import workloads
from tests.clusters.client import Objects
from tests.clusters.resources import PODS
from tests.scenarios.jobs.ground import Ground, ground
from tests.scenarios.jobs.shapes import make_job, up

__all__ = ["ground"]

pytestmark = pytest.mark.timeout(200)

_JOB = "volcano.sh/job-name"
_TASK = "volcano.sh/task-spec"


def test_workers_are_near_their_server(ground: Ground) -> None:
    """Created pinned they would be refused before the server is at Bind, and be made anew."""
    server = {"matchLabels": {_JOB: "near", _TASK: "server"}}
    term = {"labelSelector": server, "topologyKey": "kubernetes.io/hostname"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    workers = up(6, name="a-worker", pod={"affinity": near})
    ground.submit("near", make_job(workers, up(name="server"), needs=7))
    ground.wait(PODS, lambda pods: len(_bound(pods)) == 7, what="the job is bound")

    pods = _bound(ground.api.list(PODS, namespace=ground.name))
    assert len({workloads.node_of(pod) for pod in pods}) == 1
    pinned = [pod for pod in pods if "pumice.sh/plan-generation" in pod["metadata"]["annotations"]]
    # Nobody is, where the extender came to know the job later than its PodGroup.
    assert [pod["metadata"]["name"] for pod in pinned] in (["near-server-0"], [])
    assert not [pod for pod in pods if "pumice.sh/second-try" in pod["metadata"]["annotations"]]


def _bound(pods: Objects) -> Objects:
    """The pods of the job that have a node."""
    return [pod for pod in workloads.bound(pods) if pod["metadata"]["labels"].get(_JOB) == "near"]
