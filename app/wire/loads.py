"""What measures nodes answers: Prometheus and the metrics API of Kubernetes."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from msgspec import Meta, Struct

from app.wire import quantity, times
from app.wire.errors import DecodeError, Reader


class _Sample(Struct, gc=False):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(Struct, rename={"kind": "resultType"}, gc=False):
    kind: str
    result: list[_Sample]


class _QueryJson(Struct, gc=False):
    status: str
    data: _Vector | None = None
    error: str = ""


class _MetadataJson(Struct, gc=False):
    name: Annotated[str, Meta(min_length=1)]


class _MeasuredJson(Struct, gc=False):
    metadata: _MetadataJson
    timestamp: times.Moment
    usage: quantity.QuantityMap
    window: str = "30s"


class _MeasuredListJson(Struct, gc=False):
    items: list[_MeasuredJson]


_read_query: Reader[_QueryJson] = Reader(_QueryJson)
_read_list: Reader[_MeasuredListJson] = Reader(_MeasuredListJson)


def read_vector(body: bytes) -> Mapping[str, tuple[float, float]]:
    """Moment and value by instance, of an instant query; raises `DecodeError`.

    The port of an instance is cut off, and its label ``node`` goes before ``instance``.
    """
    answer = _read_query(body)
    if answer.status != "success" or answer.data is None:
        raise DecodeError("", f"the query failed: {answer.error or answer.status}")
    if answer.data.kind != "vector":
        raise DecodeError("", f"the answer is a {answer.data.kind}, not a vector")
    found: dict[str, tuple[float, float]] = {}
    for sample in answer.data.result:
        at, text = sample.value
        name = sample.metric.get("node") or sample.metric.get("instance", "").partition(":")[0]
        try:
            found[name] = (at, float(text))
        except ValueError as error:
            raise DecodeError("", f"{text!r} is no number") from error
    return found


def read_measured(body: bytes) -> Iterable[tuple[str, Mapping[str, int], float, str]]:
    """Name, what is used, when and over which time, of a NodeMetricsList; raises `DecodeError`."""
    for item in _read_list(body).items:
        used = quantity.read(item.usage, "usage")
        yield item.metadata.name, used, times.epoch(item.timestamp), item.window
