"""What is wrong with HyperNodes. None of it is fatal: a HyperNode has the nodes that were found."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from app.core.topology.tree import Below, Tree

_TOLD: Final = 5
"""Of many names so many are told."""

OVERLAP: Final = "Overlap"
TIER_ORDER: Final = "TierOrder"


@dataclass(frozen=True, slots=True)
class Problem:
    """``reason`` is one word, for programs; ``message`` a sentence without its end."""

    reason: str
    message: str


def of_members(below: Below) -> Iterator[Problem]:
    """What is wrong with the members of a HyperNode, the worst first."""
    if below.in_cycle:
        yield Problem("Cycle", "it is a member of itself")
    if below.invalid:
        yield Problem("InvalidSelector", "; ".join(below.invalid[:_TOLD]))
    if below.missing:
        yield Problem("NoSuchMember", f"there is no {_listed(below.missing)}")
    if not below.nodes:
        yield Problem("Empty", "it has no nodes")


def problems(tree: Tree, tiers: Mapping[str, int]) -> dict[str, tuple[Problem, ...]]:
    """By name of the HyperNodes, whose ``tiers`` are given; those that are in order are left out.

    Besides its members a HyperNode may be wrong by its place: below it has to be a lower tier, and
    no node may be in two HyperNodes of one tier.
    """
    belows = {name: tree.below(name) for name in tiers}
    overlaps = _overlaps(belows, tiers)
    found: dict[str, tuple[Problem, ...]] = {}
    for name in tiers:
        said = list(of_members(belows[name]))
        high = [each for each in tree.children(name) if tiers.get(each, -1) >= tiers[name]]
        if high and not belows[name].in_cycle:
            said.append(Problem(TIER_ORDER, f"its tier is not above that of {_listed(high)}"))
        if overlaps.get(name):
            said.append(Problem(OVERLAP, f"it has nodes of {_listed(overlaps[name])} too"))
        if said:
            found[name] = tuple(said)
    return found


def _overlaps(belows: Mapping[str, Below], tiers: Mapping[str, int]) -> dict[str, set[str]]:
    """The HyperNodes of the same tier that have a node of it too, by name."""
    first: dict[tuple[int, str], str] = {}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name in sorted(belows):
        for node in belows[name].nodes:
            other = first.setdefault((tiers[name], node), name)
            if other != name:
                found[name].add(other)
                found[other].add(name)
    return found


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = len(ordered) - _TOLD
    rest = f" and {more} more" if more > 0 else ""
    return f"{', '.join(ordered[:_TOLD])}{rest}"
