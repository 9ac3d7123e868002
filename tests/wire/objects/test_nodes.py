"""Nodes."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.model.load import NODE_LOAD, NodeLoad
from app.model.node import Node, Taint
from app.wire.errors import DecodeError
from app.wire.objects.nodes import decode_node
from tests.wire.manifests import encode, metadata

RECORDED = Path(__file__).parent.parent / "recorded"


def read(*, spec: Any = None, meta: Any = None, **status: Any) -> Node:
    body = {"metadata": metadata("n1", **(meta or {})), "spec": spec, "status": status}
    return decode_node(encode(body))


def test_a_recorded_node_has_every_field() -> None:
    body = msgspec.json.decode((RECORDED / "filter.nodes.request.json").read_bytes())
    found = decode_node(encode(body["Nodes"]["items"][0]))
    assert found.name == "node-00000"
    assert found.uid == "04030695-2546-4344-ad57-2cd3f32d626d"
    assert found.resource_version == "87903"
    assert found.labels == {"kubernetes.io/hostname": "node-00000", "type": "fake"}
    assert found.allocatable == (("cpu", 2000), ("memory", 8 << 30), ("pods", 110))
    assert (found.ready, found.unschedulable, found.taints, found.images) == (True, False, (), None)


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        (None, True),
        ([], True),
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "False"}], False),
        ([{"type": "Ready", "status": "Unknown"}], False),
        ([{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "True"}], True),
        ([{"type": "MemoryPressure", "status": "True"}], True),
    ],
)
def test_a_node_is_ready_unless_it_says_otherwise(conditions: Any, ready: bool) -> None:
    assert read(conditions=conditions).ready is ready


def test_taints_and_the_cordon_are_read() -> None:
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "value": "1", "effect": "X"}]
    found = read(spec={"unschedulable": True, "taints": taints})
    assert found.unschedulable
    assert found.taints == (Taint("a", "", "NoSchedule"), Taint("b", "1", "X"))


@pytest.mark.parametrize(
    ("said", "taints"),
    [
        ("true", (Taint("volcano.sh/offline-job-evicting", "", "NoSchedule"),)),
        ("T", (Taint("volcano.sh/offline-job-evicting", "", "NoSchedule"),)),
        ("false", ()),
        ("soon", ()),
    ],
)
def test_a_node_that_says_that_offline_pods_are_evicted_there_is_tainted(
    said: str, taints: tuple[Taint, ...]
) -> None:
    meta = {"annotations": {"volcano.sh/offline-job-evicting": said}}
    assert read(meta=meta).taints == taints


def test_resources_for_offline_pods_are_millicores_and_bytes() -> None:
    found = read(
        allocatable={"kubernetes.io/batch-cpu": "7937", "kubernetes.io/batch-memory": "14327175770"}
    )
    assert dict(found.allocatable) == {
        "kubernetes.io/batch-cpu": 7937,
        "kubernetes.io/batch-memory": 14327175770,
    }


def test_nothing_is_allocatable_below_zero_and_unknown_names_are_kept() -> None:
    found = read(allocatable={"cpu": "-500m", "example.com/odd": "3", "memory": 1024})
    assert found.allocatable == (("cpu", 0), ("example.com/odd", 3), ("memory", 1024))


@pytest.mark.parametrize("allocatable", [None, {}])
def test_the_capacity_stands_in_for_what_is_allocatable(allocatable: Any) -> None:
    assert read(allocatable=allocatable, capacity={"cpu": "2"}).allocatable == (("cpu", 2000),)
    assert read(allocatable=allocatable).allocatable == ()


def test_images_are_found_by_each_of_their_names() -> None:
    images = [
        {"names": ["a:1", "a@sha256:0f"], "sizeBytes": 7},
        {"names": None, "sizeBytes": 9},
        {"names": ["b:1"]},
    ]
    assert read(images=images).images == {"a:1": 7, "a@sha256:0f": 7, "b:1": 0}
    assert read(images=[]).images is None


def test_a_node_without_spec_and_status_offers_nothing() -> None:
    found = decode_node(encode({"metadata": metadata("n1"), "spec": None}))
    assert (found.allocatable, found.ready) == ((), True)


def test_a_heartbeat_changes_nothing_that_places() -> None:
    one = read(allocatable={"cpu": "1"}, conditions=[{"type": "Ready", "status": "True"}])
    two = read(
        meta={"resourceVersion": "8"},
        allocatable={"cpu": "1000m"},
        conditions=[{"type": "Ready", "status": "True", "lastHeartbeatTime": "x"}],
    )
    assert one.places_like(two)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"metadata": {}}, "metadata.name: is missing"),
        (
            {"metadata": metadata("n"), "status": {"allocatable": {"cpu": "x"}}},
            'status.allocatable.cpu: "x" is not a quantity',
        ),
        (
            {"metadata": metadata("n"), "status": {"capacity": {"cpu": "x"}}},
            'status.capacity.cpu: "x" is not a quantity',
        ),
        (
            {"metadata": metadata("n"), "spec": {"taints": [{"key": None}]}},
            "spec.taints[0].key: Expected `str`, got `null`",
        ),
    ],
)
def test_a_node_that_cannot_be_read_names_the_field(body: Any, message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_node(encode(body))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "load"),
    [
        (
            '{"cpu": 35.5, "memory": 60, "time": "2023-11-14T22:13:20Z"}',
            NodeLoad(35.5, 60.0, at=1_700_000_000.0, window_s=300.0),
        ),
        (
            '{"cpu": 0, "memory": 0, "time": "2023-11-14T22:13:20+00:00", "window": 10, "x": 1}',
            NodeLoad(0.0, 0.0, at=1_700_000_000.0, window_s=10.0),
        ),
        ("", None),
        ("35", None),
        ("{", None),
        ('{"cpu": 35.5, "memory": 60}', None),
        ('{"cpu": "35", "memory": 60, "time": "2023-11-14T22:13:20Z"}', None),
        ('{"cpu": -1, "memory": 60, "time": "2023-11-14T22:13:20Z"}', None),
        ('{"cpu": 1, "memory": 60, "time": "yesterday"}', None),
    ],
)
def test_a_load_is_read_off_the_annotation(text: str, load: NodeLoad | None) -> None:
    assert read(meta={"annotations": {NODE_LOAD: text}}).load == load
