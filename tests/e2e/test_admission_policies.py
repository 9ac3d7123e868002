"""The policies alone, no webhook anywhere: what they refuse, accept and complete."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.clusters import installation
from tests.clusters.client import ApiError, Object
from tests.clusters.controlplane import ControlPlane
from tests.clusters.processes import wait_until
from tests.clusters.resources import JOB_FLOWS, QUEUES
from tests.e2e import admission
from tests.e2e.admission import dry_run, kubectl, refusal, says
from tests.webhooks import test_job_rules, test_schema_words
from tests.webhooks.objects import group, job, new_queue, pod, task

pytestmark = pytest.mark.real

POLICY = installation.ROOT / "manifests" / "policy"


@pytest.fixture(scope="module")
def cluster(installed: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with the queues of the tables in it."""
    with admission.queues_of_tables(installed) as made:
        yield made


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


@pytest.mark.parametrize(
    ("least", "policy", "warned"),
    [("2", None, True), ("16", "OrderedReady", True), ("2", "Parallel", False), ("1", None, False)],
)
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_the_policies_alone_warn_of_a_stateful_set_whose_gang_cannot_come_together(
    cluster: ControlPlane, least: str, policy: str | None, *, warned: bool
) -> None:
    labels = {"app": "web"}
    spec = {
        "serviceName": "web",
        "replicas": 16,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "busybox"}]},
        },
    } | ({"podManagementPolicy": policy} if policy else {})
    item = kind("apps/v1", "StatefulSet", spec)
    item["metadata"]["annotations"] = {"scheduling.volcano.sh/group-min-member": least}
    done = kubectl(cluster, item)
    assert done.returncode == 0, done.stderr
    assert ("none of them will start; write Parallel" in done.stderr) == warned


def test_the_policies_alone_let_no_flow_be_added_to_a_job_flow_that_has_ended(
    cluster: ControlPlane,
) -> None:
    api = cluster.api
    api.create(flow(("a", [])), namespace="default")
    ended = {"status": {"state": {"phase": "Succeed"}}}
    api.patch(JOB_FLOWS, "x", ended, namespace="default", subresource="status")
    more = {"spec": flow(("a", []), ("b", []))["spec"]}
    with pytest.raises(ApiError, match=r"has ended \(Succeed\), .* to run: \[b\];"):
        api.patch(JOB_FLOWS, "x", more, namespace="default")
    api.patch(JOB_FLOWS, "x", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
    api.delete(JOB_FLOWS, "x", namespace="default")


def test_the_policies_alone_keep_what_the_root_has(cluster: ControlPlane) -> None:
    api = cluster.api
    made = api.get(QUEUES, "root")
    for spec, allowed in (
        ({"capability": {}, "guarantee": {}, "weight": 2}, True),
        ({"capability": {"cpu": 1}}, False),
        ({"deserved": {"cpu": 1}}, False),
        ({"guarantee": {"resource": {"cpu": 1}}, "deserved": {"cpu": 1}}, False),
    ):
        given = {**made, "spec": {**made["spec"], **spec}}
        told = refusal(api, given, method="PUT")
        assert ("root queue's resource attributes" in told) == (not allowed), told
        assert (told == "") == allowed


def large(count: int) -> Object:
    """A job of that many tasks that have everything the policies look at."""
    resources = {"requests": {"cpu": 1}, "limits": {"cpu": 1, "memory": "1Gi"}}
    container = {
        "image": "busybox",
        "command": ["sh", "-c"],
        "args": ["sleep 1"],
        "env": [{"name": f"V{n}", "value": "value"} for n in range(20)],
        "ports": [{"containerPort": 80}],
        "resources": resources,
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    spec = {
        "containers": [{"name": name, **container} for name in ("one", "two")],
        "volumes": [{"name": "v"}],
    }
    policies = [
        {"event": "PodFailed", "action": "RestartJob"},
        {"event": "PodEvicted", "action": "RestartTask"},
        {"exitCode": 3, "action": "AbortJob"},
    ]
    tasks = [
        task(
            f"t{n}",
            template={"spec": spec},
            policies=policies,
            topologyPolicy="restricted",
            dependsOn={"name": [f"t{n - 1}"] if n else []},
        )
        for n in range(count)
    ]
    return job(*tasks, called="large")


@pytest.mark.parametrize("count", [100, 500, 501])
def test_a_large_job_is_not_refused_for_what_judging_it_costs(
    cluster: ControlPlane, count: int
) -> None:
    api = cluster.api
    made = api.create(large(count))
    try:
        made["spec"]["tasks"][0]["replicas"] = 2
        assert refusal(api, made, method="PUT") == ""
        made["spec"]["tasks"][0]["maxRetry"] = 7
        refused = refusal(api, made, method="PUT")
        assert ("spec.tasks[0].maxRetry: job updates may not change" in refused) == (count <= 500)
    finally:
        api.delete(api.resource_of(made), "large", namespace="default")


ZEROS: dict[str, tuple[dict[str, Any], bool]] = {
    "no token": ({"automountServiceAccountToken": False}, True),
    "no grace": ({"terminationGracePeriodSeconds": 0}, True),
    "a token": ({"automountServiceAccountToken": True}, True),
    "the host's network": ({"hostNetwork": True}, True),
    "not the host's": ({"hostNetwork": False, "hostPID": False, "hostIPC": False}, False),
    "nothing special": ({"securityContext": {}}, False),
}


@pytest.mark.parametrize(("fields", "means"), ZEROS.values(), ids=ZEROS)
def test_the_policies_alone_know_which_fields_say_something_by_false_or_0(
    cluster: ControlPlane, fields: dict[str, Any], *, means: bool
) -> None:
    api = cluster.api
    bare: dict[str, Any] = {"containers": [{"name": "c", "image": "busybox"}]}
    for old, new in ((bare, {**bare, **fields}), ({**bare, **fields}, bare)):
        made = api.create(job(task("a", template={"spec": old}), called="zeros"))
        try:
            made["spec"]["tasks"][0]["template"]["spec"] = new
            refused = refusal(api, made, method="PUT")
        finally:
            api.delete(api.resource_of(made), "zeros", namespace="default")
        assert ("spec.tasks[0].template: job updates may not change" in refused) == means, refused
        assert bool(refused) == means


def test_of_very_many_complaints_the_first_are_told(cluster: ControlPlane) -> None:
    item = job(*(task(f"t{n}", minAvailable=2) for n in range(100)))
    message = refusal(cluster.api, item)
    assert "'minAvailable' is greater than 'replicas' in task: t9, job: j; and 90 more;" in message


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
        # Until it has read the schemas of all three kinds the API server answers 503.
        try:
            dry_run(cluster.api, group())
            made = dry_run(cluster.api, new_queue())
            name = dry_run(cluster.api, job(task("")))["spec"]["tasks"][0].get("name")
        except ApiError:
            return False
        return bool(name == "default0" and made["spec"].get("reclaimable"))

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
    made = dry_run(cluster.api, bare)
    spec = made["spec"]
    assert made["metadata"]["annotations"] == {"pumice.sh/filled-in": "minAvailable,tasks[0]"}
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


def test_the_schema_alone_has_both_words(cluster: ControlPlane) -> None:
    admission.assert_both_words(cluster.api)
    given, _, theirs = test_schema_words.BEYOND_A_PATTERN
    assert theirs in refusal(cluster.api, given)


def test_the_policies_alone_let_minima_follow_the_size(
    cluster: ControlPlane, completing: None
) -> None:
    admission.assert_sizes_follow(cluster.api)


def test_the_policies_alone_refuse_quantities_of_very_large_powers_at_once(
    cluster: ControlPlane,
) -> None:
    item, expected = test_job_rules.REFUSED["a quantity of a very large power"]
    told = refusal(cluster.api, item)
    assert says(told, expected)
    assert "'^([+-]?[0-9.]+)" in told
