"""What tests of admission ask the real API server, and the process that they ask about."""

from __future__ import annotations

import copy
import functools
import json
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests.clusters import installation, pumice
from tests.clusters.client import ApiClient, ApiError, Object, tls_context
from tests.clusters.controlplane import ControlPlane
from tests.clusters.ports import free_port
from tests.clusters.processes import Process, wait_until
from tests.clusters.resources import QUEUES, Resource
from tests.webhooks import (
    test_job_following,
    test_job_rules,
    test_queues,
    test_schema_words,
)

NAMESPACE = "pumice-system"
MUTATING = Resource(
    "admissionregistration.k8s.io/v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING = Resource(
    "admissionregistration.k8s.io/v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
CONFIGURATIONS = (MUTATING, VALIDATING)
STATES = {"closed": "Closed", "closing": "Closing", "full": "Open"}


class Webhooks(Process):
    """A `pumice webhooks`; `url` is what it is registered with."""

    url: str


def start(controlplane: ControlPlane, *flags: str, trust: Path, name: str = "webhooks") -> Webhooks:
    """Start one with the rights of its service account; it is ready and registered."""
    port = free_port()
    url = f"https://127.0.0.1:{port}"
    account = controlplane.kubeconfig_for_service_account(NAMESPACE, "pumice-webhooks")
    argv: list[str | Path] = [
        pumice.COMMAND,
        "webhooks",
        f"--kubeconfig={account}",
        "--bind-address=127.0.0.1",
        f"--port={port}",
        f"--public-url={url}",
        *flags,
    ]
    started = Webhooks(argv, log=controlplane.log(name), name=name)
    started.url = url
    started.wait_ready(lambda: registered_url(controlplane.api) == url, timeout_s=40)
    if trust.exists():
        started.wait_ready(lambda: answers(url, trust), timeout_s=20)
    return started


def registered_url(api: ApiClient) -> str:
    """Where the API server calls, once both configurations say so."""
    found = [api.find(resource, "pumice-webhooks") for resource in CONFIGURATIONS]
    urls = {
        each["webhooks"][0]["clientConfig"]["url"].rsplit("/", 2)[0]
        for each in found
        if each is not None
    }
    return urls.pop() if None not in found and len(urls) == 1 else ""


def answers(url: str, trust: Path) -> bool:
    try:
        answer = httpx2.get(f"{url}/readyz", verify=tls_context(trust), timeout=5, trust_env=False)
    except httpx2.TransportError:
        return False
    return answer.status_code == 200


def with_key_pair(controlplane: ControlPlane) -> tuple[str, ...]:
    """Flags that name a certificate of the cluster's authority."""
    pair = controlplane.authority.server("webhooks")
    return (
        f"--tls-cert-file={pair.certificate}",
        f"--tls-private-key-file={pair.key}",
        f"--ca-cert-file={controlplane.authority.certificate}",
    )


def dry_run(api: ApiClient, item: Object, *, method: str = "POST") -> Object:
    """The object as it would be stored; raises ApiError."""
    resource = api.resource_of(item)
    name = "" if method == "POST" else item["metadata"]["name"]
    path = resource.path(name, namespace=item["metadata"].get("namespace"))
    stored: Object = api.request(method, path, body=item, params={"dryRun": "All"})
    return stored


def refusal(api: ApiClient, item: Object, *, method: str = "POST") -> str:
    """Why it would not be stored; empty: it would."""
    try:
        dry_run(api, item, method=method)
    except ApiError as error:
        if error.code in {403, 422}:
            return str(error)
        raise
    return ""


def assert_both_words(api: ApiClient) -> None:
    """What the schema refuses too is refused in our words and in the API server's."""
    told = {name: refusal(api, given) for name, (given, *_) in test_schema_words.BEYOND.items()}
    wrong = {
        name: told[name]
        for name, (_, ours, theirs) in test_schema_words.BEYOND.items()
        if ours.removesuffix(";") not in told[name] or theirs not in told[name]
    }
    assert wrong == {}, wrong


def assert_sizes_follow(api: ApiClient) -> None:
    """Minima that were filled in follow the size of a job, and those of the user stay."""
    resized, minima = test_job_following.resized, test_job_following.minima
    for name, (given, size, expected) in test_job_following.FOLLOWING.items():
        with _job(api, given) as made:
            for replicas in (resized(9, 9), resized(*size)):
                replicas(made)
                made = api.replace(made)
            assert minima(made) == expected, name
    for name, (given, message) in test_job_following.STAYING.items():
        with _job(api, given) as made:
            resized(1)(made)
            assert message in refusal(api, made, method="PUT"), name


@contextmanager
def _job(api: ApiClient, given: Object) -> Iterator[Object]:
    resource = api.resource_of(given)
    try:
        yield api.create(given)
    finally:
        api.delete(resource, given["metadata"]["name"], namespace="default")


def says(message: str, expected: str) -> bool:
    """Whether it is refused in these words, or by the schema, which comes before all others."""
    return expected.strip().removesuffix(";") in message or message.startswith("422 Invalid")


def deletion(api: ApiClient, name: str) -> str:
    """Why a queue would not be deleted; empty: it would."""
    try:
        api.request("DELETE", QUEUES.path(name), params={"dryRun": "All"})
    except ApiError as error:
        return str(error)
    return ""


def kubectl(cluster: ControlPlane, item: Object) -> subprocess.CompletedProcess[str]:
    """`kubectl create` as a dry run."""
    return subprocess.run(
        ["kubectl", "create", "--dry-run=server", "--output=json", "--filename=-"],
        input=json.dumps(item),
        env={
            "KUBECONFIG": cluster.kubeconfig,
            "HOME": str(cluster.folder),
            "PATH": "/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def queues_of_tables(installed: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with the queues of the tables in it."""
    api = installed.api
    tables = (test_job_rules.QUEUES, test_queues.TREE)
    wanted = {
        each["metadata"]["name"]: copy.deepcopy(each) for table in tables for each in table.queues()
    }
    made = []
    for name in sorted(wanted, key=lambda name: depth(name, wanted)):
        if api.find(QUEUES, name) is not None:
            continue
        api.create(wanted[name], resource=QUEUES)
        made.append(name)
        status = {**wanted[name]["status"], "state": STATES.get(name, "Open")}
        if name != "fresh":
            api.patch(QUEUES, name, {"status": status}, subresource="status")
    wait_until(
        lambda: "has child queues" in deletion(api, "parent"),
        timeout_s=installation.POLICY_S,
        what="the policies know the queues",
    )
    yield installed
    for resource in CONFIGURATIONS:
        api.delete(resource, "pumice-webhooks")
    for name in reversed(made):
        if name not in {"default", "root"}:
            gone = functools.partial(is_deleted, api, name)
            wait_until(gone, timeout_s=30, what=f"{name} is deleted")


def is_deleted(api: ApiClient, name: str) -> bool:
    """Delete a queue; the policies' cache may still know a child that is gone."""
    try:
        api.delete(QUEUES, name)
    except ApiError as error:
        if "child queues" not in str(error):
            raise
        return False
    return True


def depth(name: str, queues: Mapping[str, Object]) -> int:
    parent = queues[name]["spec"].get("parent") if name in queues else None
    return 0 if parent is None else 1 + depth(parent, queues)
