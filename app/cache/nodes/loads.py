"""How busy nodes are, and what came to them too late to be measured."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace

from app.cache.nodes.usage import NodeUsage
from app.model.amounts import CPU, MEMORY, Amounts
from app.model.colocation import USED_BY
from app.model.ids import NodeName
from app.model.load import NodeLoad, Unseen
from app.model.shape import PodShape

_Pod = tuple[Amounts, Amounts]
"""What a pod requests, and what it may use beyond that."""


class Loads:
    """The loads of nodes; until some are set nothing is followed."""

    def __init__(
        self,
        node_usage: NodeUsage,
        *,
        shape_of: Callable[[str], PodShape | None],
        clock: Callable[[], float],
    ) -> None:
        self._usage = node_usage
        self._shape_of = shape_of
        self._clock = clock
        self._loads: Mapping[NodeName, NodeLoad] = {}
        self._follows = False
        self._came: dict[str, tuple[NodeName, float]] = {}
        """Holders of charges: the node, and since when; only of those that came lately."""
        node_usage.moved.append(self._note)

    @property
    def known(self) -> Mapping[NodeName, NodeLoad]:
        """The loads as they were set."""
        return self._loads

    def set(self, loads: Mapping[NodeName, NodeLoad]) -> bool:
        """Replace all of them; returns whether any is another than before."""
        changed = loads != self._loads
        self._loads = dict(loads)
        self._follows = bool(loads)
        self._came = {
            holder: (node, since)
            for holder, (node, since) in self._came.items()
            if (load := loads.get(node)) is not None and since > load.at - load.window_s
        }
        return changed

    def nodes(self) -> dict[NodeName, NodeLoad]:
        """The loads, each with what pods request that came after it was measured."""
        found = dict(self._loads)
        came: defaultdict[NodeName, list[_Pod]] = defaultdict(list)
        for holder, (node, _) in self._came.items():
            charge = self._usage.charges.get(holder)
            if charge is not None and node in found and not charge.releasing:
                came[node].append((charge.request, self._burst(holder)))
        for node, pods in came.items():
            found[node] = replace(found[node], unseen=_sum(pods))
        return found

    def _burst(self, holder: str) -> Amounts:
        """What the pod or slot may use beyond its requests."""
        shape = self._shape_of(holder)
        return () if shape is None else shape.burst

    def _note(self, holder: str) -> None:
        if not self._follows:
            return
        charge = self._usage.charges.get(holder)
        if charge is None:
            self._came.pop(holder, None)
        elif self._came.get(holder, ("", 0.0))[0] != charge.node:
            self._came[holder] = (charge.node, self._clock())


def _sum(pods: list[_Pod]) -> Unseen:
    cpu, memory = ([_asked(request, name) for request, _ in pods] for name in (CPU, MEMORY))
    bursts = Counter[str]()
    for _, burst in pods:
        bursts.update(dict(burst))
    return Unseen(sum(cpu), sum(memory), cpu.count(0), memory.count(0), bursts[CPU], bursts[MEMORY])


def _asked(request: Amounts, measured: str) -> int:
    """What is requested of what is measured so, by online pods or by offline ones."""
    return sum(amount for name, amount in request if name in USED_BY[measured])
