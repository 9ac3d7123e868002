"""Queues."""

from collections.abc import Mapping

from msgspec import Struct, field

from app.model.amounts import LARGEST, Amounts
from app.model.ids import NO_QUEUE, QueueName
from app.model.workload import NODE_GROUP_LIMITS, NodeGroupRules, Queue, QueueState
from app.wire import quantity, times
from app.wire.errors import Bytes, DecodeError, Reader
from app.wire.objects import meta
from app.wire.objects.meta import MetaJson


class _GuaranteeJson(Struct, gc=False):
    resource: quantity.QuantityMap | None = None


class _GroupsJson(Struct, gc=False):
    required: list[str] | None = field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[str] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class _AffinityJson(Struct, gc=False):
    wanted: _GroupsJson | None = field(default=None, name="nodeGroupAffinity")
    unwanted: _GroupsJson | None = field(default=None, name="nodeGroupAntiAffinity")


class _SpecJson(Struct, gc=False):
    weight: int | None = None
    capability: quantity.QuantityMap | None = None
    deserved: quantity.QuantityMap | None = None
    guarantee: _GuaranteeJson | None = None
    parent: str | None = None
    reclaimable: bool | None = None
    priority: int | None = None
    dequeue_strategy: str | None = field(default=None, name="dequeueStrategy")
    affinity: _AffinityJson | None = None


class _StatusJson(Struct, gc=False):
    state: str | None = None
    allocated: quantity.QuantityMap | None = None


class _QueueJson(Struct, gc=False):
    metadata: MetaJson
    spec: _SpecJson | None = None
    status: _StatusJson | None = None


_read: Reader[_QueueJson] = Reader(_QueueJson)
_NO_SPEC = _SpecJson()
_FIFO = "fifo"
_NO_STATUS = _StatusJson()
_NO_GUARANTEE = _GuaranteeJson()
_NO_GROUPS = _GroupsJson()
_read_limits: Reader[dict[str, quantity.QuantityMap | None]] = Reader(
    dict[str, quantity.QuantityMap | None]
)


def decode_queue(text: Bytes) -> Queue:
    """A queue; raises `DecodeError`. A weight of 0 is one that is not set."""
    json = _read(text)
    head, spec, status = json.metadata, json.spec or _NO_SPEC, json.status or _NO_STATUS
    guarantee = spec.guarantee or _NO_GUARANTEE
    annotations = meta.annotations(head.annotations)
    return Queue(
        name=QueueName(meta.named(head)),
        uid=meta.identified(head),
        resource_version=head.resource_version,
        created=times.epoch(head.creation_timestamp),
        weight=spec.weight or 1,
        capability=quantity.read_amounts(spec.capability, "spec.capability"),
        deserved=quantity.read_amounts(spec.deserved, "spec.deserved", most=LARGEST),
        guarantee=quantity.read_amounts(
            guarantee.resource, "spec.guarantee.resource", most=LARGEST
        ),
        parent=QueueName(spec.parent) if spec.parent else NO_QUEUE,
        reclaimable=spec.reclaimable is not False,
        priority=spec.priority or 0,
        in_order=spec.dequeue_strategy == _FIFO,
        state=_state(status.state),
        annotations=annotations,
        allocated=quantity.read_amounts(status.allocated, "status.allocated"),
        node_groups=_node_groups(spec.affinity),
        node_group_limits=_limits_or_none(annotations.get(NODE_GROUP_LIMITS, "")),
        deleting=head.deletion_timestamp is not None,
    )


def node_group_limits(text: str) -> Mapping[str, Amounts]:
    """The annotation of that name: node group -> amounts; raises `DecodeError`. Empty: no limits.

    A resource that is named with 0 has that limit; one that is not named has none.
    """
    if not text:
        return {}
    return {
        group: tuple(sorted(quantity.read(amounts, group).items()))
        for group, amounts in _read_limits(text.encode()).items()
    }


def _limits_or_none(text: str) -> Mapping[str, Amounts] | None:
    try:
        return node_group_limits(text)
    except DecodeError:
        return None


def _node_groups(json: _AffinityJson | None) -> NodeGroupRules | None:
    if json is None:
        return None
    wanted, unwanted = json.wanted or _NO_GROUPS, json.unwanted or _NO_GROUPS
    return NodeGroupRules(
        required=tuple(wanted.required or ()),
        preferred=tuple(wanted.preferred or ()),
        banned=tuple(unwanted.required or ()),
        avoided=tuple(unwanted.preferred or ()),
    )


def _state(text: str | None) -> QueueState:
    try:
        return QueueState(text or "")
    except ValueError as error:
        raise DecodeError("status.state", f'"{text}" is not a state') from error
