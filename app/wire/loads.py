"""What measures nodes answers: Prometheus, Elasticsearch and the metrics APIs of Kubernetes."""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Final

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


class _AverageJson(Struct, gc=False):
    value: float | None = None


class _HostJson(Struct, gc=False):
    """The averages of one host, shares of one; ``at`` is milliseconds since the epoch."""

    key: str
    cpu: _AverageJson
    mem: _AverageJson
    at: _AverageJson


class _HostsJson(Struct, gc=False):
    buckets: list[_HostJson]
    sum_other_doc_count: int = 0


class _FoundJson(Struct, gc=False):
    hosts: _HostsJson


class _SearchJson(Struct, gc=False):
    aggregations: _FoundJson


class _ObjectJson(Struct, gc=False):
    name: str


class _ValueJson(Struct, rename="camel", gc=False):
    described_object: _ObjectJson
    timestamp: times.Moment
    value: quantity.Quantity


class _ValueListJson(Struct, gc=False):
    items: list[_ValueJson]


class _MetadataJson(Struct, gc=False):
    name: Annotated[str, Meta(min_length=1)]


class _MeasuredJson(Struct, gc=False):
    metadata: _MetadataJson
    timestamp: times.Moment
    usage: quantity.QuantityMap
    window: str = "30s"


class _MeasuredListJson(Struct, gc=False):
    items: list[_MeasuredJson]


MOST_HOSTS: Final = 10_000
"""Of so many hosts averages are asked for; Elasticsearch keeps as many open by default."""

_read_query: Reader[_QueryJson] = Reader(_QueryJson)
_read_search: Reader[_SearchJson] = Reader(_SearchJson)
_read_values: Reader[_ValueListJson] = Reader(_ValueListJson)
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


def search_for(window_s: float, host_field: str) -> str:
    """The query of Elasticsearch for averages of what Metricbeat measured, by host."""
    averages = {
        "cpu": {"avg": {"field": "host.cpu.usage"}},
        "mem": {"avg": {"field": "system.memory.actual.used.pct"}},
        "at": {"max": {"field": "@timestamp"}},
    }
    terms = {"field": host_field, "size": MOST_HOSTS}
    since = {"@timestamp": {"gte": f"now-{window_s:.0f}s", "lt": "now"}}
    query = {
        "size": 0,
        "query": {"bool": {"filter": [{"range": since}]}},
        "aggs": {"hosts": {"terms": terms, "aggs": averages}},
    }
    return json.dumps(query, separators=(",", ":"))


def read_hosts(body: bytes) -> Mapping[str, tuple[float, float, float]]:
    """Cpu and memory in per cent, and the moment, by host; raises `DecodeError`.

    A host of which one of the averages is missing is left out.
    """
    hosts = _read_search(body).aggregations.hosts
    if hosts.sum_other_doc_count:
        raise DecodeError("", f"there are more than {MOST_HOSTS} hosts")
    found: dict[str, tuple[float, float, float]] = {}
    for host in hosts.buckets:
        cpu, memory, at = host.cpu.value, host.mem.value, host.at.value
        if cpu is not None and memory is not None and at is not None:
            found[host.key] = (100 * cpu, 100 * memory, at / 1000)
    return found


def read_shares(body: bytes) -> Mapping[str, tuple[float, float]]:
    """Moment and per cent by object, of a MetricValueList of shares; raises `DecodeError`."""
    found: dict[str, tuple[float, float]] = {}
    for item in _read_values(body).items:
        try:
            share = quantity.parse(item.value, milli=True)
        except quantity.QuantityError as error:
            raise DecodeError("items", str(error)) from error
        found[item.described_object.name] = (times.epoch(item.timestamp), share / 10)
    return found
