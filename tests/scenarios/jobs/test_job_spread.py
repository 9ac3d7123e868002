"""Jobs whose pods must be spread over the nodes, on both clusters."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.clusters import workloads
from tests.clusters.client import Objects
from tests.clusters.resources import PODS
from tests.scenarios.jobs.ground import Ground, ground
from tests.scenarios.jobs.shapes import make_job, up

__all__ = ["ground"]

pytestmark = pytest.mark.timeout(200)

_JOB = "volcano.sh/job-name"


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("even", {}),
        ("domains", {"minDomains": 2}),
        ("anywhere", {"nodeAffinityPolicy": "Ignore"}),
    ],
)
def test_pods_are_spread_evenly(ground: Ground, name: str, policy: dict[str, Any]) -> None:
    """A pod that is pinned sees its own node only, so where that would not do none is."""
    spread = workloads.spread_evenly({_JOB: name}, **policy)
    ground.submit(name, make_job(up(12, pod=spread), needs=12))
    ground.wait(PODS, lambda pods: len(_bound(pods, name)) == 12, what=f"all of {name} bound")

    pods = _bound(ground.api.list(PODS, namespace=ground.name), name)
    counts = Counter(map(workloads.node_of, pods)).values()
    assert max(counts) - min(counts) <= 1


def _bound(pods: Objects, job: str) -> Objects:
    """The pods of a job that have a node."""
    return [pod for pod in workloads.bound(pods) if pod["metadata"]["labels"].get(_JOB) == job]
