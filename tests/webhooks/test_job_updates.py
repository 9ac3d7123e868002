"""What of a job may change."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from app.wire.unstructured import Object
from tests.webhooks.objects import ask, job, patched, pod_spec, task

Change = Callable[[Any], object]
OTHER = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` "
    "and `PriorityClassName`"
)


def stored() -> Object:
    return job(
        task("a", 2, minAvailable=1),
        task("b", 4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2}),
        minAvailable=3,
        volumes=[
            {"mountPath": "/made", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}},
            {"mountPath": "/given", "volumeClaimName": "claim"},
        ],
    )


def changed(change: Change) -> Object:
    new = copy.deepcopy(stored())
    change(new)
    return new


ACCEPTED: dict[str, Change] = {
    "nothing": lambda _job: None,
    "labels": lambda job: job["metadata"].update(labels={"a": "b"}),
    "replicas": lambda job: job["spec"]["tasks"][0].update(replicas=5),
    "the minimum of a task": lambda job: job["spec"]["tasks"][0].update(minAvailable=2),
    "no replicas": lambda job: (
        job["spec"]["tasks"][0].update(replicas=0, minAvailable=0),
        job["spec"].update(minAvailable=0),
    ),
    "the minimum": lambda job: job["spec"].update(minAvailable=6),
    "the priority class": lambda job: job["spec"].update(priorityClassName="high"),
    "a claim that was made": lambda job: job["spec"]["volumes"][0].update(volumeClaimName="x"),
}


def named(claim: str) -> Object:
    """As it is stored once the controller has named the claim that it made."""
    given = stored()
    given["spec"]["volumes"][0]["volumeClaimName"] = claim
    return given


def test_a_manifest_applied_again_does_not_name_the_claim_that_was_made() -> None:
    assert ask("/jobs/validate", stored(), old=named("j-pvc-1")).message == ""


def test_a_claim_that_was_made_stays() -> None:
    assert OTHER in ask("/jobs/validate", named("other"), old=named("j-pvc-1")).message


def sparse() -> Object:
    """A job whose manifest leaves to admission what it may, as kubectl sends it another time."""
    pod = {**pod_spec(), "hostNetwork": True}
    return job({"replicas": 2, "template": {"spec": pod}}, task("named"))


def applied_again(made: Any, manifest: Any) -> Object:
    """What kubectl makes of both: fields that are not in the manifest stay, lists are replaced."""
    item: Object = {**made, "spec": {**made["spec"], **manifest["spec"]}}
    return item


def as_stored(manifest: Object) -> Any:
    return patched(copy.deepcopy(manifest), ask("/jobs/mutate", manifest))


def test_a_manifest_applied_again_changes_nothing() -> None:
    made = as_stored(sparse())
    verdict = ask("/jobs/validate", applied_again(made, sparse()), old=made)
    assert (verdict.allowed, verdict.message) == (True, "")


@pytest.mark.parametrize("field", ["name", "maxRetry", "template"])
def test_what_is_left_out_means_what_is_filled_in(field: str) -> None:
    made = as_stored(sparse())
    first = made["spec"]["tasks"][0]
    first |= {"name": "other", "maxRetry": 7}
    first["template"]["spec"]["dnsPolicy"] = "Default"
    refused = ask("/jobs/validate", applied_again(made, sparse()), old=made).message
    assert f"spec.tasks[0].{field}: {OTHER}" in refused


@pytest.mark.parametrize("change", ACCEPTED.values(), ids=ACCEPTED)
def test_may_change(change: Change) -> None:
    verdict = ask("/jobs/validate", changed(change), old=stored())
    assert verdict.message == ""
    assert verdict.allowed


def rich() -> Object:
    """A job as somebody writes it by hand."""
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sleep"],
        "env": [{"name": "A", "value": ""}],
        "resources": {"requests": {"cpu": 1, "memory": "1024Mi"}, "limits": {"cpu": "1000m"}},
        "securityContext": {"runAsUser": 1000},
    }
    template = {
        "spec": {
            "containers": [container],
            "hostNetwork": False,
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "0.5Gi"}}],
        }
    }
    policies = [{"event": "PodFailed", "action": "RestartJob", "timeout": "5m"}]
    return job(
        task("a", 2, minAvailable=1, template=template, policies=policies),
        minAvailable=1,
        policies=[{"events": ["PodEvicted"], "action": "RestartJob", "timeout": "90s"}],
        runningEstimate="1h",
        plugins={"svc": []},
    )


def as_types_write_it() -> Object:
    """The same, read and written back by a client with types, and with one replica more."""
    given: Any = rich()
    spec = given["spec"]
    spec["policies"][0]["timeout"] = "1m30s"
    spec["runningEstimate"] = "1h0m0s"
    spec["plugins"] = {"svc": None}
    first = spec["tasks"][0]
    first["replicas"] = 3
    first["policies"][0]["timeout"] = "5m0s"
    template = first["template"]
    template["metadata"] = {"creationTimestamp": None}
    template["spec"]["volumes"][0]["emptyDir"] = {"sizeLimit": "512Mi"}
    del template["spec"]["hostNetwork"]
    container = template["spec"]["containers"][0]
    container["env"] = [{"name": "A"}]
    container["resources"] = {
        "limits": {"cpu": "1"},
        "requests": {"cpu": "1", "memory": "1Gi"},
    }
    template["spec"]["securityContext"] = {}
    copied: Object = given
    return copied


def test_what_only_is_written_otherwise_is_no_change() -> None:
    verdict = ask("/jobs/validate", as_types_write_it(), old=rich())
    assert (verdict.allowed, verdict.message) == (True, "")


Edit = tuple[tuple[str | int, ...], Any]

CONTAINER = ("tasks", 0, "template", "spec", "containers", 0)
MEANT: dict[str, Edit] = {
    "a command": ((*CONTAINER, "command"), ["true"]),
    "an amount": ((*CONTAINER, "resources", "requests", "cpu"), "1001m"),
    "a size": (
        ("tasks", 0, "template", "spec", "volumes", 0, "emptyDir"),
        {"sizeLimit": "513Mi"},
    ),
    "a user": ((*CONTAINER, "securityContext"), {}),
    "the host's network": (("tasks", 0, "template", "spec", "hostNetwork"), True),
    "a duration": (("policies", 0, "timeout"), "91s"),
    "an action": (("tasks", 0, "policies", 0, "action"), "AbortJob"),
    "a plugin": (("plugins",), {}),
}


@pytest.mark.parametrize("edit", MEANT.values(), ids=MEANT)
def test_what_means_something_is_a_change(edit: Edit) -> None:
    place, value = edit
    given: Any = as_types_write_it()
    holder = given["spec"]
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    verdict = ask("/jobs/validate", given, old=rich())
    assert not verdict.allowed
    assert OTHER in verdict.message


def with_pod(**fields: Any) -> Object:
    container = {"name": "main", "image": "busybox", **fields.pop("container", {})}
    return job(task("a", template={"spec": {"containers": [container], **fields}}))


MEANT_ZEROS: dict[str, dict[str, Any]] = {
    "no token": {"automountServiceAccountToken": False},
    "no links": {"enableServiceLinks": False},
    "no grace": {"terminationGracePeriodSeconds": 0},
    "the user root": {"container": {"securityContext": {"runAsUser": 0}}},
    "no more rights": {"container": {"securityContext": {"allowPrivilegeEscalation": False}}},
    "no time to tolerate": {"tolerations": [{"operator": "Exists", "tolerationSeconds": 0}]},
    "a disk to write": {
        "volumes": [{"name": "v", "azureDisk": {"diskName": "d", "readOnly": False}}]
    },
    "no room": {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "0"}}]},
}
ZEROS_OF_TYPES: dict[str, dict[str, Any]] = {
    "not the host's": {"hostNetwork": False, "hostPID": False, "hostIPC": False},
    "no terminal": {"container": {"stdin": False, "stdinOnce": False, "tty": False}},
    "a mount to write": {
        "container": {"volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": False}]}
    },
    "no port of the host": {"container": {"ports": [{"containerPort": 80, "hostPort": 0}]}},
    "a probe's defaults": {
        "container": {
            "livenessProbe": {
                "exec": {"command": ["true"]},
                "initialDelaySeconds": 0,
                "timeoutSeconds": 0,
                "periodSeconds": 0,
                "successThreshold": 0,
                "failureThreshold": 0,
            }
        }
    },
    "a divisor that is none": {
        "container": {
            "env": [
                {
                    "name": "A",
                    "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}},
                }
            ]
        }
    },
    "a claim to write": {
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c", "readOnly": False}}]
    },
}


def without_zeros(value: Any) -> Any:
    """What is false or 0, at any depth, is not written at all."""
    if isinstance(value, dict):
        made = {key: without_zeros(each) for key, each in value.items()}
        return {key: each for key, each in made.items() if each not in (0, "0")}
    return [without_zeros(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("fields", MEANT_ZEROS.values(), ids=MEANT_ZEROS)
@pytest.mark.parametrize("dropped", [True, False], ids=["dropped", "added"])
def test_false_or_0_is_not_the_same_as_nothing(fields: Any, *, dropped: bool) -> None:
    told, silent = with_pod(**copy.deepcopy(fields)), without_zeros(with_pod(**fields))
    new, old = (silent, told) if dropped else (told, silent)
    verdict = ask("/jobs/validate", new, old=old)
    assert verdict.message == f"spec.tasks[0].template: {OTHER};"


@pytest.mark.parametrize("fields", ZEROS_OF_TYPES.values(), ids=ZEROS_OF_TYPES)
@pytest.mark.parametrize("dropped", [True, False], ids=["dropped", "added"])
def test_false_or_0_is_the_same_as_nothing_where_types_do_not_write_it(
    fields: Any, *, dropped: bool
) -> None:
    told, silent = with_pod(**copy.deepcopy(fields)), without_zeros(with_pod(**fields))
    assert told != silent
    new, old = (silent, told) if dropped else (told, silent)
    assert ask("/jobs/validate", new, old=old).message == ""


REFUSED: dict[str, tuple[Change, str]] = {
    "the queue": (lambda job: job["spec"].update(queue="q"), f"spec.queue: {OTHER}"),
    "a new field": (lambda job: job["spec"].update(maxRetry=9), f"spec.maxRetry: {OTHER}"),
    "a field gone": (lambda job: job["spec"].pop("volumes"), f"spec.volumes: {OTHER}"),
    "a claim that was given": (
        lambda job: job["spec"]["volumes"][1].update(volumeClaimName="x"),
        f"spec.volumes: {OTHER}",
    ),
    "a template": (
        lambda job: job["spec"]["tasks"][0]["template"]["spec"].update(nodeName="n"),
        f"spec.tasks[0].template: {OTHER}",
    ),
    "a task's name": (
        lambda job: job["spec"]["tasks"][0].update(name="c"),
        f"spec.tasks[0].name: {OTHER}",
    ),
    "a task more": (
        lambda job: job["spec"]["tasks"].append(task("c")),
        "spec.tasks: job updates may not add or remove tasks",
    ),
    "a task less": (
        lambda job: (job["spec"]["tasks"].pop(0), job["spec"].update(minAvailable=1)),
        "spec.tasks: job updates may not add or remove tasks",
    ),
    "negative replicas": (
        lambda job: job["spec"]["tasks"][0].update(replicas=-1),
        "spec.tasks[0].replicas: 'replicas' must be >= 0 in task: a",
    ),
    "a negative minimum of a task": (
        lambda job: job["spec"]["tasks"][0].update(minAvailable=-1),
        "spec.tasks[0].minAvailable: 'minAvailable' must be >= 0 in task: a",
    ),
    "a minimum above its replicas": (
        lambda job: job["spec"]["tasks"][0].update(minAvailable=3),
        "spec.tasks[0].minAvailable: 'minAvailable' must be <= 'replicas' in task: a",
    ),
    "a minimum above all": (
        lambda job: job["spec"].update(minAvailable=7),
        "spec.minAvailable: job 'minAvailable' must not be greater than total replicas",
    ),
    "a negative minimum": (
        lambda job: job["spec"].update(minAvailable=-1),
        "spec.minAvailable: job 'minAvailable' must be >= 0",
    ),
    "partitions that do not divide": (
        lambda job: job["spec"]["tasks"][1].update(replicas=5),
        "spec.tasks[1].replicas: 'Replicas' are not equal to TotalPartitions*PartitionSize",
    ),
    "both tiers": (
        lambda job: job["spec"].update(
            networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}
        ),
        "must not specify 'highestTierAllowed' and 'highestTierName'",
    ),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_may_not_change(change: Change, message: str) -> None:
    verdict = ask("/jobs/validate", changed(change), old=stored())
    assert not verdict.allowed
    assert message in verdict.message


def test_a_job_that_never_was_valid_may_still_end() -> None:
    broken = job(task("a", 1, minAvailable=5))
    ended = copy.deepcopy(broken)
    ended["metadata"]["finalizers"] = []
    assert ask("/jobs/validate", ended, old=broken).allowed
    ended["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ended["spec"]["queue"] = "other"
    assert ask("/jobs/validate", ended, old=broken).allowed
