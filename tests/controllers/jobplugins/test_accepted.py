"""The stock API server takes what plugins make, and shows it so that nothing is left to do."""

from __future__ import annotations

import pytest

from app.jobplugins import catalogue
from app.jobplugins.plugin import PodOfJob
from app.jobplugins.rules.catalogue import KNOWN
from app.jobplugins.wanted import Create, Wanted, Writing
from app.wire.unstructured import Object, uid
from tests.clusters.client import ApiClient
from tests.clusters.controlplane import ControlPlane
from tests.clusters.resources import JOBS, PODS
from tests.controllers.jobplugins.jobs import bare_pod, container, job, task

pytestmark = pytest.mark.real

ALL = {
    **{name: [] for name in KNOWN},
    "pytorch": ["--wait-master-enabled"],
    "ray": ["--head=master", "--headContainer=main", "--workerContainer=main"],
}


def stored(api: ApiClient, wanted: Wanted) -> Object | None:
    return api.find(api.resource_of(wanted.item), wanted.key.name, namespace=wanted.key.namespace)


def bring_about(api: ApiClient, wanted: Wanted) -> None:
    """Create or change, as a controller does."""
    match wanted.step(stored(api, wanted)):
        case Create(item):
            api.create(item)
        case Writing(patch):
            api.patch(
                api.resource_of(wanted.item),
                wanted.key.name,
                patch,
                namespace=wanted.key.namespace,
            )
        case other:
            assert other is None


def submitted(api: ApiClient, namespace: str, name: str, *tasks: Object) -> Object:
    made = job(ALL, *tasks, name=name)
    made["metadata"] = {"name": name, "namespace": namespace}
    return api.create(made)


def pods_of(given: Object) -> list[Object]:
    plugins = catalogue.parse(given)
    return [
        plugins.pod(bare_pod(given, one["name"], index), PodOfJob(one["name"], index))
        for one in given["spec"]["tasks"]
        for index in range(one["replicas"])
    ]


NETWORK = [container(), container("side")]


@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        ("job", [task("master"), task("worker", 2), task("a-b")]),
        ("job.v1", [task("master"), task("worker")]),
        ("3d", [task("master"), task("worker")]),
        ("j" * 54, [task("master"), task("worker")]),
        ("host", [task("master", hostNetwork=True, containers=NETWORK), task("worker")]),
        ("named", [task("master", hostname="h", subdomain="net"), task("worker")]),
        ("prepared", [task("master", initContainers=[container("first")]), task("worker")]),
    ],
    ids=["plain", "dotted", "digit", "long", "host network", "named", "init containers"],
)
def test_objects_and_pods_of_all_plugins_are_accepted(
    installed: ControlPlane, namespace: str, name: str, tasks: list[Object]
) -> None:
    api = installed.api
    given = submitted(api, namespace, name, *tasks)
    for wanted in catalogue.parse(given).objects():
        bring_about(api, wanted)
        found = stored(api, wanted)
        assert found is not None
        assert wanted.step(found) is None
        assert wanted.is_ours(found)
    for pod in pods_of(given):
        made = api.create(pod)
        assert made["spec"]["hostname"] == pod["spec"]["hostname"]


def test_objects_follow_the_replicas_and_keys_stay(installed: ControlPlane, namespace: str) -> None:
    api = installed.api
    given = submitted(api, namespace, "job", task("master"), task("worker", 1))
    objects = catalogue.parse(given).objects()
    for wanted in objects:
        bring_about(api, wanted)
    before = {(one.resource, one.key): stored(api, one) for one in objects}
    grown = {**given, "spec": {**given["spec"], "tasks": [task("master"), task("worker", 2)]}}
    changed = []
    for wanted in catalogue.parse(grown).objects():
        bring_about(api, wanted)
        found, old = stored(api, wanted), before[wanted.resource, wanted.key]
        assert found is not None
        assert old is not None
        assert wanted.step(found) is None
        assert uid(found) == uid(old)
        if found.get("data") != old.get("data"):
            changed.append(wanted.key.name)
            assert found["data"].get("id_rsa") == old["data"].get("id_rsa")
    assert changed == ["job-svc", "job-ssh"]


def test_what_an_earlier_job_left_behind_makes_way(installed: ControlPlane, namespace: str) -> None:
    api = installed.api
    first = submitted(api, namespace, "job", task("master"), task("worker"))
    for wanted in catalogue.parse(first).objects():
        bring_about(api, wanted)
    second = {**first, "metadata": {**first["metadata"], "uid": "another"}}
    for wanted in catalogue.parse(second).objects():
        found = stored(api, wanted)
        assert found is not None
        assert getattr(wanted.step(found), "uid", "") == uid(found)
        assert not wanted.is_ours(found)
    assert api.find(JOBS, "job", namespace=namespace) is not None
    assert api.list(PODS, namespace=namespace) == []
