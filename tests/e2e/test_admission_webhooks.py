"""`pumice webhooks` and the policies on the real API server: messages, warnings, outages.

The tables are those of the rules' own tests; here each object goes through the API server, once
with the process and once, the process killed, with the policies alone. Everything is a dry run but
the queues that the rules ask about.
"""

from __future__ import annotations

import copy
import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.clusters import installation, pumice
from tests.clusters.client import ApiClient, ApiError, Object, tls_context
from tests.clusters.controlplane import ControlPlane
from tests.clusters.ports import free_port
from tests.clusters.processes import Process, wait_until
from tests.clusters.resources import QUEUES, Resource
from tests.webhooks import test_job_rules, test_job_updates, test_queues
from tests.webhooks.objects import asking, group, job, new_queue, pod, task

pytestmark = pytest.mark.real

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
POLICY = installation.ROOT / "manifests" / "policy"
SECRETS = Resource("v1", "secrets", "Secret")

STATES = {"closed": "Closed", "closing": "Closing", "full": "Open"}
ONLY_THE_WEBHOOK_KNOWS = {
    "a claim's name that is none",
    "no queue of that name",
    "a closed queue",
    "a closing queue",
    "a queue with queues below",
    "tasks that wait for each other",
    "a flag that a plugin does not have",
    "parts of a core",
    "blanks around the image",
    "a container twice",
    "a container's name that is none",
    "an unknown restart policy",
    "a negative grace period",
    "a request above its limit",
    "an unknown pull policy",
    "a variable without a name",
    "a variable's name that is none",
    "a port out of range",
    "an unknown protocol",
    "a mount of no volume",
    "a volume mounted nowhere",
    "two mounts at one place",
}
ONLY_THE_WEBHOOK_KNOWS_OF_QUEUES = {
    "too deep",
    "no such parent",
    "a parent with pods",
    "capability above an ancestor's",
    "guarantees above the parent's",
    "deserved above the parent's",
}
NEVER_SENT = {"a state that only a controller sets"}
"""The status of a new object is dropped before it is judged."""


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


def says(message: str, expected: str) -> bool:
    """Whether it is refused in these words, or by the schema, which comes before all others."""
    return expected.strip().removesuffix(";") in message or message.startswith("422 Invalid")


@pytest.fixture(scope="module")
def cluster(installed: ControlPlane) -> Iterator[ControlPlane]:
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
            api.delete(QUEUES, name)


def depth(name: str, queues: Mapping[str, Object]) -> int:
    parent = queues[name]["spec"].get("parent") if name in queues else None
    return 0 if parent is None else 1 + depth(parent, queues)


@pytest.fixture(scope="module")
def webhooks(cluster: ControlPlane) -> Iterator[Webhooks]:
    """A process on given certificates, in force."""
    flags = with_key_pair(cluster)
    with start(cluster, *flags, trust=cluster.authority.certificate) as running:
        wait_until(
            lambda: "validatejob.volcano.sh" in refusal(cluster.api, job(queue="nowhere")),
            timeout_s=20,
            what="the API server asks the webhooks",
        )
        yield running


def test_jobs_are_judged(cluster: ControlPlane, webhooks: Webhooks) -> None:
    for name, item in test_job_rules.ACCEPTED.items():
        assert refusal(cluster.api, item) == "", name
    wrong = {
        name: message
        for name, (item, expected) in test_job_rules.REFUSED.items()
        if not says(message := refusal(cluster.api, item), expected)
    }
    # A policy refuses it first, and says less.
    assert set(wrong) == {"a task that waits for none"}
    assert "directed acyclic graph(DAG);" in wrong["a task that waits for none"]


def test_changes_of_jobs_are_judged(cluster: ControlPlane, webhooks: Webhooks) -> None:
    api, stored = cluster.api, test_job_updates.stored()
    assert_changes(api, stored)


def assert_changes(api: ApiClient, stored: Object) -> None:
    """What may change of a job may, the rest may not."""
    made = api.create(stored)
    try:
        for name, change in test_job_updates.ACCEPTED.items():
            item = copy.deepcopy(made)
            change(item)
            assert refusal(api, item, method="PUT") == "", name
        for name, (change, expected) in test_job_updates.REFUSED.items():
            item = copy.deepcopy(made)
            change(item)
            assert says(refusal(api, item, method="PUT"), expected), name
    finally:
        api.delete(api.resource_of(stored), "j", namespace="default")


def test_queues_are_judged(cluster: ControlPlane, webhooks: Webhooks) -> None:
    for name, item in test_queues.ACCEPTED.items():
        assert refusal(cluster.api, item) == "", name
    for name, (item, expected) in test_queues.REFUSED.items():
        if name not in NEVER_SENT:
            assert says(refusal(cluster.api, item), expected), name


def deletion(api: ApiClient, name: str) -> str:
    """Why a queue would not be deleted; empty: it would."""
    try:
        api.request("DELETE", QUEUES.path(name), params={"dryRun": "All"})
    except ApiError as error:
        return str(error)
    return ""


def test_queues_that_are_needed_stay(cluster: ControlPlane, webhooks: Webhooks) -> None:
    assert "`default` queue can not be deleted" in deletion(cluster.api, "default")
    assert "can not be deleted because it has" in deletion(cluster.api, "parent")
    assert deletion(cluster.api, "closed") == ""
    # A queue made a moment ago is in nobody's cache yet.
    cluster.api.create(new_queue("infant", parent="fresh"), resource=QUEUES)
    try:
        assert "child queues" in deletion(cluster.api, "fresh")
    finally:
        cluster.api.delete(QUEUES, "infant")
    assert deletion(cluster.api, "fresh") == ""


def test_jobs_go_to_a_queue_made_a_moment_ago(cluster: ControlPlane, webhooks: Webhooks) -> None:
    cluster.api.create(new_queue("sudden"), resource=QUEUES)
    try:
        assert refusal(cluster.api, job(queue="sudden")) == ""
    finally:
        cluster.api.delete(QUEUES, "sudden")


def test_everything_that_is_wrong_is_in_one_answer(
    cluster: ControlPlane, webhooks: Webhooks
) -> None:
    containers = [{"name": "A", "image": " i"}, {"name": "A", "image": "i"}]
    template = {"spec": {"containers": containers, "restartPolicy": "x"}}
    message = refusal(cluster.api, job(task("a", template=template), queue="nowhere"))
    for part in (
        'containers[0].name: Invalid value: "A"',
        "containers[0].image: must not have",
        'containers[1].name: Duplicate value: "A"',
        'restartPolicy: Unsupported value: "x"',
        "spec.queue: unable to find job queue",
    ):
        assert part in message


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


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_prints_warnings_and_refusals(cluster: ControlPlane, webhooks: Webhooks) -> None:
    bare = job(task("", 2, template={"spec": asking(cpu=1)}), priorityClassName="unheard-of")
    done = kubectl(cluster, bare)
    assert done.returncode == 0, done.stderr
    assert "Warning: spec.priorityClassName: there is no PriorityClass unheard-of" in done.stderr
    assert json.loads(done.stdout)["spec"]["tasks"][0]["name"] == "default0"
    refused = kubectl(cluster, job(queue="nowhere"))
    assert refused.returncode == 1
    assert 'admission webhook "validatejob.volcano.sh" denied the request: ' in refused.stderr


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_pods_of_jobs_are_not_asked_about(cluster: ControlPlane, webhooks: Webhooks) -> None:
    alone = pod(annotations={"scheduling.volcano.sh/queue-name": "nowhere"})
    done = kubectl(cluster, alone)
    assert "there is no queue nowhere" in done.stderr
    member = copy.deepcopy(alone)
    member["metadata"]["labels"] = {"volcano.sh/job-name": "j"}
    done = kubectl(cluster, member)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_new_certificate_is_served_without_a_restart(
    cluster: ControlPlane, webhooks: Webhooks
) -> None:
    host, port = "127.0.0.1", int(webhooks.url.rpartition(":")[2])

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
    wait_until(lambda: served() == expected, timeout_s=10, what="the new certificate")
    assert "unable to find job queue" in refusal(cluster.api, job(queue="nowhere"))


def test_without_the_process_the_policies_judge_and_hold_nothing_good_up(
    cluster: ControlPlane, webhooks: Webhooks
) -> None:
    api = cluster.api
    webhooks.kill()
    for name, item in test_job_rules.ACCEPTED.items():
        assert refusal(api, item) == "", name
    passed = {
        name for name, (item, _) in test_job_rules.REFUSED.items() if refusal(api, item) == ""
    }
    assert passed == ONLY_THE_WEBHOOK_KNOWS
    for name, item in test_queues.ACCEPTED.items():
        assert refusal(api, item) == "", name
    passed = {name for name, (item, _) in test_queues.REFUSED.items() if refusal(api, item) == ""}
    assert passed == ONLY_THE_WEBHOOK_KNOWS_OF_QUEUES | NEVER_SENT
    assert "`root` queue can not be deleted" in deletion(api, "root")
    assert "has child queues" in deletion(api, "parent")
    assert deletion(api, "closed") == ""
    assert_changes(api, test_job_updates.stored())


CLOSED_GROUP = group(queue="closed")
OTHERS: dict[str, tuple[Object, str]] = {
    "a group of both tiers": (
        group(networkTopology={"highestTierAllowed": 1, "highestTierName": "a"}),
        "must not specify 'highestTierAllowed' and 'highestTierName'",
    ),
    "a budget of nothing": (
        pod(annotations={"volcano.sh/jdb-min-available": "0"}),
        "it must be a positive integer",
    ),
    "a budget of more than all": (
        pod(annotations={"volcano.sh/jdb-max-unavailable": "100%"}),
        "it must be a valid percentage which between 1% ~ 99%",
    ),
    "two budgets": (
        pod(
            annotations={
                "volcano.sh/jdb-min-available": "1",
                "volcano.sh/jdb-max-unavailable": "1",
            }
        ),
        "not allow configure multiple annotations <[volcano.sh/jdb-min-available",
    ),
}


def kind(api_version: str, name: str, spec: Any, *, called: str = "x") -> Object:
    metadata = {"name": called, "namespace": "default"}
    if name == "HyperNode":
        del metadata["namespace"]
    return {"apiVersion": api_version, "kind": name, "metadata": metadata, "spec": spec}


def hyper_node(pattern: str) -> Object:
    members = [{"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}]
    return kind("topology.volcano.sh/v1alpha1", "HyperNode", {"tier": 1, "members": members})


def flow(*edges: tuple[str, list[str]]) -> Object:
    flows = [{"name": name, "dependsOn": {"targets": targets}} for name, targets in edges]
    return kind("flow.volcano.sh/v1alpha1", "JobFlow", {"flows": flows})


def cron(schedule: str, called: str = "x", **more: Any) -> Object:
    spec = {"schedule": schedule, "jobTemplate": {"spec": job()["spec"]}, **more}
    return kind("batch.volcano.sh/v1alpha1", "CronJob", spec, called=called)


OTHERS |= {
    "a job of nothing": ({**job(), "spec": {}}, "No task specified in job spec"),
    "a job without a spec": (
        {key: value for key, value in job().items() if key != "spec"},
        "No task specified in job spec",
    ),
    "a pattern that is none": (hyper_node("a["), "regexp"),
    "a flow that waits for itself": (flow(("a", ["a"])), "jobflow Flow is not DAG"),
    "a flow that waits for none": (flow(("a", ["b"])), "vertex is not defined: b"),
    "a schedule that is none": (cron("x"), "schedule is not a valid cron expression"),
    "a schedule with a zone": (cron("TZ=UTC * * * * *"), "should not contain TZ or CRON_TZ"),
    "a zone that is none": (cron("* * * * *", timeZone="../a"), "unknown timeZone"),
    "the machine's zone": (cron("* * * * *", timeZone="Local"), "timeZone can't be Local"),
    "a long name": (cron("* * * * *", "c" * 53), "must be no more than 52 characters"),
}
GOOD = [
    group(queue="default"),
    pod(annotations={"volcano.sh/jdb-min-available": "50%"}),
    pod(annotations={"volcano.sh/jdb-min-available": "x"}, schedulerName="default-scheduler"),
    hyper_node("^node-[0-9]+$"),
    flow(("a", []), ("b", ["a"])),
    cron("*/5 0-12 * jan mon-fri", timeZone="Europe/Berlin"),
]


@pytest.mark.parametrize(("item", "message"), OTHERS.values(), ids=OTHERS)
def test_the_policies_alone_refuse_other_objects(
    cluster: ControlPlane, item: Object, message: str
) -> None:
    assert message in refusal(cluster.api, item)


def test_the_policies_alone_accept_other_objects(cluster: ControlPlane) -> None:
    for item in GOOD:
        assert refusal(cluster.api, item) == "", item


@contextmanager
def in_force(cluster: ControlPlane, name: str, holds: Callable[[], bool]) -> Iterator[None]:
    """Policies that are an option, from when they act until the end of the block."""
    documents = installation.apply(cluster.api, POLICY / name)
    try:
        wait_until(holds, timeout_s=installation.POLICY_S, what=f"{name} in force")
        yield
    finally:
        for document in documents:
            cluster.api.delete(cluster.api.resource_of(document), document["metadata"]["name"])


@pytest.fixture
def completing(cluster: ControlPlane) -> Iterator[None]:
    """The API server completes objects itself."""

    def is_complete() -> bool:
        try:
            name = dry_run(cluster.api, job(task("")))["spec"]["tasks"][0].get("name")
        except ApiError:
            return False
        return bool(name == "default0")

    with in_force(cluster, "complete-objects.yaml", is_complete):
        yield


@pytest.fixture
def submitting(cluster: ControlPlane) -> Iterator[None]:
    """The API server compares submissions with queues itself."""
    api = cluster.api

    def is_refused() -> bool:
        leaf, closed = refusal(api, job(queue="parent")), refusal(api, job(queue="closed"))
        return "leaf" in leaf and "`Closed`" in closed and "Closed" in refusal(api, CLOSED_GROUP)

    with in_force(cluster, "validate-submissions.yaml", is_refused):
        yield


def test_the_policies_alone_know_where_to_submit(cluster: ControlPlane, submitting: None) -> None:
    for name in ("a closed queue", "a closing queue"):
        item, expected = test_job_rules.REFUSED[name]
        assert says(refusal(cluster.api, item), expected), name
    assert "only submit job to leaf queue, queue `parent` has child queues" in refusal(
        cluster.api, job(queue="parent")
    )
    for queue in ("default", "fresh", "child"):
        assert refusal(cluster.api, job(queue=queue)) == ""
    message = refusal(cluster.api, CLOSED_GROUP)
    assert "can only submit PodGroup to queue with state `Open`, queue `closed`" in message
    assert refusal(cluster.api, group(queue="child")) == ""


def test_the_policies_alone_complete_objects(cluster: ControlPlane, completing: None) -> None:
    bare = job(task("", 3), {**task("b", 2), "minAvailable": 1}, plugins={"mpi": []})
    bare["spec"]["tasks"][1]["template"]["spec"]["hostNetwork"] = True
    bare["spec"]["tasks"][1]["name"] = "master"
    del bare["spec"]["queue"]
    spec = dry_run(cluster.api, bare)["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"]) == ("default", "volcano", 3)
    assert (spec["minAvailable"], spec["plugins"]) == (4, {"mpi": [], "svc": [], "ssh": []})
    first, second = spec["tasks"]
    assert (first["name"], first["minAvailable"], first["maxRetry"]) == ("default0", 3, 3)
    assert second["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    annotations = {"volcano.sh/hierarchy": "a", "volcano.sh/hierarchy-weights": "2"}
    shaped = new_queue()
    shaped["metadata"]["annotations"] = annotations
    stored = dry_run(cluster.api, shaped)
    assert stored["spec"]["reclaimable"] is True
    assert stored["metadata"]["annotations"] == {
        "volcano.sh/hierarchy": "root/a",
        "volcano.sh/hierarchy-weights": "1/2",
    }


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
        wait_until(lambda: "refused" in notes(it.url, cluster), timeout_s=10, what="it is told")
        assert kind() == "first"
        conf.write_text(RESOURCE_GROUPS % "second")
        wait_until(lambda: kind() == "second", timeout_s=10, what="the new file")
        assert "refused" not in notes(it.url, cluster)


def notes(url: str, cluster: ControlPlane) -> str:
    trust = tls_context(cluster.authority.certificate)
    return httpx2.get(f"{url}/readyz", verify=trust, timeout=5, trust_env=False).text


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


def accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
