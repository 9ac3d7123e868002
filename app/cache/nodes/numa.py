"""The cpus that pods have to themselves on nodes with NUMA nodes, reserved places included.

A node's agent says what is free and which pods have what; it says so late. Until it does, a pod
counts as having what its kubelet will give it (:mod:`app.core.placement.sockets`): that is decided
when the pod has a place, and told to the pod when it is bound. Of agents that name no pods, those
that run are taken to be in what the agent says.

Charges are followed lazily, as nothing is asked of them between two snapshots.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.cache.nodes.usage import NodeUsage
from app.core.placement.sockets import Taken, assign, less, total
from app.model.ids import NodeName, PodUid
from app.model.numa import Cpus, NumaLayout, NumaNeed, NumaNode, NumaTopology


@dataclass(frozen=True, slots=True)
class Occupant:
    """A pod or slot that needs cpus of its own; ``name`` is ``namespace/name``, empty for slots.

    ``decided`` are the cpus of NUMA nodes, by number, that the pod says it was told when it was
    bound. Its owner may write that too, so it counts only where the pod needs as many.
    """

    need: NumaNeed
    name: str = ""
    runs: bool = False
    decided: Mapping[int, int] | None = None


@dataclass(frozen=True, slots=True)
class _Held:
    node: NodeName
    need: NumaNeed
    cpus: Cpus


class NumaUsage:
    """Numatopologies, and the cpus of holders of charges; ``occupant`` tells of a holder.

    It tells None of one that needs no cpus of its own, or is not ours.
    """

    def __init__(
        self, node_usage: NodeUsage, *, occupant: Callable[[str], Occupant | None]
    ) -> None:
        self.heeded = False
        """Whether the planner sends pods only where their kubelet takes them."""
        self._usage = node_usage
        self._occupant = occupant
        self._topologies: dict[NodeName, NumaTopology] = {}
        self._held: dict[str, _Held] = {}
        self._on: dict[NodeName, dict[str, Cpus]] = {}
        self._changed: dict[str, None] = {}
        self._where: dict[str, NodeName] = {}
        """The nodes of holders, of whichever pods."""
        self._told: dict[NodeName, NumaNode] = {}
        self._stale: set[NodeName] = set()
        """Nodes of which that says something else by now."""
        node_usage.moved.append(self._note)

    def set_topology(self, topology: NumaTopology) -> bool:
        """Add or replace; returns whether pods may go where they could not before."""
        old = self._topologies.get(topology.name)
        self._topologies[topology.name] = topology
        self._stale.add(topology.name)
        if old is None or old.layout != topology.layout:
            self._begin_anew(topology.name)
            return True
        return any(now > before for now, before in zip(topology.free, old.free, strict=True)) or (
            old.pods != topology.pods
        )

    def drop_topology(self, name: NodeName) -> None:
        """Forget a Numatopology, and what its pods have."""
        if self._topologies.pop(name, None) is not None:
            self._told.pop(name, None)
            self._begin_anew(name)
        if not self._topologies:  # what changes is not noted until one comes
            self._where.clear()
            self._changed.clear()

    def decision(self, uid: PodUid) -> tuple[NumaLayout, Cpus] | None:
        """The cpus that a pod with a place is meant to have; None: nothing is decided."""
        self._follow()
        held = self._held.get(uid)
        if held is None or not any(held.cpus):
            return None
        return self._topologies[held.node].layout, held.cpus

    def admits(self, node: NodeName, needs: Iterable[NumaNeed]) -> bool:
        """Whether the kubelet of ``node`` takes pods with these ``needs``, one after the other.

        It does as far as is known, and where nothing is heeded.
        """
        topology = self._topologies.get(node)
        if not self.heeded or topology is None or not topology.layout.rules:
            return True
        self._follow()
        layout, free = topology.layout, self._free(topology)
        for need in needs:
            found = assign(layout.policy, layout.sizes, free, need)
            if not isinstance(found, Taken):
                return False
            free = less(free, found.cpus)
        return True

    def nodes(self) -> dict[NodeName, NumaNode]:
        """What is free on each node, and what terminating pods give back."""
        self._follow()
        for name in self._stale & self._topologies.keys():
            self._told[name] = self._node(self._topologies[name])
        self._stale.clear()
        return dict(self._told)

    def taken(self) -> dict[PodUid, Cpus]:
        """What the pods on these nodes have, as far as is known."""
        self._follow()
        return {
            PodUid(holder): cpus
            for topology in self._topologies.values()
            for holder, cpus in self._taken_on(topology)
        }

    def _node(self, topology: NumaTopology) -> NumaNode:
        going = (cpus for holder, cpus in self._taken_on(topology) if self._is_going(holder))
        coming = total(going, nodes=len(topology.layout.ids))
        return NumaNode(topology.layout, self._free(topology), coming)

    def _note(self, holder: str) -> None:
        if self._topologies:
            self._changed[holder] = None

    def _begin_anew(self, node: NodeName) -> None:
        for holder in self._on.pop(node, {}):
            del self._held[holder]
        self._changed.update(dict.fromkeys(sorted(self._usage.holders(node))))

    def _follow(self) -> None:
        """Take up changed charges: first what is given back, then what is taken."""
        changed, self._changed = self._changed, {}
        for holder in changed:
            held, charge = self._held.get(holder), self._usage.charges.get(holder)
            self._note_where(holder, charge.node if charge is not None else None)
            if held is not None and (charge is None or charge.node != held.node):
                del self._held[holder]
                del self._on[held.node][holder]
        for holder in changed:
            charge = self._usage.charges.get(holder)
            topology = self._topologies.get(charge.node) if charge is not None else None
            if topology is not None and topology.layout.static and holder not in self._held:
                self._take(holder, topology)

    def _note_where(self, holder: str, node: NodeName | None) -> None:
        before = self._where.pop(holder, None)
        self._stale.update(name for name in (before, node) if name is not None)
        if node is not None:
            self._where[holder] = node

    def _take(self, holder: str, topology: NumaTopology) -> None:
        occupant, layout = self._occupant(holder), topology.layout
        if occupant is None:
            return
        cpus = tuple((occupant.decided or {}).get(id_, 0) for id_ in layout.ids)
        if sum(cpus) != sum(occupant.need.cpus):
            found = assign(layout.policy, layout.sizes, self._free(topology), occupant.need)
            cpus = found.cpus if isinstance(found, Taken) else (0,) * len(layout.ids)
        self._held[holder] = _Held(topology.name, occupant.need, cpus)
        self._on.setdefault(topology.name, {})[holder] = cpus

    def _free(self, topology: NumaTopology) -> Cpus:
        free = topology.free
        for holder, cpus in self._on.get(topology.name, {}).items():
            if self._reported(holder, topology) is None:
                free = less(free, cpus)
        return free

    def _reported(self, holder: str, topology: NumaTopology) -> Cpus | None:
        """What the agent says that ``holder`` has; None: it has not seen the pod."""
        said = topology.pods.get(holder)
        if said is not None:
            return said
        occupant = self._occupant(holder)
        if occupant is None:
            return None
        said = topology.pods.get(occupant.name)
        if said is None and occupant.runs and not topology.pods:
            return self._on[topology.name][holder]
        return said

    def _taken_on(self, topology: NumaTopology) -> Iterator[tuple[str, Cpus]]:
        ours = self._on.get(topology.name, {})
        for holder, cpus in ours.items():
            reported = self._reported(holder, topology)
            yield holder, cpus if reported is None else reported
        for holder in self._usage.holders(topology.name) - ours.keys():
            said = topology.pods.get(holder)
            if said is not None:
                yield holder, said

    def _is_going(self, holder: str) -> bool:
        charge = self._usage.charges.get(holder)
        return charge is not None and charge.releasing
