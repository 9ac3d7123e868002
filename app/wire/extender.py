"""The bodies that kube-scheduler and an HTTP extender exchange.

Keys are Go's field names (``Pod``, ``NodeNames``, ``PodUID``): the Go structs have no JSON tags.
Nodes come as ``NodeNames`` (``nodeCacheCapable: true``) or as whole objects in ``Nodes``, and go
back in the form they came in, whole objects byte for byte. The pod is a whole object too; only its
identity is read at once, the rest when it is asked for, which for a pod that the cache knows is
never.

Answers are put together from ready pieces around what varies; the usual one, a single node, takes
less than a microsecond.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import Raw, Struct, field

from app.model.ids import NodeName, PodUid
from app.model.pod import Pod
from app.wire import filter_by_name
from app.wire.errors import Bytes, DecodeError, Reader, joined
from app.wire.objects.pods import DEFAULT_SCHEDULER, decode_pod

MAX_SCORE: Final = 10
"""Scores of Prioritize are 0 to this."""


@dataclass(frozen=True, slots=True, eq=False)
class AskedPod:
    """The pod of a request. ``node`` and ``nominated`` are empty when it has none."""

    uid: PodUid
    namespace: str
    name: str
    scheduler: str
    node: NodeName
    nominated: NodeName
    text: Raw

    def decode(self) -> Pod:
        """The whole pod; raises `DecodeError`."""
        try:
            return decode_pod(self.text)
        except DecodeError as error:
            raise DecodeError(joined("Pod", error.path), error.message) from error


@dataclass(frozen=True, slots=True, eq=False)
class FilterRequest:
    """Where may the pod go? ``objects`` has the nodes by name when they came as objects."""

    pod: AskedPod
    names: Sequence[NodeName]
    objects: Mapping[NodeName, Raw] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PrioritizeRequest:
    """The question which of these nodes is best."""

    pod: AskedPod
    names: Sequence[NodeName]


@dataclass(frozen=True, slots=True)
class BindRequest:
    """Bind the pod with that UID to ``node``."""

    uid: PodUid
    namespace: str
    name: str
    node: NodeName


@dataclass(frozen=True, slots=True)
class Victims:
    """The pods to evict from one node, highest priority first."""

    uids: tuple[PodUid, ...]
    budget_violations: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class PreemptRequest:
    """The question whether these pods may be evicted, on one of these nodes, for that pod."""

    pod: AskedPod
    victims: Mapping[NodeName, Victims]


class _PodMeta(Struct, gc=False):
    uid: str = ""
    namespace: str | None = None
    name: str = ""


class _PodSpec(Struct, rename="camel", gc=False):
    scheduler_name: str | None = None
    node_name: str | None = None


class _PodStatus(Struct, rename="camel", gc=False):
    nominated_node_name: str | None = None


class _PodHead(Struct, gc=False):
    metadata: _PodMeta
    spec: _PodSpec
    status: _PodStatus | None = None


class _NodeMeta(Struct, gc=False):
    name: str


class _NodeHead(Struct, gc=False):
    metadata: _NodeMeta


class _NodeList(Struct, gc=False):
    items: list[Raw] | None = None


class _Args(Struct, rename="pascal", gc=False):
    pod: Raw
    nodes: _NodeList | None = None
    node_names: list[NodeName] | None = None


class _BindArgs(Struct, rename="pascal", gc=False):
    pod_name: str
    pod_namespace: str
    node: str
    pod_uid: str = field(name="PodUID")


class _VictimMeta(Struct, gc=False):
    uid: PodUid


class _VictimPod(Struct, gc=False):
    metadata: _VictimMeta


class _Victims(Struct, gc=False):
    pods: list[_VictimPod] | None = field(default=None, name="Pods")
    violations: int = field(default=0, name="NumPDBViolations")


class _MetaPod(Struct, gc=False):
    uid: PodUid = field(name="UID")


class _MetaVictims(Struct, gc=False):
    pods: list[_MetaPod] | None = field(default=None, name="Pods")
    violations: int = field(default=0, name="NumPDBViolations")


class _PreemptArgs(Struct, rename="pascal", gc=False):
    pod: Raw
    node_name_to_victims: dict[NodeName, _Victims] | None = None
    node_name_to_meta_victims: dict[NodeName, _MetaVictims] | None = None


_read_args: Reader[_Args] = Reader(_Args)
_read_bind: Reader[_BindArgs] = Reader(_BindArgs)
_read_preempt: Reader[_PreemptArgs] = Reader(_PreemptArgs)
_read_pod: Reader[_PodHead] = Reader(_PodHead)
_read_node: Reader[_NodeHead] = Reader(_NodeHead)
_NO_STATUS: Final = _PodStatus()

_encode = msgspec.json.Encoder().encode


def decode_filter(body: Bytes) -> FilterRequest:
    """The body of Filter; raises `DecodeError`."""
    args = _read_args(body)
    pod = _asked(args.pod)
    if args.node_names is not None:
        return FilterRequest(pod, args.node_names)
    objects = _objects(args)
    return FilterRequest(pod, list(objects), objects)


def decode_prioritize(body: Bytes) -> PrioritizeRequest:
    """The body of Prioritize; raises `DecodeError`."""
    request = decode_filter(body)
    return PrioritizeRequest(request.pod, request.names)


def decode_bind(body: Bytes) -> BindRequest:
    """The body of Bind; raises `DecodeError`."""
    args = _read_bind(body)
    for key, value in (("PodUID", args.pod_uid), ("PodName", args.pod_name), ("Node", args.node)):
        if not value:
            raise DecodeError(key, "is empty")
    return BindRequest(PodUid(args.pod_uid), args.pod_namespace, args.pod_name, NodeName(args.node))


def decode_preempt(body: Bytes) -> PreemptRequest:
    """The body of Preempt; raises `DecodeError`."""
    args = _read_preempt(body)
    pod = _asked(args.pod)
    if args.node_name_to_meta_victims is not None:
        victims = {
            node: Victims(tuple(p.uid for p in entry.pods or ()), entry.violations)
            for node, entry in args.node_name_to_meta_victims.items()
        }
    elif args.node_name_to_victims is not None:
        victims = {
            node: Victims(tuple(p.metadata.uid for p in entry.pods or ()), entry.violations)
            for node, entry in args.node_name_to_victims.items()
        }
    else:
        raise DecodeError("", "neither NodeNameToVictims nor NodeNameToMetaVictims is given")
    return PreemptRequest(pod, victims)


def filter_answer(
    request: FilterRequest, passed: Sequence[NodeName], *, refused: str = ""
) -> bytes:
    """The pod may go to ``passed``, some of the nodes of ``request``.

    With ``refused``, the text stands for every other node in ``FailedAndUnresolvableNodes``: what
    is in neither list is refused too, but without a word in the pod's condition.
    """
    reasons = b"{}"
    if refused and len(passed) < len(request.names):
        reasons = _encode(dict.fromkeys(_others(request.names, passed), refused))
    if request.objects is None:
        return filter_by_name.answer(passed, reasons)
    items = b",".join(bytes(request.objects[name]) for name in passed)
    return (
        b'{"NodeNames":null,"Nodes":{"items":[%b]},'
        b'"FailedNodes":{},"FailedAndUnresolvableNodes":%b,"Error":""}'
    ) % (items, reasons)


def filter_error(text: str) -> bytes:
    """The call failed; only the back-off ladder tries the pod again."""
    return (
        b'{"NodeNames":null,"Nodes":null,"FailedNodes":{},"FailedAndUnresolvableNodes":{},'
        b'"Error":%b}'
    ) % _encode(text)


def prioritize_answer(scores: Iterable[tuple[NodeName, int]]) -> bytes:
    """Scores from 0 to `MAX_SCORE`."""
    return _encode([{"Host": node, "Score": score} for node, score in scores])


def bind_answer(error: str = "") -> bytes:
    """The pod is bound, or why it is not."""
    return b'{"Error":%b}' % _encode(error)


def preempt_answer(victims: Mapping[NodeName, Victims]) -> bytes:
    """The evictions that may be done; none is a veto."""
    nodes = {
        node: {
            "Pods": [{"UID": uid} for uid in entry.uids],
            "NumPDBViolations": entry.budget_violations,
        }
        for node, entry in victims.items()
    }
    return _encode({"NodeNameToMetaVictims": nodes})


def _asked(text: Raw) -> AskedPod:
    head = _read_pod(text, "Pod")
    meta, spec, status = head.metadata, head.spec, head.status or _NO_STATUS
    if not meta.uid:
        raise DecodeError("Pod.metadata.uid", "is missing")
    return AskedPod(
        uid=PodUid(meta.uid),
        namespace=meta.namespace or "",
        name=meta.name,
        scheduler=spec.scheduler_name or DEFAULT_SCHEDULER,
        node=NodeName(spec.node_name or ""),
        nominated=NodeName(status.nominated_node_name or ""),
        text=text,
    )


def _objects(args: _Args) -> dict[NodeName, Raw]:
    if args.nodes is None:
        raise DecodeError("", "neither Nodes nor NodeNames is given")
    found = {}
    for i, raw in enumerate(args.nodes.items or ()):
        found[NodeName(_read_node(raw, f"Nodes.items[{i}]").metadata.name)] = raw
    return found


def _others(names: Sequence[NodeName], passed: Sequence[NodeName]) -> Sequence[NodeName]:
    if not passed:
        return names
    kept = frozenset(passed)
    return [name for name in names if name not in kept]
