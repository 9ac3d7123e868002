"""``pumice all``: one process does what three do, on the real control plane."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.model.pod import QUEUE_ANNOTATION
from tests.clusters import nodes, pumice, workloads
from tests.clusters.client import Objects
from tests.clusters.controlplane import ControlPlane
from tests.clusters.pages import Pages
from tests.clusters.ports import free_port
from tests.clusters.processes import Process, ended, wait_until
from tests.clusters.resources import JOBS, NAMESPACES, POD_GROUPS, PODS, QUEUES
from tests.e2e.admission import CONFIGURATIONS, refusal, registered_url

pytestmark = pytest.mark.real

_NAMESPACE = "together"


class Together(Process, Pages):
    """A `pumice all`; `url` is its extender."""


@contextmanager
def started(plane: ControlPlane, *flags: str, health: int | None = None) -> Iterator[Together]:
    """One process with everything; ended in any case."""
    port = free_port()
    argv: list[str | Path] = [
        pumice.COMMAND,
        "all",
        f"--kubeconfig={plane.kubeconfig}",
        "--leader-elect=false",
        f"--port={port}",
        f"--healthz-address=127.0.0.1:{health or free_port()}",
        *flags,
    ]
    process = Together(argv, log=plane.log("all"), name="all")
    process.url = f"http://127.0.0.1:{port}"
    with process:
        yield process


@pytest.fixture(scope="module")
def space(installed: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with a namespace and two nodes; nothing stays registered."""
    api = installed.api
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
    made = nodes.create(api, 2, prefix=_NAMESPACE)
    yield installed
    api.delete_all(JOBS, namespace=_NAMESPACE)
    api.delete_all(PODS, namespace=_NAMESPACE)
    api.delete(NAMESPACES, _NAMESPACE)
    nodes.delete(api, made)
    for resource in CONFIGURATIONS:
        api.delete(resource, "pumice-webhooks")


def _job(*, queue: str = "default") -> dict[str, Any]:
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "50m"}}}
    task = {"name": "w", "replicas": 3, "template": {"spec": {"containers": [container]}}}
    return workloads.job("j", {"minAvailable": 3, "tasks": [task], "queue": queue}) | {
        "metadata": {"name": "j", "namespace": _NAMESPACE}
    }


def _pinned(pods: Objects) -> Sequence[bool]:
    return ["matchFields" in str(pod["spec"].get("affinity")) for pod in pods]


def test_without_webhooks_nothing_is_registered(space: ControlPlane) -> None:
    with started(space, "--webhooks=false") as process:
        process.wait_ready(lambda: process.status("/readyz") == 200, timeout_s=60)
        assert registered_url(space.api) == ""


def test_a_part_that_cannot_start_ends_all_and_says_why(space: ControlPlane) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with started(space, "--webhooks=false", health=port) as process:
            assert process.wait(timeout_s=60) == 2
            assert "Address already in use" in process.log.read_text()


@contextmanager
def judging(plane: ControlPlane) -> Iterator[Together]:
    """One process with everything, whose webhooks are in force."""
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    flags = ("--webhook-bind-address=127.0.0.1", f"--webhook-port={port}", f"--webhook-url={url}")
    with started(plane, *flags) as process:
        process.wait_ready(lambda: process.status("/readyz") == 200, timeout_s=60)
        process.wait_ready(lambda: registered_url(plane.api) == url, timeout_s=40)
        wait_until(
            lambda: "validatejob.volcano.sh" in refusal(plane.api, _job(queue="nowhere")),
            timeout_s=20,
            what="the API server asks the webhooks",
        )
        yield process


def test_a_job_is_judged_made_placed_and_bound_by_one_process(space: ControlPlane) -> None:
    with judging(space) as process:
        with pumice.start_scheduler(space, process.url + "/v1"):
            space.api.create(_job(), resource=JOBS, namespace=_NAMESPACE)
            bound = space.api.until(
                PODS,
                lambda pods: len(workloads.bound(pods)) == 3,
                namespace=_NAMESPACE,
                timeout_s=30,
                what="3 pods bound",
            )
        assert all(_pinned(bound))
        pumice.wait_no_drift(process)
        assert ended(process) == 0


@pytest.fixture
def queued(space: ControlPlane) -> Iterator[str]:
    """A namespace and the queue of the same name that it says its jobs are in."""
    api, own = space.api, f"{_NAMESPACE}-queued"
    metadata = {"name": own, "annotations": {QUEUE_ANNOTATION: own}}
    api.create(workloads.queue(own))
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    yield own
    api.delete_all(JOBS, namespace=own)
    api.delete_all(PODS, namespace=own)
    api.delete(NAMESPACES, own)
    api.patch(QUEUES, own, {"status": {"state": "Closed"}}, subresource="status")
    api.delete(QUEUES, own)


def test_a_job_that_changes_stays_in_the_queue_of_its_namespace(
    space: ControlPlane, queued: str
) -> None:
    api = space.api
    with judging(space):
        api.create(_job() | {"metadata": {"name": "j", "namespace": queued}})
        api.until(PODS, lambda pods: len(pods) == 3, namespace=queued, timeout_s=30, what="3 pods")
        api.patch(JOBS, "j", {"spec": {"minAvailable": 2}}, namespace=queued)
        [group] = api.until(
            POD_GROUPS,
            lambda groups: [group["spec"]["minMember"] for group in groups] == [2],
            namespace=queued,
            timeout_s=30,
            what="a PodGroup that is up to date",
        )
    assert group["spec"]["queue"] == queued
