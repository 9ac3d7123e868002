"""Fields that hold something else than they should: every answer is clear, none is a fault.

Each field of an object of each kind is put to each of some values, with `pumice webhooks` in force
and with the policies alone. What is accepted is fine; what is refused is refused by a rule or the
schema, never because a rule could not be evaluated.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.clusters.client import ApiClient, ApiError, Object
from tests.clusters.controlplane import ControlPlane
from tests.clusters.processes import wait_until
from tests.e2e import admission
from tests.e2e.admission import dry_run, refusal, start, with_key_pair
from tests.webhooks.objects import group, job, new_queue, pod, task

pytestmark = pytest.mark.real

Place = tuple[str | int, ...]

VALUES: tuple[Any, ...] = (None, -1, 1.5, "A_b c", [], [None], {"a": 1}, "9" * 400)
HIERARCHY = {"volcano.sh/hierarchy": "root/a", "volcano.sh/hierarchy-weights": "1/2"}
ONE_TIER = {"mode": "hard", "highestTierAllowed": 1}
SELECTORS: tuple[Object, ...] = (
    {"regexMatch": {"pattern": "a"}},
    {"exactMatch": {"name": "a"}},
    {"labelMatch": {"matchLabels": {"a": "b"}}},
)


def kind(api_version: str, name: str, spec: Object, **metadata: Any) -> Object:
    return {
        "apiVersion": api_version,
        "kind": name,
        "metadata": {"name": "x", **metadata},
        "spec": spec,
    }


def whole_queue() -> Object:
    queue = new_queue(
        weight=1,
        capability={"cpu": 4, "pods": 3},
        deserved={"cpu": 3},
        guarantee={"resource": {"cpu": 2}},
        parent="root",
        reclaimable=True,
    )
    queue["metadata"]["annotations"] = dict(HIERARCHY)
    return queue


def whole_job() -> Object:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sleep"],
        "env": [{"name": "A", "value": "b"}],
        "ports": [{"containerPort": 80}],
        "resources": {"requests": {"cpu": 1}, "limits": {"cpu": "1"}},
    }
    first = task(
        "a",
        4,
        minAvailable=2,
        maxRetry=1,
        topologyPolicy="none",
        template={"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}},
        dependsOn={"name": ["b"], "iteration": "any"},
        partitionPolicy={
            "totalPartitions": 2,
            "partitionSize": 2,
            "minPartitions": 1,
            "networkTopology": ONE_TIER,
        },
        policies=[{"event": "PodFailed", "action": "RestartJob", "timeout": "5m"}],
    )
    return job(
        first,
        task("b"),
        minAvailable=2,
        minSuccess=1,
        schedulerName="volcano",
        maxRetry=1,
        ttlSecondsAfterFinished=1,
        plugins={"env": [], "svc": ["--disable-network-policy=true"]},
        networkTopology=ONE_TIER,
        volumes=[{"mountPath": "/a", "volumeClaimName": "c"}],
        policies=[
            {"events": ["PodFailed"], "action": "RestartJob"},
            {"exitCode": 3, "action": "AbortJob"},
        ],
    )


WHOLE: dict[str, Object] = {
    "Job": whole_job(),
    "Queue": whole_queue(),
    "PodGroup": group(
        minMember=1,
        minTaskMember={"a": 1},
        queue="default",
        minResources={"cpu": 1},
        networkTopology=ONE_TIER,
        subGroupPolicy=[{"name": "a", "subGroupSize": 1, "networkTopology": ONE_TIER}],
    ),
    "Pod": pod(annotations={"volcano.sh/jdb-min-available": "1"}),
    "HyperNode": kind(
        "topology.volcano.sh/v1alpha1",
        "HyperNode",
        {"tier": 1, "members": [{"type": "Node", "selector": each} for each in SELECTORS]},
    ),
    "JobFlow": kind(
        "flow.volcano.sh/v1alpha1",
        "JobFlow",
        {"flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]},
        namespace="default",
    ),
    "CronJob": kind(
        "batch.volcano.sh/v1alpha1",
        "CronJob",
        {"schedule": "* * * * *", "timeZone": "UTC", "jobTemplate": {"spec": job()["spec"]}},
        namespace="default",
    ),
}


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every field below the annotations and the spec."""
    if at not in {(), ("metadata",), ("metadata", "annotations")}:
        yield at
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in keys:
        inside = value[key]
        if isinstance(inside, (dict, list)):
            yield from places(inside, (*at, key))
        elif at and at != ("metadata",):
            yield (*at, key)


def with_value(item: Object, place: Place, value: Any) -> Object:
    changed: Any = copy.deepcopy(item)
    holder = changed
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    copied: Object = changed
    return copied


@pytest.fixture(scope="module")
def cluster(installed: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with queues in it."""
    with admission.queues_of_tables(installed) as made:
        yield made


@pytest.fixture(scope="module", params=["with the webhooks", "with the policies alone"])
def judged(request: pytest.FixtureRequest, cluster: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane, judging in one way or the other."""
    if request.param == "with the policies alone":
        yield cluster
        return
    trust = cluster.authority.certificate
    with start(cluster, *with_key_pair(cluster), trust=trust, name="webhooks-garbage"):
        wait_until(
            lambda: "validatejob.volcano.sh" in refusal(cluster.api, job(queue="nowhere")),
            timeout_s=20,
            what="the API server asks the webhooks",
        )
        yield cluster
    for resource in admission.CONFIGURATIONS:
        cluster.api.delete(resource, "pumice-webhooks")


NOT_CLEAR = ("resulted in error", "failed calling webhook", "failed messageExpression")


def fault(api: ApiClient, item: Object, *, method: str = "POST") -> str:
    """What is wrong with the answer, not with the object; empty: nothing."""
    try:
        dry_run(api, item, method=method)
    except ApiError as error:
        told = str(error)
        clear = error.code in {400, 403, 422} and not any(each in told for each in NOT_CLEAR)
        return "" if clear else told
    return ""


@pytest.mark.parametrize("name", WHOLE)
def test_every_answer_is_clear(judged: ControlPlane, name: str) -> None:
    item = WHOLE[name]
    dry_run(judged.api, item)
    faults = {
        (place, str(value)): told
        for place in places(item)
        for value in VALUES
        if (told := fault(judged.api, with_value(item, place, value)))
    }
    assert faults == {}


def test_every_answer_to_a_change_of_a_job_is_clear(judged: ControlPlane) -> None:
    api, item = judged.api, WHOLE["Job"]
    made = api.create(item)
    try:
        faults = {
            (place, str(value)): told
            for place in places(item)
            for value in VALUES
            if (told := fault(api, with_value(made, place, value), method="PUT"))
        }
    finally:
        api.delete(api.resource_of(item), "j", namespace="default")
    assert faults == {}
