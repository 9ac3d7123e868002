"""The controllers beside that of jobs, on the real control plane and with the rights they have.

Nobody runs jobs here: their statuses are written by the test.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.wire import kinds
from tests.clusters import nodes, workloads
from tests.clusters.client import ApiClient, ApiError, Object
from tests.clusters.controlplane import ControlPlane
from tests.clusters.pages import Pages
from tests.clusters.ports import free_port
from tests.clusters.processes import Process
from tests.clusters.pumice import COMMAND
from tests.clusters.resources import (
    COMMANDS,
    CONFIG_MAPS,
    CRON_JOBS,
    JOB_FLOWS,
    JOB_TEMPLATES,
    JOBS,
    NODES,
    POD_GROUPS,
    PODS,
    QUEUES,
    Resource,
)
from tests.clusters.rig import NAMESPACE, account
from tests.controllers.quota_names import least

pytestmark = pytest.mark.real

RACK = "small-controllers.example/rack"
HYPER_NODES = Resource("topology.volcano.sh/v1alpha1", "hypernodes", "HyperNode", namespaced=False)
REPLICA_SETS = Resource("apps/v1", "replicasets", "ReplicaSet")
TASK = {
    "name": "main",
    "replicas": 1,
    "template": {"spec": {"containers": [{"name": "c", "image": "none"}]}},
}
DISCOVERY = f"""
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      small:
      - nodeLabel: {RACK}
      - nodeLabel: kubernetes.io/hostname
"""


class Controllers(Process, Pages):
    """A `pumice controllers`."""


@pytest.fixture(scope="module")
def api(installed: ControlPlane) -> Iterator[ApiClient]:
    """A control plane with two nodes in a rack, and the controllers at work on it."""
    client = installed.api
    conf = workloads.item(
        CONFIG_MAPS, "volcano-controller-configmap", data={"volcano-controller.conf": DISCOVERY}
    )
    port = free_port()
    argv: list[str | Path] = [
        COMMAND,
        "controllers",
        f"--kubeconfig={account(installed, 'pumice-controllers')}",
        "--leader-elect=false",
        "--controllers=*,-job-controller",
        f"--healthz-address=127.0.0.1:{port}",
    ]
    client.create(conf, resource=CONFIG_MAPS, namespace=NAMESPACE)
    names = nodes.create(client, 2, prefix="small", labels={RACK: "r1"})
    try:
        with Controllers(argv, log=installed.log("small-controllers"), name="controllers") as made:
            made.url = f"http://127.0.0.1:{port}"
            made.wait_ready(lambda: made.status("/readyz") == 200, timeout_s=60)
            yield client
    finally:
        nodes.delete(client, names)
        client.delete(CONFIG_MAPS, "volcano-controller-configmap", namespace=NAMESPACE)
        client.delete_all(HYPER_NODES)


def set_phase(api: ApiClient, namespace: str, job: str, phase: str, **more: Any) -> None:
    """Play the job controller."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    state = {"phase": phase, "lastTransitionTime": now}
    api.patch(
        JOBS, job, {"status": {"state": state, **more}}, namespace=namespace, subresource="status"
    )


def until_phase(api: ApiClient, namespace: str, phase: str) -> Object:
    return api.until_one(
        JOB_FLOWS,
        "flow",
        lambda flow: flow.get("status", {}).get("state", {}).get("phase") == phase,
        namespace=namespace,
    )


def test_a_queue_is_closed_and_opened_by_commands(api: ApiClient) -> None:
    def state(wanted: str) -> None:
        api.until_one(QUEUES, "small", lambda queue: queue.get("status", {}).get("state") == wanted)

    def command(action: str) -> None:
        api.create(workloads.command(queue, action), resource=COMMANDS, namespace="default")

    queue = api.create(workloads.item(QUEUES, "small", spec={"weight": 1}))
    try:
        state("Open")
        api.until_one(QUEUES, "small", lambda queue: queue["spec"].get("parent") == "root")
        command("CloseQueue")
        state("Closed")
        command("OpenQueue")
        state("Open")
        api.until(COMMANDS, lambda items: not items, namespace="default")
    finally:
        api.patch(QUEUES, "small", {"status": {"state": "Closed"}}, subresource="status")
        api.delete(QUEUES, "small")


def test_pods_of_a_replica_set_get_one_group(api: ApiClient, namespace: str) -> None:
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {
            "schedulerName": "volcano",
            "containers": [
                {"name": "c", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
            ],
        },
    }
    made = api.create(
        workloads.item(
            REPLICA_SETS,
            "set",
            metadata={"annotations": {"scheduling.volcano.sh/group-min-member": "2"}},
            spec={"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template},
        ),
        namespace=namespace,
    )
    group = f"podgroup-{made['metadata']['uid']}"

    api.until(
        PODS,
        lambda pods: (
            [
                pod["metadata"].get("annotations", {}).get("scheduling.k8s.io/group-name")
                for pod in pods
            ]
            == [group, group]
        ),
        namespace=namespace,
    )
    found = api.get(POD_GROUPS, group, namespace=namespace)
    assert found["spec"]["minMember"] == 2
    assert found["spec"]["minResources"] == least(2, cpu="200m")

    api.patch(REPLICA_SETS, "set", {"spec": {"replicas": 0}}, namespace=namespace)
    api.until_gone(POD_GROUPS, group, namespace=namespace)


def test_a_cron_job_starts_jobs(api: ApiClient, namespace: str) -> None:
    api.create(
        workloads.item(
            CRON_JOBS,
            "cron",
            spec={"schedule": "@every 1s", "jobTemplate": {"spec": {"tasks": [TASK]}}},
        ),
        namespace=namespace,
    )

    cron_job = api.until_one(
        CRON_JOBS, "cron", lambda found: "active" in found.get("status", {}), namespace=namespace
    )
    (job, *_) = cron_job["status"]["active"]
    assert job["name"].startswith("cron-")
    api.patch(CRON_JOBS, "cron", {"spec": {"suspend": True}}, namespace=namespace)
    for active in api.list(JOBS, namespace=namespace):
        set_phase(api, namespace, active["metadata"]["name"], "Completed")
    api.until_one(
        CRON_JOBS,
        "cron",
        lambda found: not found["status"].get("active") and "lastSuccessfulTime" in found["status"],
        namespace=namespace,
    )


def test_a_flow_runs_its_steps_in_their_order(api: ApiClient, namespace: str) -> None:
    for name in ("one", "two"):
        template = workloads.item(JOB_TEMPLATES, name, spec={"tasks": [TASK]})
        api.create(template, namespace=namespace)
    patch = {"jobSpec": {"tasks": [{"name": "main", "replicas": 3}]}}
    flows = [{"name": "one"}, {"name": "two", "dependsOn": {"targets": ["one"]}, "patch": patch}]
    api.create(workloads.item(JOB_FLOWS, "flow", spec={"flows": flows}), namespace=namespace)

    api.until_one(JOBS, "flow-one", bool, namespace=namespace)
    set_phase(api, namespace, "flow-one", "Running")
    until_phase(api, namespace, "Running")
    set_phase(api, namespace, "flow-one", "Completed")
    second = api.until_one(JOBS, "flow-two", bool, namespace=namespace)
    assert second["spec"]["tasks"][0]["replicas"] == 3
    set_phase(api, namespace, "flow-two", "Completed")
    flow = until_phase(api, namespace, "Succeed")
    assert flow["status"]["completedJobs"] == ["flow-one", "flow-two"]
    api.until_one(
        JOB_TEMPLATES,
        "two",
        lambda found: found.get("status", {}).get("jobDependsOnList") == ["flow-two"],
        namespace=namespace,
    )


def test_a_step_starts_when_a_server_of_the_step_before_answers(
    api: ApiClient, namespace: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        for name in ("server", "client"):
            template = workloads.item(JOB_TEMPLATES, name, spec={"tasks": [TASK]})
            api.create(template, namespace=namespace)
        depends = {"targets": ["server"], "probe": {"tcpSocketList": [{"port": port}]}}
        flows = [{"name": "server"}, {"name": "client", "dependsOn": depends}]
        api.create(workloads.item(JOB_FLOWS, "flow", spec={"flows": flows}), namespace=namespace)
        job = api.until_one(JOBS, "flow-server", bool, namespace=namespace)
        owner = {
            "apiVersion": kinds.JOBS.api_version,
            "kind": "Job",
            "name": "flow-server",
            "uid": job["metadata"]["uid"],
            "controller": True,
        }
        labels = {"volcano.sh/job-name": "flow-server", "volcano.sh/task-spec": "main"}
        metadata = {"labels": labels, "ownerReferences": [owner]}
        api.create(
            workloads.item(PODS, "server", metadata=metadata, spec=TASK["template"]["spec"]),  # type: ignore[index]
            namespace=namespace,
        )
        address = {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
        api.patch(PODS, "server", {"status": address}, namespace=namespace, subresource="status")
        set_phase(api, namespace, "flow-server", "Running")

        api.until_one(JOBS, "flow-client", bool, namespace=namespace)


def test_a_finished_job_goes_when_its_time_is_over(api: ApiClient, namespace: str) -> None:
    job = workloads.item(JOBS, "short", spec={"ttlSecondsAfterFinished": 1, "tasks": [TASK]})
    api.create(job, namespace=namespace)
    set_phase(api, namespace, "short", "Completed")

    # In the foreground: what it owns goes first, once the garbage collector has seen the kind.
    api.until(
        JOBS,
        lambda jobs: all(job["metadata"].get("deletionTimestamp") for job in jobs),
        namespace=namespace,
    )


def test_hyper_nodes_are_discovered_and_counted(api: ApiClient) -> None:
    def is_counted(items: list[Object], count: int) -> bool:
        return [each.get("status", {}).get("nodeCount") for each in items] == [count]

    ours = "volcano.sh/network-topology-source=label"
    api.until(HYPER_NODES, lambda items: is_counted(items, 2), label_selector=ours)
    (found,) = api.list(HYPER_NODES, label_selector=ours)
    assert found["spec"]["tierName"] == RACK
    api.patch(NODES, "small-1", {"metadata": {"labels": {RACK: None}}})
    api.until(HYPER_NODES, lambda items: is_counted(items, 1), label_selector=ours)
    bad = {"tier": 1, "members": [{"type": "Node", "selector": {}}]}
    with pytest.raises(ApiError):
        api.create(workloads.item(HYPER_NODES, "bad", spec=bad))


def test_what_is_wrong_with_hyper_nodes_is_told_on_them(api: ApiClient) -> None:
    def condition(items: list[Object], name: str, kind: str) -> str:
        status = next(item for item in items if item["metadata"]["name"] == name).get("status", {})
        found = [each for each in status.get("conditions", ()) if each["type"] == kind]
        return found[0]["message"] if found else ""

    for name, members in {"left": ("small-0", "gone"), "right": ("small-0",)}.items():
        made = workloads.hyper_node(name, 7, "Node", members)
        api.create(made, resource=HYPER_NODES)
    try:
        api.until(
            HYPER_NODES,
            lambda items: (
                condition(items, "left", "MembersResolved") == "there is no Node gone"
                and condition(items, "left", "TreeConsistent") == "it has nodes of right too"
                and condition(items, "right", "TreeConsistent") == "it has nodes of left too"
            ),
        )
    finally:
        for name in ("left", "right"):
            api.delete(HYPER_NODES, name)
