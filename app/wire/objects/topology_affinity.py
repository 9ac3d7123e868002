"""``topologyAffinity``: where members go by where others are."""

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct, ValidationError, convert

from app.model.topology import GroupTerm, PartTerm, SpreadTerm, Tier, TopologyAffinity
from app.wire.errors import DecodeError
from app.wire.objects.selectors import LabelSelectorJson, label_selector

_MOST = 100

T = TypeVar("T")


class _TermJson(Struct, rename="camel", gc=False):
    weight: int | None = None
    topology_tier_name: str | None = None
    topology_tier: int | None = None


class _GroupTermJson(_TermJson, rename="camel", gc=False):
    pod_group_selector: LabelSelectorJson | None = None
    namespace_selector: LabelSelectorJson | None = None


class _PartTermJson(_TermJson, rename="camel", gc=False):
    sub_groups: list[str] | None = None


class _SpreadTermJson(_TermJson, rename="camel", gc=False):
    min_domains: int | None = None
    max_domains: int | None = None


J = TypeVar("J", bound=_TermJson)


class _BlockJson(Struct, Generic[J], gc=False):
    required: list[J] | None = None
    preferred: list[J] | None = None


class TopologyAffinityJson(Struct, rename="camel", gc=False):
    """``topologyAffinity``."""

    pod_group_affinity: _BlockJson[_GroupTermJson] | None = None
    pod_group_anti_affinity: _BlockJson[_GroupTermJson] | None = None
    sub_group_affinity: _BlockJson[_PartTermJson] | None = None
    sub_group_anti_affinity: _BlockJson[_PartTermJson] | None = None
    member_spread: _BlockJson[_SpreadTermJson] | None = None


def read_affinity(value: object, at: str) -> TopologyAffinity | None:
    """What an unread value at ``at`` asks for; raises `DecodeError`."""
    try:
        json = convert(value, TopologyAffinityJson | None)
    except ValidationError as error:
        raise DecodeError(at, str(error)) from error
    return topology_affinity(json, at)


def topology_affinity(json: TopologyAffinityJson | None, at: str) -> TopologyAffinity | None:
    """What is asked for; None: nothing. Raises `DecodeError`."""
    if json is None:
        return None
    found = TopologyAffinity(
        groups_near=_terms(json.pod_group_affinity, f"{at}.podGroupAffinity", _group),
        groups_apart=_terms(json.pod_group_anti_affinity, f"{at}.podGroupAntiAffinity", _group),
        parts_near=_terms(json.sub_group_affinity, f"{at}.subGroupAffinity", _part),
        parts_apart=_terms(json.sub_group_anti_affinity, f"{at}.subGroupAntiAffinity", _part),
        spread=_terms(json.member_spread, f"{at}.memberSpread", _spread),
    )
    return None if found == TopologyAffinity() else found


def _terms(json: _BlockJson[J] | None, at: str, read: Callable[[J, str, int], T]) -> tuple[T, ...]:
    """Each term of a block: the required ones, of weight 0, and then the preferred ones."""
    if json is None:
        return ()
    found: list[T] = []
    for index, term in enumerate(json.required or ()):
        where = f"{at}.required[{index}]"
        if term.weight is not None:
            raise DecodeError(f"{where}.weight", "a required term has no weight")
        found.append(read(term, where, 0))
    for index, term in enumerate(json.preferred or ()):
        where = f"{at}.preferred[{index}]"
        found.append(read(term, where, _weight(term, where)))
    return tuple(found)


def _group(json: _GroupTermJson, at: str, weight: int) -> GroupTerm:
    groups = label_selector(json.pod_group_selector, f"{at}.podGroupSelector")
    if groups is None:
        raise DecodeError(f"{at}.podGroupSelector", "a term names groups")
    namespaces = label_selector(json.namespace_selector, f"{at}.namespaceSelector")
    return GroupTerm(groups, _tier(json, at), namespaces, weight)


def _part(json: _PartTermJson, at: str, weight: int) -> PartTerm:
    if not json.sub_groups:
        raise DecodeError(f"{at}.subGroups", "a term names sub-groups")
    return PartTerm(tuple(dict.fromkeys(json.sub_groups)), _tier(json, at), weight)


def _spread(json: _SpreadTermJson, at: str, weight: int) -> SpreadTerm:
    least, most = json.min_domains, json.max_domains
    if least is None and most is None:
        raise DecodeError(at, "a term has minDomains, maxDomains or both")
    if least is not None and most is not None and least > most:
        raise DecodeError(at, f"minDomains {least} is more than maxDomains {most}")
    return SpreadTerm(_tier(json, at), least or 1, most, weight)


def _tier(json: _TermJson, at: str) -> Tier:
    if bool(json.topology_tier_name) is (json.topology_tier is not None):
        raise DecodeError(at, "a term names one tier, by topologyTierName or by topologyTier")
    return Tier(json.topology_tier, json.topology_tier_name or "")


def _weight(json: _TermJson, at: str) -> int:
    if json.weight is None or not 1 <= json.weight <= _MOST:
        raise DecodeError(f"{at}.weight", "a preferred term has a weight of 1 to 100")
    return json.weight
