from __future__ import annotations

import pytest

from app.sandbox.apiserver.errors import ApiError
from app.sandbox.apiserver.patches import json_patch, merge_patch
from app.sandbox.apiserver.strategic import apply_merge, strategic_merge
from app.wire.documents import Document


def test_a_merge_patch_merges_objects_removes_nulls_and_replaces_lists() -> None:
    target = {"a": {"x": 1, "y": 2}, "list": [1, 2]}
    assert merge_patch(target, {"a": {"x": None, "z": 3}, "list": [3]}) == {
        "a": {"y": 2, "z": 3},
        "list": [3],
    }
    assert target["a"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        ({"op": "add", "path": "/a/-", "value": 3}, {"a": [1, 2, 3]}),
        ({"op": "add", "path": "/a/0", "value": 0}, {"a": [0, 1, 2]}),
        ({"op": "add", "path": "/b~1c", "value": 1}, {"a": [1, 2], "b/c": 1}),
        ({"op": "replace", "path": "/a/1", "value": 9}, {"a": [1, 9]}),
        ({"op": "remove", "path": "/a/0"}, {"a": [2]}),
        ({"op": "copy", "from": "/a/0", "path": "/b"}, {"a": [1, 2], "b": 1}),
        ({"op": "move", "from": "/a", "path": "/b"}, {"b": [1, 2]}),
        ({"op": "test", "path": "/a/0", "value": 1}, {"a": [1, 2]}),
    ],
    ids=lambda value: value.get("op", "") if isinstance(value, dict) else "",
)
def test_a_json_patch_operation_applies(operation: Document, after: Document) -> None:
    assert json_patch({"a": [1, 2]}, [operation]) == after


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a/0", "value": 2},
        {"op": "remove", "path": "/missing"},
        {"op": "replace", "path": "/missing", "value": 1},
        {"op": "add", "path": "/a/9", "value": 1},
    ],
)
def test_a_json_patch_that_does_not_apply_is_refused(operation: Document) -> None:
    with pytest.raises(ApiError) as caught:
        json_patch({"a": [1, 2]}, [operation])
    assert caught.value.code == 422


def test_a_strategic_patch_merges_lists_by_their_keys() -> None:
    pod = {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}
    patch = {"containers": [{"name": "b", "image": "2"}, {"name": "c", "image": "3"}]}
    assert strategic_merge(pod, patch)["containers"] == [
        {"name": "a", "image": "1"},
        {"name": "b", "image": "2"},
        {"name": "c", "image": "3"},
    ]


def test_a_strategic_patch_replaces_lists_without_a_key() -> None:
    assert strategic_merge({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}) == {
        "tolerations": [{"key": "b"}]
    }


def test_directives_delete_replace_and_order() -> None:
    gates = {"schedulingGates": [{"name": "a"}, {"name": "b"}]}
    assert strategic_merge(gates, {"schedulingGates": [{"name": "a", "$patch": "delete"}]}) == {
        "schedulingGates": [{"name": "b"}]
    }
    assert strategic_merge(gates, {"schedulingGates": [{"$patch": "replace"}, {"name": "c"}]}) == {
        "schedulingGates": [{"name": "c"}]
    }
    ordered = strategic_merge(
        gates, {"$setElementOrder/schedulingGates": [{"name": "b"}, {"name": "a"}]}
    )
    assert [gate["name"] for gate in ordered["schedulingGates"]] == ["b", "a"]


def test_finalizers_are_a_set() -> None:
    assert strategic_merge({"finalizers": ["a"]}, {"finalizers": ["b", "a"]}) == {
        "finalizers": ["a", "b"]
    }
    assert strategic_merge(
        {"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]}
    ) == {"finalizers": ["b"]}


def test_ports_merge_by_the_key_that_they_have() -> None:
    service = {"ports": [{"port": 80, "name": "x"}]}
    assert strategic_merge(service, {"ports": [{"port": 80, "name": "y"}]})["ports"] == [
        {"port": 80, "name": "y"}
    ]


DNS: Document = {
    "ports": [
        {"name": "slow", "containerPort": 53, "protocol": "UDP"},
        {"name": "sure", "containerPort": 53, "protocol": "TCP"},
    ]
}


def test_what_is_applied_knows_a_port_by_its_protocol_too() -> None:
    assert apply_merge(DNS, DNS) == DNS
    applied = {"ports": [{"containerPort": 53, "hostPort": 5353}]}
    slow, sure = DNS["ports"]
    assert apply_merge(DNS, applied) == {"ports": [slow, {**sure, "hostPort": 5353}]}


def test_a_service_port_is_known_by_its_protocol_too() -> None:
    ports = [{"port": 53, "protocol": "UDP"}, {"port": 53, "name": "sure"}]
    applied = {"ports": [{"port": 53, "protocol": "TCP", "targetPort": 54}]}
    assert apply_merge({"ports": ports}, applied) == {
        "ports": [ports[0], {**ports[1], "protocol": "TCP", "targetPort": 54}]
    }


def test_constraints_of_one_topology_are_told_apart_by_what_they_demand() -> None:
    hard = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}
    soft = {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 1}
    spec = {"topologySpreadConstraints": [hard, soft]}
    applied = {"topologySpreadConstraints": [{**soft, "maxSkew": 3}]}
    assert apply_merge(spec, applied) == {
        "topologySpreadConstraints": [hard, {**soft, "maxSkew": 3}]
    }


def test_a_strategic_patch_means_the_first_port_of_its_number() -> None:
    slow, sure = DNS["ports"]
    patch = {"ports": [{"containerPort": 53, "name": "dns"}]}
    assert strategic_merge(DNS, patch) == {"ports": [{**slow, "name": "dns"}, sure]}


@pytest.mark.parametrize("item", [{"image": "x"}, {"$patch": "delete"}], ids=str)
def test_an_item_without_its_key_is_refused(item: Document) -> None:
    with pytest.raises(ApiError, match="does not contain declared merge key: name"):
        strategic_merge({"containers": [{"name": "c"}]}, {"containers": [item]})
