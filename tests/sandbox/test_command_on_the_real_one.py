"""`pumice sandbox --control-plane real`: the stock programs, started and ended by one command."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.sandbox.controlplane.certificates import KeyPair
from app.sandbox.controlplane.processes import wait_until
from app.wire.documents import Document
from tests.clusters.client import ApiClient, ApiError, tls_context
from tests.clusters.resources import (
    HYPER_NODES,
    JOBS,
    NODES,
    NUMA_TOPOLOGIES,
    POD_GROUPS,
    PODS,
    QUEUES,
)
from tests.sandbox.documents import cpu, pod
from tests.sandbox.started import Started, begun, runs, started

pytestmark = pytest.mark.real

REAL = "--control-plane=real"
GROUP: Document = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g"},
    "spec": {"minMember": 2, "minResources": {"cpu": "4"}},
}


@contextmanager
def api_of(sandbox: Started) -> Iterator[ApiClient]:
    folder = Path(sandbox.said("kubeconfig")).parent / "pki"
    admin = KeyPair(folder / "admin.crt", folder / "admin.key")
    with ApiClient(sandbox.said("API server"), verify=tls_context(folder / "ca.crt", admin)) as api:
        yield api


def member(name: str) -> Document:
    marks = {"annotations": {"scheduling.k8s.io/group-name": "g"}}
    return pod(name, metadata=marks, schedulerName="volcano", resources=cpu("2"))


def job(name: str, *, replicas: int, **spec: int) -> Document:
    template = {"spec": pod("t")["spec"]}
    tasks = [{"name": "t", "replicas": replicas, "template": template}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"tasks": tasks, **spec},
    }


def on_nodes(pods: list[Document]) -> bool:
    return bool(pods) and all(each["status"].get("phase") == "Running" for each in pods)


@pytest.mark.parametrize("form", ["a", "b", "c"])
def test_a_gang_and_a_plain_pod_run_in_every_form(form: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with started(
        log, REAL, "--nodes=2", "--cpu=2", "--gpus=1", "--racks=2", "--numa=2", f"--form={form}"
    ) as sandbox:
        with api_of(sandbox) as api:
            assert len(api.list(NODES)) == 2
            assert {it["spec"]["tier"] for it in api.list(HYPER_NODES)} == {1, 2}
            api.until(NUMA_TOPOLOGIES, lambda told: len(told) == 2, what="agents have told")
            api.create(GROUP, resource=POD_GROUPS, namespace="default")
            api.create(member("g-0"), resource=PODS, namespace="default")
            api.create(member("g-1"), resource=PODS, namespace="default")
            api.until(PODS, on_nodes, namespace="default", what="the gang runs", timeout_s=30)
            plain = pod("plain", resources={"limits": {"nvidia.com/gpu": "1"}})
            api.create(plain, resource=PODS, namespace="default")
            api.until(PODS, on_nodes, namespace="default", what="all run", timeout_s=30)
        programs = sandbox.children()
        assert {"etcd", "kube-apiserver", "kube-scheduler"} <= set(programs)
        sandbox.signal(signal.SIGINT)
        assert sandbox.process.wait(timeout_s=20) == 0
    assert [name for name, pid in programs.items() if runs(pid)] == []
    assert list(tmp_path.glob("pumice-sandbox-*")) == []
    assert "Traceback" not in log.read_text()


def test_jobs_are_completed_and_judged_as_when_installed(tmp_path: Path) -> None:
    with started(tmp_path / "log", REAL, "--nodes=1") as sandbox, api_of(sandbox) as api:
        created = api.create(job("good", replicas=2), resource=JOBS, namespace="default")
        assert created["spec"]["minAvailable"] == 2
        with pytest.raises(ApiError, match="should not be greater than total replicas"):
            api.create(job("bad", replicas=2, minAvailable=3), resource=JOBS, namespace="default")
        with pytest.raises(ApiError, match="`default` queue can not be deleted"):
            api.delete(QUEUES, "default")


def test_without_webhooks_nobody_judges(tmp_path: Path) -> None:
    flags = (REAL, "--nodes=1", "--webhooks=false")
    with started(tmp_path / "log", *flags) as sandbox, api_of(sandbox) as api:
        api.create(job("bad", replicas=2, minAvailable=3), resource=JOBS, namespace="default")


def test_when_it_is_killed_nothing_is_left_running(tmp_path: Path) -> None:
    with started(tmp_path / "log", REAL, "--nodes=1") as sandbox:
        programs = sandbox.children()
        sandbox.process.kill()
    wait_until(lambda: not any(map(runs, programs.values())), timeout_s=10, what="the orphans' end")


def test_a_signal_while_it_starts_ends_it_too(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with begun(log, REAL) as process:
        process.wait_ready(lambda: list(tmp_path.glob("pumice-sandbox-*/*/logs/etcd.log")) != [])
        programs = Started(process).children()
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(timeout_s=20) == 0
    assert not any(map(runs, programs.values()))
    assert list(tmp_path.glob("pumice-sandbox-*")) == []


def test_a_program_that_ends_by_itself_ends_the_sandbox_and_is_named(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with started(log, REAL, "--nodes=1") as sandbox:
        programs = sandbox.children()
        os.kill(programs["kube-scheduler"], signal.SIGKILL)
        assert sandbox.process.wait(timeout_s=20) == 1
    assert "the control plane ended: kube-scheduler" in log.read_text()
    assert "ended with -9" in log.read_text()
    assert not any(map(runs, programs.values()))


def test_programs_that_do_not_start_are_named_with_their_last_words(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager"):
        (programs / name).write_text("#!/bin/sh\necho no room; exit 3\n")
        (programs / name).chmod(0o755)
    log = tmp_path / "log"
    with begun(log, REAL, f"--control-plane-path={programs}") as process:
        assert process.wait(timeout_s=20) == 1
    assert "pumice sandbox: etcd ended with 3\nno room\n" in log.read_text()
