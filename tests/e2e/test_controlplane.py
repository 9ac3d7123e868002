"""The launcher of the stock control plane: it works, survives its faults and leaves nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.clusters import nodes
from tests.clusters.client import ApiClient, ApiError, Object, tls_context
from tests.clusters.cluster import Cluster
from tests.clusters.controlplane import ControlPlane
from tests.clusters.resources import (
    CONFIG_MAPS,
    NAMESPACES,
    NODES,
    PODS,
    SERVICE_ACCOUNTS,
    Resource,
)

POLICIES = "admissionregistration.k8s.io/v1"
STOCK_JOBS = Resource("batch/v1", "jobs", "Job")

pytestmark = pytest.mark.real


def _pod(name: str) -> Object:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container]},
    }


def _is_bound(pod: Object) -> bool:
    return bool(pod["spec"].get("nodeName"))


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_stock_scheduler_binds_a_pod_to_a_fake_node(
    controlplane: ControlPlane, namespace: str
) -> None:
    cluster: Cluster = controlplane
    made = nodes.create(cluster.api, 3, prefix="launcher", extra={"nvidia.com/gpu": "8"})
    cluster.api.create(_pod("launched"), namespace=namespace)
    try:
        with controlplane.start_scheduler():
            pod = cluster.api.until_one(PODS, "launched", _is_bound, namespace=namespace)
        assert pod["spec"]["nodeName"] in made
        assert cluster.api.get(NODES, made[0])["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    finally:
        nodes.delete(cluster.api, made)


def test_manifests_are_sent_without_naming_their_resource(
    controlplane: ControlPlane, namespace: str
) -> None:
    api = controlplane.api
    manifest: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "conf", "namespace": namespace},
        "data": {"a": "1"},
    }
    api.apply(manifest)
    changed = api.patch(CONFIG_MAPS, "conf", {"data": {"b": "2"}}, namespace=namespace)
    assert changed["data"] == {"a": "1", "b": "2"}
    api.replace(changed | {"data": {"c": "3"}})
    with pytest.raises(ApiError, match="Conflict"):
        api.replace(changed)
    assert api.get(CONFIG_MAPS, "conf", namespace=namespace)["data"] == {"c": "3"}
    assert api.resource_of({"apiVersion": POLICIES, "kind": "MutatingAdmissionPolicy"})


def test_only_admin_may_do_what_nobody_was_granted(controlplane: ControlPlane) -> None:
    controlplane.api.until_one(SERVICE_ACCOUNTS, "default", lambda _: True, namespace="default")
    token = controlplane.service_account_token("default", "default")
    trust = tls_context(controlplane.authority.certificate)
    with (
        ApiClient(controlplane.url, verify=trust, token=token) as stranger,
        pytest.raises(ApiError, match=r"system:serviceaccount:default:default") as refused,
    ):
        stranger.list(PODS)
    assert (refused.value.code, refused.value.reason) == (403, "Forbidden")


def test_the_controllers_furnish_a_new_namespace_and_clear_a_deleted_one(
    controlplane: ControlPlane,
) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "launcher"}}
    controlplane.api.create(space)
    account = controlplane.api.until_one(
        SERVICE_ACCOUNTS, "default", lambda _: True, namespace="launcher"
    )
    assert account["metadata"]["namespace"] == "launcher"
    controlplane.api.delete(NAMESPACES, "launcher")
    controlplane.api.until_gone(NAMESPACES, "launcher")


def test_a_daemon_set_has_a_pod_for_each_node(controlplane: ControlPlane, namespace: str) -> None:
    made = nodes.create(controlplane.api, 2, prefix="daemons")
    labels = {"app": "agent"}
    template = {"metadata": {"labels": labels}, "spec": _pod("agent")["spec"]}
    daemon_set: Object = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    daemons = controlplane.api.create(daemon_set, namespace=namespace)
    try:
        controlplane.api.until(
            PODS,
            lambda pods: len(pods) == len(made),
            namespace=namespace,
            what="a pod for each node",
        )
    finally:
        controlplane.api.delete(controlplane.api.resource_of(daemons), "agent", namespace=namespace)
        nodes.delete(controlplane.api, made)


def test_a_finished_stock_job_is_gone_after_its_time(
    controlplane: ControlPlane, namespace: str
) -> None:
    template = {"spec": _pod("short")["spec"] | {"restartPolicy": "Never"}}
    job: Object = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "short"},
        "spec": {"completions": 0, "ttlSecondsAfterFinished": 0, "template": template},
    }
    controlplane.api.create(job, namespace=namespace)
    controlplane.api.until_gone(STOCK_JOBS, "short", namespace=namespace)


def test_state_survives_the_api_server_and_no_process_survives_the_block(tmp_path: Path) -> None:
    with ControlPlane(tmp_path / "cp") as controlplane:
        controlplane.api.create(nodes.node("kept"))
        controlplane.stop_apiserver(kill=True)
        assert not controlplane.api.is_ready()
        controlplane.start_apiserver()
        assert controlplane.api.get(NODES, "kept")["metadata"]["name"] == "kept"
        assert controlplane.url in Path(controlplane.kubeconfig).read_text()
    assert len(controlplane.processes) == 3
    assert not any(_exists(process.pid) for process in controlplane.processes)
