"""HyperNodes, and what groups ask of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from app.kit.patterns import pattern_problem
from app.model.shape import LabelSelector
from app.model.topology import HyperNode, HyperNodeMember, NetworkTopology, TopologyMode
from app.wire.errors import Bytes, DecodeError, Reader
from app.wire.objects import meta
from app.wire.objects.meta import MetaJson
from app.wire.objects.selectors import LabelSelectorJson, label_selector


class TopologyJson(Struct, rename="camel", gc=False):
    """``networkTopology``."""

    mode: str | None = None
    highest_tier_allowed: int | None = None
    highest_tier_name: str | None = None


class _ExactJson(Struct, gc=False):
    name: str | None = None


class _PatternJson(Struct, gc=False):
    pattern: str | None = None


class _SelectorJson(Struct, rename="camel", gc=False):
    exact_match: _ExactJson | None = None
    regex_match: _PatternJson | None = None
    label_match: LabelSelectorJson | None = None


class _MemberJson(Struct, gc=False):
    type: str = ""
    selector: _SelectorJson | None = None


class _SpecJson(Struct, rename="camel", gc=False):
    tier: int = 0
    tier_name: str | None = None
    members: list[_MemberJson] | None = None


class _HyperNodeJson(Struct, gc=False):
    metadata: MetaJson
    spec: _SpecJson | None = None


_read: Reader[_HyperNodeJson] = Reader(_HyperNodeJson)
_NO_SPEC = _SpecJson()
_NO_SELECTOR = _SelectorJson()


def decode_hyper_node(text: Bytes) -> HyperNode:
    """A HyperNode; raises `DecodeError`. A selector that cannot be read says so in its member."""
    json = _read(text)
    spec = json.spec or _NO_SPEC
    return HyperNode(
        name=meta.named(json.metadata),
        tier=spec.tier,
        tier_name=spec.tier_name or "",
        labels=meta.labels(json.metadata.labels),
        members=tuple(map(_member, spec.members or ())),
    )


def members_of(spec: Mapping[str, Any]) -> tuple[HyperNodeMember, ...]:
    """The members that the ``spec`` of a HyperNode names; each tells what is wrong with it."""
    entries: Sequence[Any] = spec.get("members") or ()
    return tuple(map(_converted, entries))


def network_topology(json: TopologyJson | None, at: str) -> NetworkTopology | None:
    """What is asked for; None: nothing. Raises `DecodeError`."""
    if json is None:
        return None
    try:
        mode = TopologyMode(json.mode or TopologyMode.HARD)
    except ValueError as error:
        raise DecodeError(f"{at}.mode", f'"{json.mode}" is not a mode') from error
    return NetworkTopology(mode, json.highest_tier_allowed, json.highest_tier_name or "")


def _converted(entry: Any) -> HyperNodeMember:
    try:
        return _member(msgspec.convert(entry, _MemberJson))
    except msgspec.ValidationError as error:
        is_node = isinstance(entry, dict) and entry.get("type") == "Node"
        return HyperNodeMember(is_node, problem=str(error))


def _member(json: _MemberJson) -> HyperNodeMember:
    is_node, selector = json.type == "Node", json.selector or _NO_SELECTOR
    if selector.exact_match is not None:
        return HyperNodeMember(is_node, name=selector.exact_match.name or "")
    if selector.regex_match is not None:
        pattern = selector.regex_match.pattern or ""
        problem = pattern_problem(pattern)
        said = f"pattern {pattern}: {problem}" if problem else ""
        return HyperNodeMember(is_node, pattern=pattern, problem=said)
    if selector.label_match is not None:
        try:
            labels = label_selector(selector.label_match, "labelMatch")
        except DecodeError as error:
            return HyperNodeMember(is_node, problem=str(error))
        return _labelled(is_node, labels)
    return HyperNodeMember(is_node, problem="it has no selector")


def _labelled(is_node: bool, labels: LabelSelector | None) -> HyperNodeMember:
    if labels is None or not labels.requirements:
        return HyperNodeMember(is_node, problem="labelMatch has no requirement")
    return HyperNodeMember(is_node, labels=labels)
