"""``pumice explain NAME`` finds what the user made, whatever its PodGroup is called."""

from __future__ import annotations

import pytest

from app.wire.kinds import QUEUES
from tests.cli.stand import Object, Stand, group, job, pod, queue

WHY = "queue default: cpu asked 3, free 1"
AGAINST = {"type": "Reserved", "status": "False", "reason": "QueueQuota", "message": WHY}


def owner(kind: str, name: str, *, api: str = "example.com/v1", controls: bool = True) -> Object:
    uid = f"{kind}-{name}"
    return {"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": controls}


def waits(name: str, *owners: Object) -> Object:
    return owned_by(group(name, phase="Pending", conditions=[AGAINST]), *owners)


def owned_by(item: Object, *owners: Object) -> Object:
    return {**item, "metadata": {**item["metadata"], "ownerReferences": list(owners)}}


def put(stand: Stand, *items: Object) -> None:
    """Create ``items``, then let them have their owners: with each creation the garbage goes."""
    made = stand.create(*({**item, "metadata": without_owners(item)} for item in items))
    for item, stored in zip(items, made, strict=True):
        owners = item["metadata"].get("ownerReferences") or []
        whole = {**stored, "metadata": {**stored["metadata"], "ownerReferences": owners}}
        storage = f"{item['apiVersion'].rpartition('/')[0]}/{item['kind'].lower()}s"
        stand.server.store.put(storage, {**whole, "status": item.get("status") or {}})


def without_owners(item: Object) -> Object:
    return {name: value for name, value in item["metadata"].items() if name != "ownerReferences"}


@pytest.fixture
def stand(stand: Stand) -> Stand:
    stand.create(queue("default"))
    stand.status(QUEUES, "default", {"state": "Open"})
    return stand


def first(stand: Stand, what: str) -> str:
    return stand.printed("explain", what).splitlines()[0]


@pytest.mark.parametrize("kind", ["RayCluster", "MPIJob", "PyTorchJob", "TrainJob"])
@pytest.mark.parametrize("controls", [True, False], ids=["controller", "owner"])
def test_an_object_that_owns_a_podgroup_is_found_by_its_name(
    kind: str, controls: bool, stand: Stand
) -> None:
    put(stand, waits("ray-train-pg", owner(kind, "train", controls=controls)))
    told = f"{kind.lower()} default/train is Pending: {WHY}"
    assert first(stand, "train") == told
    assert first(stand, f"{kind.lower()}/train") == told
    assert first(stand, f"{kind}s/train") == told
    assert stand.refusal("explain", "othercluster/train") == (
        3,
        "Failed to explain othercluster/train: "
        "no PodGroup or Pod is owned by othercluster default/train\n",
    )


def test_of_several_groups_the_one_that_waits_is_told(stand: Stand) -> None:
    ray = owner("RayCluster", "train")
    runs = owned_by(group("a", phase="Running"), ray)
    put(stand, runs, waits("b", ray), waits("c", owner("RayCluster", "other")))
    text = stand.printed("explain", "train")
    assert text.startswith(f"raycluster default/train is Pending: {WHY}\n")
    assert "PodGroup:   b, Pending" in text


def test_the_owner_of_the_owner_is_read(stand: Stand) -> None:
    flow: Object = {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "night", "namespace": "default"},
        "spec": {"flows": [{"name": "load"}]},
    }
    [made] = stand.create(flow)
    by_flow = owner("JobFlow", "night", api=made["apiVersion"])
    step = owned_by(job("night-load"), by_flow)
    put(stand, step, waits("g", owner("Job", "night-load", api=step["apiVersion"])))
    text = stand.printed("explain", "night")
    assert text.startswith(f"jobflow default/night is Pending: {WHY}\n")
    assert "Job:        default/night-load" in text


def test_pods_without_a_podgroup_tell_of_their_owner(stand: Stand) -> None:
    web = owner("ReplicaSet", "web", api="apps/v1")
    placed = {"type": "pumice.sh/Placed", "status": "False", "reason": "QueueQuota", "message": WHY}
    status = {"phase": "Pending", "conditions": [placed]}
    put(stand, *(owned_by(pod(name, status=status), web) for name in ("web-1", "web-2")))
    text = stand.printed("explain", "web")
    assert text.startswith(f"replicaset default/web is Pending: {WHY}\n")
    assert "Pods:       2 Pending\n" in text


def test_an_object_of_that_name_goes_before_owners(stand: Stand) -> None:
    put(stand, waits("train"), waits("other", owner("MPIJob", "train")))
    assert first(stand, "train").startswith("podgroup default/train is Pending")
