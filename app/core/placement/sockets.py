"""Which cpus of which NUMA nodes a kubelet will give a pod, or why it will refuse it.

It is what topology manager and CPU manager do, in numbers of cpus: for each container in turn they
look at all sets of NUMA nodes that have cpus enough (*hints*). A hint is *preferred* if no smaller
set could ever do, were all its cpus free. The best hint is a preferred one, else the smallest; of
equal ones that with the lower numbers. Policy ``restricted`` admits preferred hints only,
``single-numa-node`` those of one NUMA node. Cpus are taken from that set: whole NUMA nodes first,
then where the fewest are free.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from app.model.numa import Cpus, NumaNeed, NumaPolicy

Mask = tuple[int, ...]
"""Positions of NUMA nodes."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The pod is admitted, and has ``cpus`` of each NUMA node."""

    cpus: Cpus

    @property
    def spread(self) -> int:
        """How many NUMA nodes they are of."""
        return sum(map(bool, self.cpus))


@dataclass(frozen=True, slots=True)
class Lacking:
    """A container needs ``asked`` cpus on no more than ``nodes`` NUMA nodes; at most ``most`` are.

    ``nodes`` 0: on any.
    """

    asked: int
    most: int
    nodes: int


@lru_cache(maxsize=16_384)
def assign(policy: NumaPolicy, sizes: Cpus, free: Cpus, need: NumaNeed) -> Taken | Lacking:
    """What becomes of a pod on a node with a static CPU manager."""
    left = tuple(max(each, 0) for each in free)
    taken = (0,) * len(free)
    for asked in need.cpus:
        if not asked:
            continue
        found = _container(policy, sizes, left, asked)
        if isinstance(found, Lacking):
            return found
        left, taken = less(left, found.cpus), plus(taken, found.cpus)
    return Taken(taken)


def plus(one: Cpus, other: Cpus) -> Cpus:
    """The sum."""
    return tuple(a + b for a, b in zip(one, other, strict=True))


def less(one: Cpus, other: Cpus) -> Cpus:
    """What is left of ``one``, at least nothing."""
    return tuple(max(a - b, 0) for a, b in zip(one, other, strict=True))


def total(many: Iterable[Cpus], *, nodes: int) -> Cpus:
    """The sum of all, of so many NUMA nodes."""
    found: Cpus = (0,) * nodes
    for each in many:
        found = plus(found, each)
    return found


def _container(policy: NumaPolicy, sizes: Cpus, free: Cpus, asked: int) -> Taken | Lacking:
    if sum(free) < asked:
        return Lacking(asked, sum(free), 0)
    every: Mask = tuple(range(len(free)))
    if not policy.aligns:
        return Taken(_take(every, sizes, free, asked))
    least = _least(sizes, asked)
    if policy is NumaPolicy.SINGLE_NUMA_NODE and least > 1:
        return Lacking(asked, max(free, default=0), 1)
    fitting = (mask for mask in _masks(len(free)) if sum(free[at] for at in mask) >= asked)
    best = min(fitting, key=lambda mask: (len(mask) != least, len(mask), _number(mask)))
    if len(best) != least and policy is not NumaPolicy.BEST_EFFORT:
        return Lacking(asked, sum(sorted(free, reverse=True)[:least]), least)
    return Taken(_take(best, sizes, free, asked))


def _least(sizes: Cpus, asked: int) -> int:
    """How many NUMA nodes have so many cpus together, were all free."""
    held = 0
    for count, size in enumerate(sorted(sizes, reverse=True), start=1):
        held += size
        if held >= asked:
            return count
    return len(sizes)


def _take(mask: Mask, sizes: Cpus, free: Cpus, asked: int) -> Cpus:
    taken = [0] * len(free)
    for at in mask:
        if 0 < free[at] == sizes[at] <= asked:
            taken[at] = sizes[at]
            asked -= sizes[at]
    for at in sorted(mask, key=lambda at: (free[at] - taken[at], at)):
        more = min(free[at] - taken[at], asked)
        taken[at] += more
        asked -= more
    return tuple(taken)


@lru_cache(maxsize=16)
def _masks(nodes: int) -> tuple[Mask, ...]:
    return tuple(
        tuple(at for at in range(nodes) if number >> at & 1) for number in range(1, 1 << nodes)
    )


def _number(mask: Mask) -> int:
    return sum(1 << at for at in mask)
