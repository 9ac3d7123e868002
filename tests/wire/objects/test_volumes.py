"""Volumes of pods, and the kinds that say what there is of them."""

from __future__ import annotations

from typing import Any

import pytest

from app.model.ids import NodeName
from app.model.shape import (
    ClaimSpec,
    LabelSelector,
    NodeTerm,
    Operator,
    Requirement,
    VolumeAsk,
)
from app.model.volumes import (
    CsiDriver,
    CsiNode,
    PersistentVolume,
    StorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeClaim,
)
from app.wire.errors import DecodeError
from app.wire.objects.jobs import decode_job
from app.wire.objects.volumes import (
    decode_attachment,
    decode_claim,
    decode_csi_driver,
    decode_csi_node,
    decode_storage_capacity,
    decode_storage_class,
    decode_volume,
)
from tests.wire.manifests import decoded, encode, metadata

GIB = 1 << 30
ZONE = "topology.kubernetes.io/zone"
CLAIM = {
    "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
    "resources": {"requests": {"storage": "2Gi"}},
    "storageClassName": "fast",
    "volumeMode": "Block",
    "selector": {"matchLabels": {"disk": "ssd"}},
}
SPEC = ClaimSpec(
    "fast",
    2 * GIB,
    ("ReadOnlyMany", "ReadWriteOnce"),
    block=True,
    selector=LabelSelector((Requirement("disk", Operator.IN, ("ssd",)),)),
)


def test_a_pod_uses_the_claims_that_it_names_each_once() -> None:
    pod = decoded(
        volumes=[
            {"name": "b", "persistentVolumeClaim": {"claimName": "b"}},
            {"name": "a", "persistentVolumeClaim": {"claimName": "a"}},
            {"name": "again", "persistentVolumeClaim": {"claimName": "b", "readOnly": True}},
            {"name": "scratch", "emptyDir": {}},
            {"name": "inline", "csi": {"driver": "csi.example.com"}},
        ]
    )
    assert pod.shape.volumes == VolumeAsk(("default/a", "default/b"))


def test_a_pod_has_claims_of_its_own() -> None:
    own = {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}
    assert decoded(volumes=[own, own]).shape.volumes == VolumeAsk((), (SPEC, SPEC))


@pytest.mark.parametrize("volumes", [None, [], [{"name": "scratch", "emptyDir": {}}]])
def test_a_pod_without_claims_uses_no_volumes(volumes: object) -> None:
    assert decoded(volumes=volumes).shape.volumes is None


def test_pods_that_differ_in_their_tokens_only_have_one_shape() -> None:
    one, other = (
        decoded(volumes=[{"name": f"token-{name}", "projected": {"sources": []}}]) for name in "ab"
    )
    assert one.shape is other.shape


def test_pods_of_a_job_use_the_claims_of_the_job() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    job = {
        "metadata": metadata("job"),
        "spec": {
            "volumes": [
                {"mountPath": "/data", "volumeClaimName": "data"},
                {"mountPath": "/scratch"},
            ],
            "tasks": [{"name": "w", "replicas": 2, "template": template}],
        },
    }
    [made] = decode_job(encode(job)).roles.values()
    assert made.shape.volumes == VolumeAsk(("default/data",))


@pytest.mark.parametrize(
    ("annotations", "spec", "status", "expected"),
    [
        ({}, {}, {}, {}),
        ({}, {"volumeName": "pv"}, {}, {"volume": "pv"}),
        (
            {"pv.kubernetes.io/bind-completed": "yes"},
            {"volumeName": "pv"},
            {"phase": "Bound"},
            {"volume": "pv", "bound": True},
        ),
        ({}, {}, {"phase": "Lost"}, {"lost": True}),
        ({"volume.kubernetes.io/selected-node": "n"}, {}, {}, {"selected": NodeName("n")}),
    ],
)
def test_a_claim(
    annotations: dict[str, str],
    spec: dict[str, Any],
    status: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    text = {"metadata": metadata("c", annotations=annotations), "spec": CLAIM | spec}
    found = decode_claim(encode(text | {"status": status}))
    assert found == VolumeClaim("default/c", SPEC, **expected)


def test_a_claim_that_names_no_class_has_the_default_one() -> None:
    bare = decode_claim(encode({"metadata": metadata("c"), "spec": {}}))
    assert bare.spec == ClaimSpec()
    old = metadata("c", annotations={"volume.beta.kubernetes.io/storage-class": "old"})
    assert decode_claim(encode({"metadata": old})).spec.storage_class == "old"
    none = decode_claim(encode({"metadata": metadata("c"), "spec": {"storageClassName": ""}}))
    assert none.spec.storage_class == ""


def test_a_claim_that_goes() -> None:
    going = metadata("c", deletionTimestamp="2026-11-21T04:32:15Z")
    assert decode_claim(encode({"metadata": going})).deleting


def test_a_volume() -> None:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]
    text = {
        "metadata": {"name": "pv", "labels": {ZONE: "b__a"}},
        "spec": {
            "storageClassName": "fast",
            "capacity": {"storage": "3Gi"},
            "accessModes": ["ReadWriteOnce"],
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            "claimRef": {"namespace": "default", "name": "c"},
            "csi": {"driver": "csi.example.com", "volumeHandle": "h"},
        },
        "status": {"phase": "Bound"},
    }
    assert decode_volume(encode(text)) == PersistentVolume(
        "pv",
        "fast",
        3 * GIB,
        ("ReadWriteOnce",),
        labels={ZONE: "b__a"},
        terms=(NodeTerm((Requirement(ZONE, Operator.IN, ("a",)),)),),
        zones=((ZONE, ("a", "b")),),
        id=("csi.example.com", "h"),
        claim="default/c",
    )


def test_a_volume_that_waits_for_a_claim() -> None:
    text = {"metadata": {"name": "pv"}, "spec": {"local": {"path": "/d"}, "volumeMode": "Block"}}
    found = decode_volume(encode(text | {"status": {"phase": "Available"}}))
    assert found == PersistentVolume("pv", block=True, available=True)


def test_a_storage_class() -> None:
    text = {
        "metadata": {
            "name": "fast",
            "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
        },
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "b"]}]}],
    }
    zones = ((Requirement(ZONE, Operator.IN, ("a", "b")),),)
    expected = StorageClass("fast", "csi.example.com", waits=True, topologies=zones)
    found = decode_storage_class(encode(text))
    assert found == StorageClass(expected.name, expected.provisioner, True, zones, True)
    at_once = {"metadata": {"name": "slow"}, "provisioner": "p", "volumeBindingMode": "Immediate"}
    assert decode_storage_class(encode(at_once)) == StorageClass("slow", "p")


def test_what_drivers_say_of_a_node() -> None:
    drivers = [
        {"name": "a", "nodeID": "n", "topologyKeys": [ZONE], "allocatable": {"count": 16}},
        {"name": "b", "nodeID": "n", "topologyKeys": None},
    ]
    found = decode_csi_node(encode({"metadata": {"name": "n"}, "spec": {"drivers": drivers}}))
    assert found == CsiNode(NodeName("n"), (("a", 16),), (("a", (ZONE,)), ("b", ())))
    empty = decode_csi_node(encode({"metadata": {"name": "n"}, "spec": {"drivers": None}}))
    assert empty == CsiNode(NodeName("n"))


@pytest.mark.parametrize(("said", "tells"), [(None, False), (False, False), (True, True)])
def test_whether_a_driver_tells_what_is_left(said: bool | None, *, tells: bool) -> None:
    text = {"metadata": {"name": "d"}, "spec": {"storageCapacity": said}}
    assert decode_csi_driver(encode(text)) == CsiDriver("d", tells)


def test_what_storage_is_left() -> None:
    text = {
        "metadata": {"name": "s", "namespace": "kube-system"},
        "storageClassName": "fast",
        "nodeTopology": {"matchLabels": {ZONE: "a"}},
        "capacity": "10Gi",
        "maximumVolumeSize": "4Gi",
    }
    selector = LabelSelector((Requirement(ZONE, Operator.IN, ("a",)),))
    found = decode_storage_capacity(encode(text))
    assert found == StorageCapacity("kube-system/s", "fast", selector, 10 * GIB, 4 * GIB)
    bare = {"metadata": {"name": "s", "namespace": "k"}, "storageClassName": "fast"}
    assert decode_storage_capacity(encode(bare)) == StorageCapacity("k/s", "fast", None)


def test_what_cannot_be_read_is_told_with_its_path() -> None:
    text = {"metadata": metadata("c"), "spec": {"resources": {"requests": {"storage": "much"}}}}
    with pytest.raises(DecodeError, match=r"spec\.resources\.requests\.storage"):
        decode_claim(encode(text))


@pytest.mark.parametrize(
    ("spec", "attached"),
    [
        (
            {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "pv"}},
            VolumeAttachment("a", NodeName("n"), "pv"),
        ),
        (
            {"nodeName": "n", "source": {"inlineVolumeSpec": {}}},
            VolumeAttachment("a", NodeName("n"), ""),
        ),
        ({"source": None}, VolumeAttachment("a", NodeName(""), "")),
        (None, VolumeAttachment("a", NodeName(""), "")),
    ],
    ids=["of a volume", "inside a pod", "of nothing", "empty"],
)
def test_an_attachment(spec: object, attached: VolumeAttachment) -> None:
    assert decode_attachment(encode({"metadata": {"name": "a"}, "spec": spec})) == attached
