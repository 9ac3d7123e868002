"""ResourceSlices, as drivers write them."""

from typing import Any

import pytest

from app.model.device_slices import Attribute, Capacity, DeviceSlice, PoolDevice, Reach, Version
from app.model.ids import NodeName
from app.model.shape import NodeTerm, Operator, Requirement
from app.wire.errors import DecodeError
from app.wire.objects.device_slices import decode_device_slice
from tests.wire.manifests import encode

POOL = {"name": "p", "generation": 2, "resourceSliceCount": 3}
TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
ZONE = (NodeTerm((Requirement("zone", Operator.IN, ("a",)),)),)


def read(*devices: dict[str, Any], **spec: Any) -> DeviceSlice:
    body = {"driver": "d.example.com", "pool": POOL, "devices": list(devices), **spec}
    return decode_device_slice(encode({"metadata": {"name": "s"}, "spec": body}))


def device(**fields: Any) -> PoolDevice:
    [found] = read({"name": "x", **fields}, nodeName="n").devices
    return found


def test_a_slice_names_its_pool() -> None:
    found = read({"name": "x"}, nodeName="n")
    assert (found.driver, found.pool, found.generation, found.slices) == (
        "d.example.com",
        "p",
        2,
        3,
    )
    assert [each.id for each in found.devices] == [("d.example.com", "p", "x")]


@pytest.mark.parametrize(
    ("spec", "reach"),
    [
        ({"nodeName": "n"}, Reach(NodeName("n"))),
        ({"allNodes": True}, Reach(everywhere=True)),
        ({"nodeSelector": {"nodeSelectorTerms": [TERM]}}, Reach(terms=ZONE)),
        ({}, Reach()),
    ],
)
def test_a_slice_says_which_nodes_reach_its_devices(spec: dict[str, Any], reach: Reach) -> None:
    [found] = read({"name": "x", "nodeName": "ignored"}, **spec).devices
    assert found.reach == reach


def test_each_device_may_say_it_for_itself() -> None:
    each = ({"name": "x", "nodeName": "n"}, {"name": "y", "allNodes": True})
    found = read(*each, perDeviceNodeSelection=True).devices
    assert [one.reach for one in found] == [Reach(NodeName("n")), Reach(everywhere=True)]


@pytest.mark.parametrize(
    ("told", "value"),
    [
        ({"string": "gpu"}, "gpu"),
        ({"int": 3}, 3),
        ({"bool": False}, False),
        ({"version": "1.2.3"}, Version(1, 2, 3)),
    ],
)
def test_attributes_are_read(told: dict[str, Any], value: Attribute) -> None:
    found = device(attributes={"a": told, "d.example.com/b": told, "e.example.com/c": told})
    assert found.attributes == (("a", value), ("b", value), ("e.example.com/c", value))
    assert not found.opaque


@pytest.mark.parametrize("told", [{"strings": ["a"]}, {"version": "one"}])
def test_attributes_of_kinds_to_come_are_left_to_kube_scheduler(told: dict[str, Any]) -> None:
    found = device(attributes={"a": told})
    assert (found.attributes, found.opaque) == ((), True)


@pytest.mark.parametrize(
    ("told", "capacity"),
    [
        ({"value": "8Gi"}, Capacity(8 << 30)),
        ({"value": 8, "requestPolicy": {"default": "2"}}, Capacity(8, default=2)),
        ({"value": 8, "requestPolicy": {"validValues": ["2", 4]}}, Capacity(8, values=(2, 4))),
        (
            {"value": 8, "requestPolicy": {"validRange": {"min": 1, "max": "4", "step": 1}}},
            Capacity(8, least=1, most=4, step=1),
        ),
    ],
)
def test_capacities_are_read(told: dict[str, Any], capacity: Capacity) -> None:
    found = device(capacity={"d.example.com/memory": told}, allowMultipleAllocations=True)
    assert (found.capacity, found.shared) == ((("memory", capacity),), True)


def test_a_capacity_that_is_no_quantity_is_told_with_its_place() -> None:
    with pytest.raises(DecodeError) as error:
        device(capacity={"memory": {"value": 1, "requestPolicy": {"default": "some"}}})
    assert error.value.path == "spec.devices[0].capacity.memory.requestPolicy.default"
