"""Whatever stands in an object: it is decoded, or refused with `DecodeError`, nothing else."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.wire.errors import Bytes, DecodeError
from app.wire.objects.groups import decode_pod_group
from app.wire.objects.nodes import decode_node
from app.wire.objects.pods import decode_pod
from app.wire.objects.policies import (
    decode_budget,
    decode_device_class,
    decode_lease,
    decode_namespace,
    decode_priority_class,
    decode_quota,
)
from app.wire.objects.queues import decode_queue
from tests.wire.manifests import Json, container, encode, metadata, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SELECTOR = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}],
}
POD_TERM = {
    "topologyKey": "zone",
    "labelSelector": SELECTOR,
    "namespaces": ["n"],
    "namespaceSelector": SELECTOR,
    "matchLabelKeys": ["a"],
}
POD_TERMS = {REQUIRED: [POD_TERM], PREFERRED: [{"weight": 1, "podAffinityTerm": POD_TERM}]}
NODE_TERM = {
    "matchExpressions": SELECTOR["matchExpressions"],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
}
RESOURCES = {"requests": {"cpu": "1", "memory": 5}, "limits": {"cpu": "2"}}
HELD = {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}

META = metadata(
    "x",
    labels={"a": "b"},
    annotations={"volcano.sh/a": "b"},
    deletionTimestamp="2026-11-21T04:32:15Z",
    ownerReferences=[{"kind": "Job", "name": "j", "uid": "u", "controller": True}],
)
POD = pod(
    meta=META,
    status={
        "nominatedNodeName": "n1",
        "startTime": "2026-11-21T04:32:15Z",
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
        "containerStatuses": [{"name": "c", **HELD}],
        "initContainerStatuses": [{"name": "c", **HELD}],
        **HELD,
    },
    nodeName="n1",
    priority=5,
    schedulingGates=[{"name": "pumice.sh/plan"}],
    nodeSelector={"a": "b"},
    tolerations=[{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
    overhead={"cpu": "1"},
    resources=RESOURCES,
    containers=[
        container(resources=RESOURCES, ports=[{"containerPort": 1, "hostPort": 2, "hostIP": "i"}])
    ],
    initContainers=[container(resources=RESOURCES, restartPolicy="Always")],
    topologySpreadConstraints=[
        {"maxSkew": 1, "topologyKey": "zone", "labelSelector": SELECTOR, "matchLabelKeys": ["a"]}
    ],
    affinity={
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [NODE_TERM]},
            PREFERRED: [{"weight": 1, "preference": NODE_TERM}],
        },
        "podAffinity": POD_TERMS,
        "podAntiAffinity": POD_TERMS,
    },
)
NODE = {
    "metadata": META,
    "spec": {"unschedulable": True, "taints": [{"key": "k", "value": "v", "effect": "NoExecute"}]},
    "status": {
        "allocatable": {"cpu": "1"},
        "capacity": {"cpu": "1"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "images": [{"names": ["a"], "sizeBytes": 1}],
    },
}
GROUP = {
    "metadata": META,
    "spec": {"minMember": 1, "minTaskMember": {"a": 1}, "queue": "q", "minResources": {"cpu": 1}},
    "status": {
        "phase": "Running",
        "running": 1,
        "conditions": [{"type": "Scheduled", "status": "True", "transitionID": "1"}],
    },
}
QUEUE = {
    "metadata": META,
    "spec": {
        "weight": 1,
        "capability": {"cpu": "1"},
        "guarantee": {"resource": {"cpu": "1"}},
        "reclaimable": True,
        "affinity": {"nodeGroupAffinity": {REQUIRED: ["g"]}},
    },
    "status": {"state": "Open", "allocated": {"cpu": "1"}},
}
BUDGET = {
    "metadata": META,
    "spec": {"selector": SELECTOR},
    "status": {"disruptionsAllowed": 1, "disruptedPods": {"p": "2026-11-21T04:32:15Z"}},
}
QUOTA = {
    "metadata": META,
    "spec": {"hard": {"pods": "1"}, "scopes": ["BestEffort"], "scopeSelector": {}},
    "status": {"hard": {"pods": "1"}, "used": {"pods": "1"}},
}
LEASE = {
    "metadata": META,
    "spec": {"holderIdentity": "h", "renewTime": "2026-11-21T04:32:15.000001Z"},
}
PRIORITY = {"metadata": META, "value": 1, "globalDefault": True, "preemptionPolicy": "Never"}

Decode = Callable[[Bytes], object]
KINDS: list[tuple[Decode, Json]] = [
    (decode_pod, POD),
    (decode_node, NODE),
    (decode_pod_group, GROUP),
    (decode_queue, QUEUE),
    (decode_budget, BUDGET),
    (decode_quota, QUOTA),
    (decode_lease, LEASE),
    (decode_priority_class, PRIORITY),
    (decode_namespace, {"metadata": META}),
    (decode_device_class, {"metadata": META, "spec": {"extendedResourceName": "example.com/gpu"}}),
]

odd = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["1x", "1e999999999", "-1", "2026-11-21T04:32:15Z", "In"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(child, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@pytest.mark.parametrize(("decode", "body"), KINDS, ids=lambda v: getattr(v, "__name__", ""))
def test_the_whole_object_can_be_decoded(decode: Decode, body: Json) -> None:
    decode(encode(body))


@given(st.sampled_from(KINDS), st.data())
def test_one_odd_value_is_decoded_or_refused(
    kind: tuple[Decode, Json], data: st.DataObject
) -> None:
    decode, body = kind
    place = data.draw(st.sampled_from(list(places(body))))
    text = encode(replaced(body, place, data.draw(odd)))
    with suppress(DecodeError):
        decode(text)


@given(st.sampled_from(KINDS), st.data())
def test_an_object_cut_off_anywhere_is_refused(
    kind: tuple[Decode, Json], data: st.DataObject
) -> None:
    decode, body = kind
    text = encode(body)
    with pytest.raises(DecodeError):
        decode(text[: data.draw(st.integers(0, len(text) - 1))])


@pytest.mark.parametrize(("decode", "body"), KINDS, ids=lambda v: getattr(v, "__name__", ""))
def test_every_part_but_the_name_may_be_null(decode: Decode, body: Json) -> None:
    """Absent and null are the same to the API server, for every field that it may leave out."""
    for place in places(body):
        if len(place) == 2 and place[0] in ("spec", "status"):
            decode(encode(replaced(body, place, None)))
