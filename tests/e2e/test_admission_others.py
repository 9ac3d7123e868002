"""What admission leaves alone: objects of others, status, metadata, what is on its way out.

With `pumice webhooks` in force and all policies installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.clusters.client import Object
from tests.clusters.controlplane import ControlPlane
from tests.clusters.processes import wait_until
from tests.clusters.resources import QUEUES
from tests.e2e import admission
from tests.e2e.admission import Webhooks, dry_run, kubectl, refusal, start, with_key_pair
from tests.webhooks.objects import group, job, new_queue, pod, pod_spec, task

pytestmark = pytest.mark.real

WRONG_BUDGET = {"volcano.sh/jdb-min-available": "0", "volcano.sh/jdb-max-unavailable": "x"}
OF_A_GROUP = {"scheduling.k8s.io/group-name": "g", "scheduling.volcano.sh/queue-name": "nowhere"}


@pytest.fixture(scope="module")
def cluster(installed: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with queues in it."""
    with admission.queues_of_tables(installed) as made:
        yield made


@pytest.fixture(scope="module", autouse=True)
def webhooks(cluster: ControlPlane) -> Iterator[Webhooks]:
    """A process in force that changes pods too."""
    flags = (*with_key_pair(cluster), "--gate-pods=true")
    trust = cluster.authority.certificate
    with start(cluster, *flags, trust=trust, name="webhooks-others") as running:
        wait_until(
            lambda: "validatejob.volcano.sh" in refusal(cluster.api, job(queue="nowhere")),
            timeout_s=20,
            what="the API server asks the webhooks",
        )
        yield running


def of_others(kind: str, api_version: str, **spec: Any) -> Object:
    """An object of a workload controller, with a pod template."""
    labels = {"matchLabels": {"a": "b"}}
    template = {
        "metadata": {"labels": {"a": "b"}, "annotations": WRONG_BUDGET},
        "spec": pod_spec(restartPolicy="Never" if kind == "Job" else "Always"),
    }
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "x", "namespace": "default", "annotations": dict(OF_A_GROUP)},
        "spec": {"template": template, **({} if kind == "Job" else {"selector": labels}), **spec},
    }


OTHERS: dict[str, Object] = {
    "a pod of the default scheduler": pod(
        annotations={**WRONG_BUDGET, **OF_A_GROUP}, schedulerName="default-scheduler"
    ),
    "a pod of a third scheduler": pod(annotations=WRONG_BUDGET, schedulerName="mine"),
    "a pod that names no scheduler": pod(annotations=WRONG_BUDGET, schedulerName=""),
    "a batch job": of_others("Job", "batch/v1", backoffLimit=0),
    "a deployment": of_others("Deployment", "apps/v1", replicas=2),
    "a stateful set": of_others("StatefulSet", "apps/v1", serviceName="x"),
    "a daemon set": of_others("DaemonSet", "apps/v1"),
}


def changeable(item: Object) -> tuple[Any, ...]:
    """What admission changes in a pod, here in the pod itself or in the template."""
    spec = item["spec"].get("template", item)["spec"]
    scheduler = spec.get("schedulerName") or "default-scheduler"
    return spec.get("schedulingGates"), spec.get("nodeSelector"), scheduler


@pytest.mark.parametrize("item", OTHERS.values(), ids=OTHERS)
def test_objects_of_others_are_neither_changed_nor_judged(
    cluster: ControlPlane, item: Object
) -> None:
    stored = dry_run(cluster.api, item)
    assert changeable(stored) == changeable(item)
    assert item["metadata"]["annotations"].items() <= stored["metadata"]["annotations"].items()
    done = kubectl(cluster, item)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_pod_of_ours_is_judged_and_changed(cluster: ControlPlane) -> None:
    stored = dry_run(cluster.api, pod())
    assert stored["spec"]["schedulingGates"] == [{"name": "pumice.sh/plan"}]
    assert "positive integer" in refusal(cluster.api, pod(annotations=WRONG_BUDGET))


@pytest.mark.parametrize(
    ("item", "status"),
    [
        (job(), {"state": {"phase": "Aborted"}, "minAvailable": 1}),
        (new_queue("status"), {"state": "Closing", "allocated": {"cpu": "1"}}),
    ],
    ids=["job", "queue"],
)
def test_status_is_written_past_the_rules(
    cluster: ControlPlane, item: Object, status: Object
) -> None:
    api = cluster.api
    made = api.create(item)
    resource, where = api.resource_of(item), item["metadata"]
    try:
        stored = api.patch(
            resource,
            where["name"],
            {"status": status},
            namespace=where.get("namespace"),
            subresource="status",
        )
        assert status.items() <= stored["status"].items()
        # And what has a state that only controllers set may be changed all the same.
        stored["metadata"]["labels"] = {"a": "b"}
        assert dry_run(api, stored, method="PUT")["spec"] == made["spec"]
    finally:
        api.delete(resource, where["name"], namespace=where.get("namespace"))


def test_what_is_on_its_way_out_may_lose_its_finalizers_whatever_it_holds(
    cluster: ControlPlane,
) -> None:
    api = cluster.api
    for item in (
        job(task("a"), called="held", queue="fresh"),
        new_queue("held", parent="fresh"),
        group("held", queue="child"),
    ):
        resource = api.resource_of(item)
        namespace = item["metadata"].get("namespace")
        api.create({**item, "metadata": {**item["metadata"], "finalizers": ["example.com/held"]}})
        if item["kind"] == "Job":
            api.patch(QUEUES, "fresh", {"status": {"state": "Closed"}}, subresource="status")
        try:
            api.delete(resource, "held", namespace=namespace)
        finally:
            api.patch(resource, "held", {"metadata": {"finalizers": []}}, namespace=namespace)
        assert api.find(resource, "held", namespace=namespace) is None
    api.patch(QUEUES, "fresh", {"status": {"state": "Open"}}, subresource="status")


def test_changes_of_groups_are_judged_and_those_of_volcano_get_through(
    cluster: ControlPlane,
) -> None:
    api = cluster.api
    stored = api.create(group("changed", queue="default"))
    try:
        term = {"subGroups": ["a"], "topologyTier": 1}
        wrong = {"subGroupAffinity": {"required": [term]}}
        said = refusal(
            api, {**stored, "spec": {**stored["spec"], "topologyAffinity": wrong}}, method="PUT"
        )
        assert "subGroups names a, and no entry of subGroupPolicy has that name" in said
        moved = {**stored, "spec": {**stored["spec"], "queue": "nowhere", "minMember": 2}}
        assert dry_run(api, moved, method="PUT")["spec"]["queue"] == "nowhere"
    finally:
        api.delete(api.resource_of(stored), "changed", namespace="default")


def test_a_dry_run_leaves_nothing_behind(cluster: ControlPlane) -> None:
    for item in (job(called="dry"), new_queue("dry"), group("dry", queue="default")):
        dry_run(cluster.api, item)
        resource = cluster.api.resource_of(item)
        namespace = item["metadata"].get("namespace")
        assert cluster.api.find(resource, "dry", namespace=namespace) is None


def test_jobs_of_the_system_s_namespaces_are_not_held_up_by_the_process(
    cluster: ControlPlane,
) -> None:
    item = job(queue="nowhere")
    for namespace in ("kube-system", "pumice-system"):
        item["metadata"]["namespace"] = namespace
        assert dry_run(cluster.api, item)["spec"]["queue"] == "nowhere"
