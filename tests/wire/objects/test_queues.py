"""Queues."""

from typing import Any

import pytest

from app.model.workload import NODE_GROUP_LIMITS, NodeGroupRules, Queue, QueueState
from app.wire.errors import DecodeError
from app.wire.objects.queues import decode_queue
from tests.wire.manifests import encode, metadata


def read(*, meta: Any = None, status: Any = None, **spec: Any) -> Queue:
    body = {"metadata": metadata("q", **(meta or {})), "spec": spec, "status": status}
    return decode_queue(encode(body))


def test_a_queue_has_every_field() -> None:
    affinity = {
        "nodeGroupAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": ["g1", "g2"],
            "preferredDuringSchedulingIgnoredDuringExecution": ["g3"],
        },
        "nodeGroupAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": ["g4"],
            "preferredDuringSchedulingIgnoredDuringExecution": None,
        },
    }
    found = read(
        meta={"annotations": {"volcano.sh/hierarchy": "root/q", "other": "x"}},
        weight=3,
        capability={"cpu": "2", "nvidia.com/gpu": 0},
        deserved={"cpu": 1},
        guarantee={"resource": {"memory": "1Gi"}},
        parent="root",
        reclaimable=False,
        priority=5,
        affinity=affinity,
        status={"state": "Open", "allocated": {"cpu": "500m", "pods": "2"}},
    )
    assert (found.name, found.uid, found.resource_version) == ("q", "uid-q", "7")
    assert (found.weight, found.priority, found.parent) == (3, 5, "root")
    assert found.capability == (("cpu", 2000), ("nvidia.com/gpu", 0))
    assert found.deserved == (("cpu", 1000),)
    assert found.guarantee == (("memory", 1 << 30),)
    assert not found.reclaimable
    assert found.state is QueueState.OPEN
    assert found.allocated == (("cpu", 500), ("pods", 2))
    assert found.annotations == {"volcano.sh/hierarchy": "root/q"}
    assert found.node_groups == NodeGroupRules(("g1", "g2"), ("g3",), ("g4",), ())
    assert not found.deleting


@pytest.mark.parametrize(
    "spec",
    [
        {},
        dict.fromkeys(["weight", "capability", "guarantee", "reclaimable", "parent", "affinity"]),
        {"weight": 0, "guarantee": {}, "parent": ""},
    ],
)
def test_a_bare_queue_has_volcanos_defaults(spec: dict[str, Any]) -> None:
    found = read(**spec)
    assert (found.weight, found.reclaimable, found.parent) == (1, True, "")
    assert (found.capability, found.deserved, found.guarantee, found.allocated) == ((), (), (), ())
    assert (found.state, found.node_groups, found.priority) == (QueueState.NEW, None, 0)
    assert found.node_group_limits == {}
    assert found.is_open


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"weight": "1"}, "spec.weight: Expected `int | null`, got `str`"),
        ({"capability": {"cpu": "a"}}, 'spec.capability.cpu: "a" is not a quantity'),
        (
            {"guarantee": {"resource": {"cpu": "a"}}},
            'spec.guarantee.resource.cpu: "a" is not a quantity',
        ),
        ({"status": {"state": "Odd"}}, 'status.state: "Odd" is not a state'),
    ],
)
def test_a_queue_that_cannot_be_read_names_the_field(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        read(**parts)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        (
            '{"a": {"cpu": "2", "memory": "1Gi"}, "b": {}}',
            {"a": (("cpu", 2000), ("memory", 1 << 30)), "b": ()},
        ),
        ('{"a": {"nvidia.com/gpu": 0}}', {"a": (("nvidia.com/gpu", 0),)}),
        ('{"a": null}', {"a": ()}),
        ("", {}),
        ("a: 1", None),
        ('{"a": {"cpu": "two"}}', None),
        ('["a"]', None),
    ],
)
def test_limits_per_node_group_are_read_from_an_annotation(text: str, limits: Any) -> None:
    assert read(meta={"annotations": {NODE_GROUP_LIMITS: text}}).node_group_limits == limits
