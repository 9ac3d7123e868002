"""Pods: every field that is read, and what happens when it is odd."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.model.ids import group_key
from app.model.pod import GATE, QUEUE_GATE, Owner, TaskStatus
from app.wire.errors import DecodeError
from app.wire.objects.pods import decode_pod
from app.wire.objects.shapes import SpecJson
from tests.wire.manifests import decoded, encode, metadata, pod

RECORDED = Path(__file__).parent.parent / "recorded"


def test_a_recorded_pod_has_every_field() -> None:
    body = msgspec.json.decode((RECORDED / "filter.nominated.request.json").read_bytes())
    found = decode_pod(encode(body["Pod"]))
    assert (found.uid, found.key) == ("e5f75d63-48b3-4f3e-975e-b5f92881b6a0", "default/high-same")
    assert found.resource_version == "88028"
    assert found.scheduler == "volcano"
    assert found.created == 1795235573.0
    assert (found.priority, found.priority_class, found.preempts) == (1000, "high", True)
    assert (found.node, found.nominated, found.pinned) == ("", "node-00002", "")
    assert found.status is TaskStatus.PENDING
    assert found.shape.requests == (("cpu", 2000), ("memory", 64 << 20), ("pods", 1))
    assert [t.key for t in found.shape.tolerations] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert found.shape.images == ("busybox:latest",)


def test_a_pod_in_a_pretty_printed_body_is_the_same() -> None:
    text = encode(pod())
    assert decode_pod(msgspec.json.format(text, indent=2)).shape == decode_pod(text).shape


def test_group_role_and_owner_come_from_the_metadata() -> None:
    found = decoded(
        meta={
            "annotations": {
                "scheduling.k8s.io/group-name": "g",
                "volcano.sh/task-spec": "worker",
            },
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "1"},
                {
                    "apiVersion": "batch.volcano.sh/v1alpha1",
                    "kind": "Job",
                    "name": "job-1",
                    "uid": "2",
                    "controller": True,
                },
            ],
        }
    )
    assert found.group == group_key("default", "g")
    assert found.role == "worker"
    assert found.owner == Owner("batch.volcano.sh/v1alpha1", "Job", "job-1", "2")


def test_owners_that_do_not_control_are_not_the_owner() -> None:
    owners = [{"apiVersion": "v1", "kind": "Other", "name": "x", "uid": "1", "controller": False}]
    assert decoded(meta={"ownerReferences": owners}).owner is None
    assert decoded(meta={"ownerReferences": None}).owner is None


def test_only_annotations_that_are_read_are_kept() -> None:
    kept = {
        "scheduling.k8s.io/group-name": "g",
        "scheduling.volcano.sh/queue-name": "q",
        "volcano.sh/preemptable": "true",
        "pumice.sh/wake": "1",
        "hccl/rankIndex": "3",
        "sla-waiting-time": "1h",
        "kueue.x-k8s.io/podset-required-topology": "rack",
        "kueue.x-k8s.io/podset-preferred-topology": "zone",
    }
    dropped = {"kubectl.kubernetes.io/last-applied-configuration": "{}" * 900, "other": "x"}
    assert decoded(meta={"annotations": kept | dropped}).annotations == kept
    assert decoded(meta={"annotations": kept | {"other": "x"}}).annotations == kept


def test_equal_labels_annotations_and_owners_are_one_object() -> None:
    parts: dict[str, Any] = {
        "labels": {"app": "a"},
        "annotations": {"volcano.sh/job-name": "j"},
        "ownerReferences": [{"kind": "Job", "name": "j", "uid": "1", "controller": True}],
    }
    one, two = decoded(meta={"name": "a"} | parts), decoded(meta={"name": "b"} | parts)
    assert one.labels is two.labels
    assert one.annotations is two.annotations
    assert one.owner is two.owner


@pytest.mark.parametrize(
    ("status", "deleted", "expected"),
    [
        ({"phase": "Pending"}, False, TaskStatus.BOUND),
        ({"phase": "Running"}, False, TaskStatus.RUNNING),
        ({"phase": "Running"}, True, TaskStatus.RELEASING),
        ({"phase": "Succeeded"}, True, TaskStatus.SUCCEEDED),
        ({"phase": "Failed"}, False, TaskStatus.FAILED),
        ({"phase": "Unknown"}, False, TaskStatus.UNKNOWN),
        ({"phase": None}, False, TaskStatus.BOUND),
    ],
)
def test_the_status_is_volcanos(status: dict[str, Any], deleted: bool, expected: object) -> None:
    meta = {"deletionTimestamp": "2026-11-21T04:32:15Z"} if deleted else {}
    assert decoded(meta=meta, status=status, nodeName="n1").status is expected


def test_gates_are_kept_in_their_order() -> None:
    found = decoded(schedulingGates=[{"name": "other"}, {"name": "pumice.sh/plan"}])
    assert found.gates == ("other", "pumice.sh/plan")
    assert found.gated
    assert found.foreign_gates == ("other",)


@pytest.mark.parametrize(
    ("asked", "ours"),
    [
        ({QUEUE_GATE: "true"}, (QUEUE_GATE, GATE)),
        ({QUEUE_GATE: "yes"}, (GATE,)),
        ({}, (GATE,)),
    ],
)
def test_volcanos_gate_is_ours_to_open_for_pods_that_ask_for_it(
    asked: dict[str, str], ours: tuple[str, ...]
) -> None:
    gates = ("other", QUEUE_GATE, GATE)
    found = decoded(meta={"annotations": asked}, schedulingGates=[{"name": gate} for gate in gates])
    assert found.own_gates == ours
    assert found.foreign_gates == tuple(gate for gate in gates if gate not in ours)


def test_the_start_time_and_the_preemption_policy_are_read() -> None:
    found = decoded(status={"startTime": "1970-01-01T00:01:00Z"}, preemptionPolicy="Never")
    assert found.started == 60.0
    assert not found.preempts


@pytest.mark.parametrize(
    ("spec", "grace"),
    [({}, 30.0), ({"terminationGracePeriodSeconds": 5}, 5.0)]
    + [({"terminationGracePeriodSeconds": odd}, 1.0) for odd in (0, -3)]
    + [({"terminationGracePeriodSeconds": None}, 30.0)],
)
def test_the_time_to_end_is_that_of_the_api_server(spec: dict[str, Any], grace: float) -> None:
    assert decoded(**spec).grace == grace


def test_null_is_the_same_as_absent() -> None:
    nothing = {
        "metadata": {"name": "p", "uid": "u", "labels": None, "annotations": None}
        | {"ownerReferences": None, "namespace": None, "creationTimestamp": None},
        "spec": dict.fromkeys(SpecJson.__struct_encode_fields__),
        "status": None,
    }
    found = decode_pod(encode(nothing))
    bare = decode_pod(encode({"metadata": {"name": "p", "uid": "u"}, "spec": {}}))
    assert found.shape == bare.shape
    assert found.shape.requests == (("pods", 1),)
    assert found.scheduler == "default-scheduler"
    assert (found.namespace, found.phase, found.created, found.gates) == ("", "", 0.0, ())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"spec": {}}, "Object missing required field `metadata`"),
        ({"metadata": {"name": "p"}, "spec": {}}, "metadata.uid: is missing"),
        ({"metadata": {"uid": "u"}, "spec": {}}, "metadata.name: is missing"),
        ({"metadata": metadata()}, "Object missing required field `spec`"),
        (pod(priority="5"), "spec.priority: Expected `int | null`, got `str`"),
        (pod(containers={}), "spec.containers: Expected `array | null`, got `object`"),
        (pod(containers=[None]), "spec.containers[0]: Expected `object`, got `null`"),
        (
            pod(meta={"labels": {"a": 1}}),
            "metadata.labels[...]: Expected `str`, got `int`",
        ),
        (
            pod(meta={"creationTimestamp": "soon"}),
            "metadata.creationTimestamp: Invalid RFC3339 encoded datetime",
        ),
        (
            pod(tolerations=[{"key": 1}]),
            "spec.tolerations[0].key: Expected `str | null`, got `int`",
        ),
        (pod(nodeSelector={"a": None}), "spec.nodeSelector[...]: Expected `str`, got `null`"),
        (pod(schedulingGates=[{"name": None}]), "spec.schedulingGates[0].name: Expected `str`"),
        (
            pod(status={"conditions": [{"type": 1}]}),
            "status.conditions[0].type: Expected `str | null`, got `int`",
        ),
        ([], "Expected `object`, got `array`"),
    ],
)
def test_a_pod_that_cannot_be_read_names_the_field(body: object, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_pod(encode(body))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"\xff", b'{"metadata": {"name": "\xff"}}', b"[" * 100_000, b"nonsense"],
)
def test_what_is_not_json_is_said_to_be_none(text: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_pod(text)


def told(**fields: str) -> dict[str, Any]:
    """A status with that PodScheduled condition among others."""
    others = [{"type": "Ready", "status": "False", "reason": "Unschedulable", "message": "no"}]
    return {"conditions": [*others, {"type": "PodScheduled", "status": "False", **fields}]}


@pytest.mark.parametrize(
    ("status", "complaint"),
    [
        (
            told(reason="Unschedulable", message="0/3 nodes are available"),
            "0/3 nodes are available",
        ),
        (told(reason="Unschedulable", message="x" * 9_999), "x" * 500),
        (told(reason="Unschedulable"), ""),
        (told(reason="SchedulingGated", message="gated"), ""),
        (told(reason="SchedulerError", message="extender"), ""),
        (told(reason="Unschedulable", message="x", status="True"), ""),
        ({"conditions": None}, ""),
    ],
)
def test_a_complaint_is_what_kube_scheduler_said_of_a_pod_without_a_node(
    status: dict[str, Any], complaint: str
) -> None:
    assert decoded(status=status).complaint == complaint
    assert not decoded(status=status, nodeName="n").complaint


SCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}
PLACED = {"type": "pumice.sh/Placed", "status": "False", "reason": "QueueQuota"}


@pytest.mark.parametrize(
    ("conditions", "refused_for", "complaint"),
    [
        ([PLACED], "QueueQuota", ""),
        ([PLACED, SCHEDULED], "QueueQuota", "no"),
        ([SCHEDULED, PLACED], "QueueQuota", "no"),
        ([SCHEDULED], "", "no"),
        ([{**PLACED, "status": "True"}], "", ""),
        ([{**PLACED, "reason": None}], "", ""),
        ([{**PLACED, "type": "Placed"}], "", ""),
    ],
)
def test_a_pod_without_a_node_shows_why_we_said_that_it_has_no_place(
    conditions: list[dict[str, Any]], refused_for: str, complaint: str
) -> None:
    found = decoded(status={"conditions": conditions})
    assert (found.refused_for, found.complaint) == (refused_for, complaint)
    assert not decoded(status={"conditions": conditions}, nodeName="n").refused_for
