"""Queues."""

from typing import Any

from msgspec import Struct, field

from app.model.amounts import LARGEST
from app.model.ids import NO_QUEUE, QueueName
from app.model.workload import Queue, QueueState
from app.wire import quantity, times
from app.wire.errors import Bytes, DecodeError, Reader
from app.wire.objects import meta
from app.wire.objects.meta import MetaJson


class _GuaranteeJson(Struct, gc=False):
    resource: quantity.QuantityMap | None = None


class _SpecJson(Struct, gc=False):
    weight: int | None = None
    capability: quantity.QuantityMap | None = None
    deserved: quantity.QuantityMap | None = None
    guarantee: _GuaranteeJson | None = None
    parent: str | None = None
    reclaimable: bool | None = None
    priority: int | None = None
    dequeue_strategy: str | None = field(default=None, name="dequeueStrategy")
    affinity: dict[str, Any] | None = None


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


def decode_queue(text: Bytes) -> Queue:
    """A queue; raises `DecodeError`. A weight of 0 is one that is not set."""
    json = _read(text)
    head, spec, status = json.metadata, json.spec or _NO_SPEC, json.status or _NO_STATUS
    guarantee = spec.guarantee or _NO_GUARANTEE
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
        annotations=meta.annotations(head.annotations),
        allocated=quantity.read_amounts(status.allocated, "status.allocated"),
        affinity=spec.affinity,
        deleting=head.deletion_timestamp is not None,
    )


def _state(text: str | None) -> QueueState:
    try:
        return QueueState(text or "")
    except ValueError as error:
        raise DecodeError("status.state", f'"{text}" is not a state') from error
