"""Jobs beside others: workers near their server, and jobs that share a quota; both clusters."""

from __future__ import annotations

import pytest

from tests.clusters import workloads
from tests.clusters.client import Objects
from tests.clusters.resources import JOBS, PODS, QUEUES, RESOURCE_QUOTAS
from tests.scenarios.jobs.ground import Ground, ground, on_seat
from tests.scenarios.jobs.shapes import make_job, policy, up

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


def test_pods_that_their_queue_cannot_hold_take_no_quota_from_others(ground: Ground) -> None:
    ground.api.delete_all(JOBS, namespace=ground.name)
    ground.wait_none(PODS)
    small = f"{ground.name}-small"
    ground.api.create(workloads.queue(small, capability={"cpu": "20m"}), resource=QUEUES)
    hard = workloads.item(RESOURCE_QUOTAS, "limits", spec={"hard": {"pods": "4"}})
    ground.api.create(hard, resource=RESOURCE_QUOTAS, namespace=ground.name)
    try:
        ground.submit("wide", {"queue": small, "minAvailable": 1, "tasks": [up(5, minAvailable=1)]})
        ground.wait(PODS, lambda pods: len(_bound(pods, "wide")) == 2, what="two run")
        ground.submit("other", {"minAvailable": 2, "tasks": [up(2)]})
        ground.wait(PODS, lambda pods: len(_bound(pods, "other")) == 2, what="the other job runs")
        assert len(ground.api.list(PODS, namespace=ground.name)) == 4

        ground.api.delete(JOBS, "other", namespace=ground.name)
        ground.api.patch(QUEUES, small, {"spec": {"capability": {"cpu": "40m"}}})
        ground.wait(PODS, lambda pods: len(_bound(pods, "wide")) == 4, what="two more run")
    finally:
        ground.api.delete(RESOURCE_QUOTAS, "limits", namespace=ground.name)
        ground.api.delete_all(JOBS, namespace=ground.name)
        ground.wait_none(JOBS)
        ground.api.delete(QUEUES, small)


@pytest.mark.parametrize("end", ["PodEvicted", "PodFailed"])
def test_the_room_of_a_pod_that_is_made_anew_stays_the_job_s(ground: Ground, end: str) -> None:
    about = end.lower()
    ground.add_seat(about)
    container = {
        "name": "c",
        "image": "busybox",
        "command": ["sleep", "infinity"],
        "resources": {"requests": {"cpu": "1"}},
    }
    pod = {**on_seat(about), "containers": [container]}
    job, first, rival = f"whole-{about}", f"whole-{about}-up-0", f"rival-{about}"
    ground.submit(job, make_job(up(4, pod=pod), needs=4, policies=[policy(end, "RestartPod")]))
    ground.wait(PODS, lambda pods: len(_bound(pods, job)) == 4, what="the job fills the node")
    before = ground.api.get(PODS, first, namespace=ground.name)["metadata"]["uid"]
    waits = workloads.pod(rival, **on_seat(about))
    ground.api.create(waits, resource=PODS, namespace=ground.name)
    if end == "PodEvicted":
        ground.evict(first)
    else:
        ground.ended(first, 1)

    def is_whole_again(pods: Objects) -> bool:
        bound = _bound(pods, job)
        return len(bound) == 4 and all(pod["metadata"]["uid"] != before for pod in bound)

    ground.wait(PODS, is_whole_again, what="the pod is made anew and bound")
    assert not workloads.node_of(ground.api.get(PODS, rival, namespace=ground.name))
    ground.api.delete(PODS, rival, namespace=ground.name)
    ground.api.delete(JOBS, job, namespace=ground.name)


def _bound(pods: Objects, job: str = "near") -> Objects:
    """The pods of a job that have a node."""
    return [pod for pod in workloads.bound(pods) if pod["metadata"]["labels"].get(_JOB) == job]
