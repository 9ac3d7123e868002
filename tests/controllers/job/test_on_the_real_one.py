"""Jobs on the real control plane, with a real kube-controller-manager beside our controllers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from app.controllers.job.members import pinned_node
from tests.clusters import workloads
from tests.clusters.client import Objects
from tests.clusters.processes import wait_until
from tests.clusters.resources import (
    CLAIMS,
    COMMANDS,
    CONFIG_MAPS,
    JOBS,
    POD_GROUPS,
    PODS,
    RESOURCE_QUOTAS,
    SECRETS,
    SERVICES,
    Resource,
)
from tests.clusters.rig import Rig
from tests.controllers.job import stand
from tests.controllers.job.stand import Stand, phase_of
from tests.wire.deep import nested

pytestmark = pytest.mark.real

REPLICA_SETS = Resource("apps/v1", "replicasets", "ReplicaSet")


@pytest.fixture
def jobs(rig: Rig) -> Iterator[Stand]:
    """A namespace with nodes for jobs."""
    with stand.opened(rig) as made:
        yield made


def _spec(command: str, *, replicas: int = 3, **more: Any) -> dict[str, Any]:
    container = {
        "name": "c",
        "image": "busybox",
        "command": ["sh", "-c", command],
        "resources": {"requests": {"cpu": "50m"}},
    }
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
    }
    task = {"name": "w", "replicas": replicas, "template": {"spec": pod}}
    return {"minAvailable": replicas, "tasks": [task], **more}


def _running(count: int) -> Any:
    def reached(pods: Objects) -> bool:
        phases = [pod["status"].get("phase") for pod in pods]
        return phases == ["Running"] * count

    return reached


def _names(items: Objects) -> list[str]:
    return sorted(item["metadata"]["name"] for item in items)


def test_fields_that_nobody_knows_keep_no_job_from_running(jobs: Stand) -> None:
    spec = _spec("exit 0", replicas=1)
    spec["tasks"][0]["template"]["spec"]["unknown"] = nested(500)
    jobs.submit("deep", spec)
    jobs.wait_phase("Completed", "deep")


def test_jobs_run_to_their_end_whenever_the_controllers_are_killed(jobs: Stand) -> None:
    names = [f"job{number}" for number in range(6)]
    policies = [{"event": "PodEvicted", "action": "RestartJob"}]
    for name in names:
        spec = _spec("sleep 2", plugins={"svc": [], "ssh": []}, policies=policies)
        jobs.submit(name, spec)
    for resource in (POD_GROUPS, PODS):
        jobs.api.until(resource, bool, namespace=jobs.name, timeout_s=60)
        jobs.kill_controllers()
        jobs.start_controllers()
    jobs.wait_phase("Completed", *names)
    for job in jobs.all(JOBS):
        status = job["status"]
        assert {key: value for key, value in status.items() if isinstance(value, int)} == {
            "minAvailable": 3,
            "succeeded": 3,
        }
        assert [entry["status"] for entry in status["conditions"]][-1] == "Completed"
    assert _names(jobs.all(PODS)) == sorted(f"{name}-w-{i}" for name in names for i in range(3))
    jobs.wait_none(POD_GROUPS, SERVICES, SECRETS)
    assert _names(jobs.all(CONFIG_MAPS)) == ["kube-root-ca.crt"]


def test_pods_are_made_for_their_slots(jobs: Stand) -> None:
    """But for a job of which the extender hears later than of its PodGroup, by chance."""
    made_for_slots = []
    for number in range(3):
        name = f"job-{number}"
        jobs.submit(name, _spec("sleep 1000"))
        jobs.wait_pods(_running(3 * (number + 1)), what="its pods run")
        pods = [pod for pod in jobs.all(PODS) if pod["metadata"]["name"].startswith(name)]
        assert not any("schedulingGates" in pod["spec"] for pod in pods)
        slots = ["pumice.sh/plan-generation" in pod["metadata"]["annotations"] for pod in pods]
        made_for_slots.append(all(slots))
    assert any(made_for_slots)


def test_a_pod_whose_room_others_take_is_made_anew_and_may_go_anywhere(jobs: Stand) -> None:
    """The first two wait at the barrier for the third, whose name somebody else has."""
    in_the_way = workloads.pod("job-w-2", scheduler="nobody")
    jobs.api.create(in_the_way, resource=PODS, namespace=jobs.name)
    jobs.submit("job", _spec("sleep 1000"))
    wait_until(lambda: _held(jobs) == 2, timeout_s=60, what="two held")
    first = jobs.api.get(PODS, "job-w-0", namespace=jobs.name)
    node = pinned_node(first["spec"])
    others = workloads.pod("others", scheduler="nobody", cpu="4", nodeName=node)
    jobs.api.create(others, resource=PODS, namespace=jobs.name)
    wait_until(lambda: _held(jobs) == 2 and node not in _pins(jobs), timeout_s=60, what="moved")
    jobs.api.delete(PODS, "job-w-2", namespace=jobs.name)
    jobs.wait_phase("Running")
    again = jobs.api.get(PODS, "job-w-0", namespace=jobs.name)
    assert "pumice.sh/second-try" in again["metadata"]["annotations"]
    assert not pinned_node(again["spec"])
    assert workloads.node_of(again) not in {"", node}
    jobs.api.delete(PODS, "others", namespace=jobs.name)


def _held(jobs: Stand) -> int:
    """How many pods wait at the barrier."""
    gangs = jobs.rig.extender.get("/debug/gangs")
    return sum(gang["heldBinds"] for gang in gangs.values())


def _pins(jobs: Stand) -> set[str]:
    """The nodes that pods are pinned to."""
    return {pinned_node(pod["spec"]) for pod in jobs.all(PODS)}


def test_a_job_is_suspended_resumed_and_deleted_with_all_it_made(jobs: Stand) -> None:
    jobs.submit("job", _spec("sleep 1000", plugins={"svc": [], "env": []}))
    jobs.wait_phase("Running")
    jobs.command("job", "AbortJob")
    jobs.wait_phase("Aborted")
    jobs.wait_none(PODS, POD_GROUPS, SERVICES)
    jobs.command("job", "ResumeJob")
    jobs.wait_phase("Running")
    assert jobs.job("job")["status"]["retryCount"] == 1
    jobs.wait_none(COMMANDS)
    jobs.delete_whole("job")
    jobs.wait_none(JOBS, PODS, POD_GROUPS, SERVICES)


def test_an_evicted_pod_restarts_its_job_and_a_failed_one_ends_it(jobs: Stand) -> None:
    policies = [
        {"event": "PodEvicted", "action": "RestartJob"},
        {"event": "PodFailed", "action": "TerminateJob"},
    ]
    jobs.submit("job", _spec("sleep 1000", policies=policies))
    jobs.wait_phase("Running")
    before = {pod["metadata"]["uid"] for pod in jobs.all(PODS)}
    jobs.api.delete(PODS, "job-w-1", namespace=jobs.name)
    jobs.wait_pods(
        lambda pods: _running(3)(pods) and not before & {pod["metadata"]["uid"] for pod in pods},
        what="three others run",
    )
    jobs.wait_phase("Running")
    status = jobs.job("job")["status"]
    assert (status["version"], status["retryCount"]) == (1, 1)
    jobs.submit("short", _spec("exit 3", policies=policies))
    jobs.wait_phase("Terminated", "short")
    assert phase_of(jobs.job("job")) == "Running"


def test_pods_whose_nodes_have_gone_are_made_anew_for_others(jobs: Stand) -> None:
    jobs.rig.scheduler.pause()
    try:
        jobs.submit("job", _spec("sleep 1000"))
        jobs.wait_pods(lambda pods: len(pods) == 3, what="made")
        before = {pod["metadata"]["uid"] for pod in jobs.all(PODS)}
        jobs.replace_nodes()
    finally:
        jobs.rig.scheduler.resume()
    jobs.wait_phase("Running")
    assert not before & {pod["metadata"]["uid"] for pod in jobs.all(PODS)}
    status = jobs.job("job")["status"]
    assert "retryCount" not in status
    assert [entry["status"] for entry in status["conditions"]] == ["Pending", "Running"]


def test_a_claim_is_made_named_in_the_spec_and_goes_with_the_job(jobs: Stand) -> None:
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    volumes = [{"mountPath": "/data", "volumeClaim": claim}]
    jobs.submit("job", _spec("sleep 1000", volumes=volumes))
    jobs.wait_pods(lambda pods: len(pods) == 3, what="made")
    (made,) = jobs.all(CLAIMS)
    assert jobs.job("job")["spec"]["volumes"][0]["volumeClaimName"] == made["metadata"]["name"]
    jobs.api.delete(JOBS, "job", namespace=jobs.name)
    jobs.wait_none(JOBS, PODS, POD_GROUPS)
    jobs.let_go_claims()
    jobs.wait_none(CLAIMS)


def test_a_job_that_is_refused_too_often_is_ended(jobs: Stand) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "no-services"},
        "spec": {"hard": {"count/services": "0"}},
    }
    jobs.api.create(quota, resource=RESOURCE_QUOTAS, namespace=jobs.name)
    jobs.kill_controllers()
    jobs.start_controllers("--max-requeue-num=2")
    jobs.submit("refused", _spec("sleep 600", plugins={"svc": []}))
    jobs.wait_phase("Terminated", "refused")
    told = jobs.told("refused")
    assert "Job failed on action SyncJob for retry limit reached" in told


@pytest.mark.parametrize("inherits", [True, False])
def test_annotations_of_owners_are_inherited_or_not(jobs: Stand, *, inherits: bool) -> None:
    said = {"scheduling.volcano.sh/group-min-member": "2", "volcano.sh/team": "blue"}
    pod = _spec("sleep 600")["tasks"][0]["template"]["spec"] | {"restartPolicy": "Always"}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod | {"schedulerName": "volcano"}}
    owner = {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {"name": "set", "annotations": said},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template},
    }
    jobs.kill_controllers()
    jobs.start_controllers(f"--inherit-owner-annotations={str(inherits).lower()}")
    jobs.api.create(owner, resource=REPLICA_SETS, namespace=jobs.name)
    try:
        [group] = jobs.api.until(POD_GROUPS, bool, namespace=jobs.name)
        assert group["spec"]["minMember"] == (2 if inherits else 1)
        assert ("volcano.sh/team" in group["metadata"].get("annotations", {})) is inherits
    finally:
        jobs.api.delete(REPLICA_SETS, "set", namespace=jobs.name)


def test_a_group_asks_for_what_a_quota_counts_of_its_pods(jobs: Stand) -> None:
    """By the same names, and as much of it."""
    spec = _spec("sleep 600")
    container = spec["tasks"][0]["template"]["spec"]["containers"][0]
    container["resources"]["limits"] = {"cpu": "100m", "memory": "64Mi"}
    jobs.create(RESOURCE_QUOTAS, "all", {"hard": dict.fromkeys(_COUNTED, "10Gi")})

    def counted(quotas: Objects) -> bool:
        return bool((quotas[0].get("status") or {}).get("used"))

    jobs.api.until(RESOURCE_QUOTAS, counted, namespace=jobs.name, what="counted")
    jobs.submit("job", spec)
    jobs.wait_phase("Running", "job")
    [group], [quota] = jobs.all(POD_GROUPS), jobs.all(RESOURCE_QUOTAS)
    used = quota["status"]["used"]
    assert group["spec"]["minResources"] == {name: used[name] for name in _COUNTED}


_COUNTED = [
    "count/pods",
    "pods",
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
]
