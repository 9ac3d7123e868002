"""The process of the webhooks: its certificates, its configuration, its end."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.clusters import pumice
from tests.clusters.client import Object, tls_context
from tests.clusters.controlplane import ControlPlane
from tests.clusters.ports import free_port
from tests.clusters.processes import wait_until
from tests.clusters.resources import QUEUES, Resource
from tests.clusters.rig import Stage
from tests.e2e.admission import (
    CONFIGURATIONS,
    NAMESPACE,
    Webhooks,
    accepts,
    deletion,
    dry_run,
    refusal,
    registered_url,
    start,
    with_key_pair,
)
from tests.webhooks.objects import job, new_queue, pod

pytestmark = pytest.mark.real

SECRETS = Resource("v1", "secrets", "Secret")


@pytest.fixture(scope="module")
def cluster(installed: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane; nothing stays registered."""
    yield installed
    for resource in CONFIGURATIONS:
        installed.api.delete(resource, "pumice-webhooks")


def test_a_new_certificate_is_served_without_a_restart(cluster: ControlPlane) -> None:
    trust = cluster.authority.certificate
    flags = with_key_pair(cluster)
    with start(cluster, *flags, trust=trust, name="webhooks-files") as process:
        wait_served_anew(cluster, process)


def wait_served_anew(cluster: ControlPlane, process: Webhooks) -> None:
    """Replace the certificate's files and wait until they are used."""
    host, port = "127.0.0.1", int(process.url.rpartition(":")[2])

    def served() -> bytes:
        context = tls_context(cluster.authority.certificate)
        with (
            socket.create_connection((host, port), timeout=5) as plain,
            context.wrap_socket(plain, server_hostname=host) as secured,
        ):
            found = secured.getpeercert(binary_form=True)
        assert found is not None
        return found

    before = served()
    renewed = cluster.authority.server("webhooks")  # writes where the last one was
    expected = ssl.PEM_cert_to_DER_cert(renewed.certificate.read_text())
    assert expected != before
    wait_until(lambda: served() == expected, timeout_s=30, what="the new certificate")
    wait_until(
        lambda: "validatejob.volcano.sh" in refusal(cluster.api, job(queue="nowhere")),
        timeout_s=20,
        what="the API server asks the webhooks",
    )


def test_certificates_are_made_kept_and_trusted(cluster: ControlPlane, tmp_path: Path) -> None:
    api = cluster.api
    with start(cluster, trust=tmp_path / "none", name="webhooks-own") as process:
        wait_until(
            lambda: "validatejob.volcano.sh" in refusal(api, job(queue="nowhere")),
            timeout_s=20,
            what="the API server trusts the certificate",
        )
        kept = api.get(SECRETS, "pumice-webhooks-certificate", namespace=NAMESPACE)
        assert set(kept["data"]) == {"ca.crt", "ca.key", "tls.crt", "tls.key"}
        # A second one serves with the same certificate, and takes over when the first ends.
        with start_beside(cluster, process) as other:
            assert process.stop() == 0
            wait_until(
                lambda: registered_url(api) == other.url,
                timeout_s=20,
                what="the other one has registered itself",
            )
            wait_until(
                lambda: "validatejob.volcano.sh" in refusal(api, job(queue="nowhere")),
                timeout_s=20,
                what="the other one answers",
            )
            again = api.get(SECRETS, "pumice-webhooks-certificate", namespace=NAMESPACE)
            assert again["data"] == kept["data"]
            assert other.stop() == 0
    api.delete(SECRETS, "pumice-webhooks-certificate", namespace=NAMESPACE)


RESOURCE_GROUPS = """
resourceGroups:
- resourceGroup: management
  object: {key: namespace, value: [default]}
  labels: {type: %s}
  tolerations: [{key: management, operator: Exists}]
"""


def test_resource_groups_of_pods_are_read_again_when_their_file_changes(
    cluster: ControlPlane, tmp_path: Path
) -> None:
    conf = tmp_path / "admission.yaml"
    conf.write_text(RESOURCE_GROUPS % "first")
    flags = (
        *with_key_pair(cluster),
        f"--admission-conf={conf}",
        "--feature-gates=SchedulingGatesQueueAdmission=true",
    )

    def stored(**annotations: str) -> Object:
        given = pod(annotations=annotations, schedulerName="default-scheduler")
        spec: Object = dry_run(cluster.api, given)["spec"]
        return spec

    def kind() -> str | None:
        found: str | None = stored().get("nodeSelector", {}).get("type")
        return found

    with start(cluster, *flags, trust=cluster.authority.certificate, name="webhooks-pods") as it:
        wait_until(lambda: kind() == "first", timeout_s=20, what="pods are changed")
        gate = "scheduling.volcano.sh/queue-allocation-gate"
        gates = stored(**{gate: "true"})["schedulingGates"]
        assert {"name": gate} in gates
        assert {"key": "management", "operator": "Exists"} in stored()["tolerations"]
        conf.write_text("resourceGroups: 1")
        wait_until(lambda: "refused" in notes(it.url, cluster), timeout_s=30, what="it is told")
        assert kind() == "first"
        conf.write_text(RESOURCE_GROUPS % "second")
        wait_until(lambda: kind() == "second", timeout_s=30, what="the new file")
        assert "refused" not in notes(it.url, cluster)


def test_options_change_what_is_refused(cluster: ControlPlane, stage: Stage) -> None:
    stage.clear()  # an extender would correct the queue's status
    api = cluster.api
    flags = (
        *with_key_pair(cluster),
        "--max-queue-depth=1",
        "--enable-queue-allocated-pods-check=true",
        "--loose-volumes=true",
        "--feature-gates=SchedulingGatesQueueAdmission=true",
    )
    roomless = job(queue="above", volumes=[{"mountPath": "/scratch"}])
    api.create(new_queue("above"), resource=QUEUES)
    try:
        with start(cluster, *flags, trust=cluster.authority.certificate, name="webhooks-options"):
            below = new_queue("below", parent="above")
            wait_until(
                lambda: "exceeds the maximum allowed depth of 1" in refusal(api, below),
                timeout_s=20,
                what="queues are judged",
            )
            # Without any file of resource groups.
            gate = "scheduling.volcano.sh/queue-allocation-gate"
            spec = dry_run(api, pod(annotations={gate: "true"}))["spec"]
            assert {"name": gate} in spec["schedulingGates"]
            full = {"status": {"allocated": {"pods": "2"}}}
            api.patch(QUEUES, "above", full, subresource="status")
            wait_until(
                lambda: "has allocated Pods: 2" in deletion(api, "above"),
                timeout_s=20,
                what="the queue is not deleted",
            )
            # The policy does not know the option: its own lines are left out by hand.
            assert "ValidatingAdmissionPolicy" in refusal(api, roomless)
    finally:
        for resource in CONFIGURATIONS:
            api.delete(resource, "pumice-webhooks")
        api.delete(QUEUES, "above")


def notes(url: str, cluster: ControlPlane) -> str:
    trust = tls_context(cluster.authority.certificate)
    return httpx2.get(f"{url}/readyz", verify=trust, timeout=5, trust_env=False).text


def test_a_request_under_way_is_answered_before_the_end(cluster: ControlPlane) -> None:
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "operation": "CREATE",
            "resource": {"group": "batch.volcano.sh", "version": "v1alpha1", "resource": "jobs"},
            "object": job(),
        },
    }
    body = json.dumps(review).encode()
    head = (
        "POST /jobs/validate HTTP/1.1\r\nHost: webhooks\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    )
    trust = cluster.authority.certificate
    flags = with_key_pair(cluster)
    with start(cluster, *flags, trust=trust, name="webhooks-draining") as process:
        address = ("127.0.0.1", int(process.url.rpartition(":")[2]))
        with (
            socket.create_connection(address, timeout=10) as plain,
            tls_context(trust).wrap_socket(plain, server_hostname="127.0.0.1") as asking,
        ):
            asking.sendall(head.encode())
            assert asking.recv(1000).startswith(b"HTTP/1.1 100")
            process.terminate()
            wait_until(lambda: not accepts(address[1]), timeout_s=5, what="nobody new gets in")
            asking.sendall(body)
            answer = asking.recv(10_000)
        assert answer.startswith(b"HTTP/1.1 200")
        assert process.wait(timeout_s=10) == 0


def test_a_certificate_that_is_none_ends_it_with_a_line(cluster: ControlPlane) -> None:
    certificate, *_ = with_key_pair(cluster)
    done = subprocess.run(
        [
            pumice.COMMAND,
            "webhooks",
            f"--kubeconfig={cluster.kubeconfig}",
            "--bind-address=127.0.0.1",
            "--port=0",
            "--register-webhooks=false",
            certificate,
            f"--tls-private-key-file={certificate.partition('=')[2]}",
        ],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert "pumice: the certificate or its key cannot be used: " in done.stderr
    assert "Traceback" not in done.stderr


def start_beside(cluster: ControlPlane, first: Webhooks) -> Webhooks:
    """Another process for the same Secret; it is not the one that registers yet."""
    port = free_port()
    argv = [
        part.replace(first.url.rpartition(":")[2], str(port)) if "127.0.0.1" in part else part
        for part in first.argv
    ]
    argv = [f"--port={port}" if part.startswith("--port=") else part for part in argv]
    other = Webhooks(argv, log=cluster.log("webhooks-other"), name="webhooks-other")
    other.url = f"https://127.0.0.1:{port}"
    wait_until(lambda: accepts(port), timeout_s=30, what="the other one listens")
    return other
