"""``topologyAffinity`` of PodGroups and vcjobs."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from app.model.topology import PartTerm, Tier, TopologyAffinity
from app.wire.errors import DecodeError
from app.wire.findings import Findings, at
from app.wire.objects.topology_affinity import read_affinity


def check_affinity(
    holder: Mapping[str, Any],
    path: str,
    findings: Findings,
    *,
    parts: Collection[str],
    called: str,
    minimum: int,
) -> None:
    """``topologyAffinity`` of what is at ``path``.

    Its terms may name ``parts``, which are ``called`` so; ``minimum`` members start together.
    """
    where = at(path, "topologyAffinity")
    try:
        affinity = read_affinity(holder.get("topologyAffinity"), where)
    except DecodeError as error:
        findings.refuse(error.path, error.message)
        return
    if affinity is None:
        return
    for name in sorted(affinity.policies - frozenset(parts)):
        findings.refuse(where, f"subGroups names {name}, and no {called} has that name")
    for near, apart in _contradictions(affinity):
        findings.refuse(
            where,
            f"subGroupAffinity of {_listed(near)} and subGroupAntiAffinity of {_listed(apart)} "
            f"contradict each other at {_tier(apart.tier)}: what is together has to be of a higher "
            "tier than what is apart",
        )
    for term in affinity.spread:
        if term.least > max(minimum, 1):
            findings.warn(
                at(where, "memberSpread"),
                f"minDomains is {term.least}, but only {max(minimum, 1)} members start together: "
                "they are in fewer domains until more have come",
            )


def _contradictions(affinity: TopologyAffinity) -> Iterator[tuple[PartTerm, PartTerm]]:
    """Required terms that hold for no places: two sub-groups in one domain, and in different."""
    for near in affinity.parts_near:
        for apart in affinity.parts_apart:
            both = set(near.policies).intersection(apart.policies)
            if near.weight or apart.weight or len(both) < min(len(apart.policies), 2):
                continue
            if _is_no_higher(near.tier, apart.tier):
                yield near, apart


def _is_no_higher(near: Tier, apart: Tier) -> bool:
    """As far as an object tells: what tiers names are of, HyperNodes tell."""
    if near.number is not None and apart.number is not None:
        return near.number <= apart.number
    return near == apart


def _listed(term: PartTerm) -> str:
    return "[" + " ".join(term.policies) + "]"


def _tier(tier: Tier) -> str:
    return f"tier {tier.name or tier.number}"
