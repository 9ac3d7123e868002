"""What lies below each HyperNode: nodes, and other HyperNodes with theirs."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.core.topology.selecting import Labels, Names
from app.model.topology import HyperNodeMember

Members = Sequence[HyperNodeMember]


@dataclass(frozen=True, slots=True)
class Below:
    """The nodes below a HyperNode, and what is wrong with it or with those below."""

    nodes: frozenset[str]
    in_cycle: bool = False
    invalid: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(slots=True)
class _Direct:
    nodes: set[str] = field(default_factory=set)
    children: set[str] = field(default_factory=set)
    invalid: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


class Tree:
    """All HyperNodes and all nodes; each change of one is told to it."""

    def __init__(self) -> None:
        self._nodes = Names()
        self._hyper = Names()
        self._members: dict[str, Members] = {}
        self._direct: dict[str, _Direct] = {}
        self.changes = 0
        """Grows with each change that may matter to what lies below a HyperNode."""

    def put_node(self, name: str, labels: Labels) -> bool:
        """A node is there; whether that may change what lies below a HyperNode."""
        return self._changed(self._nodes.put(name, labels))

    def drop_node(self, name: str) -> bool:
        """A node is gone; whether that may change what lies below a HyperNode."""
        return self._changed(self._nodes.drop(name))

    def put(self, name: str, labels: Labels, members: Members) -> bool:
        """A HyperNode is there; whether that may change what lies below any."""
        relabelled = self._hyper.put(name, labels)
        changed = self._members.get(name) != members
        self._members[name] = members
        return self._changed(relabelled or changed)

    def drop(self, name: str) -> bool:
        """A HyperNode is gone; whether that may change what lies below any."""
        self._members.pop(name, None)
        return self._changed(self._hyper.drop(name))

    def below(self, name: str) -> Below:
        """What lies below the HyperNode ``name``, each node once however it is reached."""
        nodes: set[str] = set()
        invalid: list[str] = []
        missing: list[str] = []
        seen: set[str] = set()
        ahead = [name]
        in_cycle = False
        while ahead:
            each = ahead.pop()
            direct = self._directly(each)
            nodes |= direct.nodes
            invalid += direct.invalid
            missing += direct.missing
            in_cycle = in_cycle or name in direct.children
            ahead += direct.children - seen
            seen |= direct.children
        return Below(
            frozenset(nodes), in_cycle, tuple(sorted(set(invalid))), tuple(sorted(set(missing)))
        )

    def children(self, name: str) -> frozenset[str]:
        """The HyperNodes that are members of the HyperNode ``name``."""
        return frozenset(self._directly(name).children)

    def parents(self, names: Sequence[str]) -> dict[str, str]:
        """The first of the HyperNodes behind it in ``names`` that has it as a member, by name.

        Left out are those that no HyperNode behind them has.
        """
        at = {name: position for position, name in enumerate(names)}
        found: dict[str, str] = {}
        for position, name in reversed(list(enumerate(names))):
            for child in self.children(name):
                if at.get(child, position) < position:
                    found[child] = name
        return found

    def _directly(self, name: str) -> _Direct:
        if name not in self._direct:
            direct = self._direct[name] = _Direct()
            for member in self._members.get(name, ()):
                self._take(member, direct)
        return self._direct[name]

    def _take(self, member: HyperNodeMember, direct: _Direct) -> None:
        names, found = self._nodes, direct.nodes
        if not member.is_node:
            names, found = self._hyper, direct.children
        if member.problem:
            direct.invalid.append(member.problem)
            return
        selected = names.selected(member)
        found |= selected
        if member.name and not selected:
            direct.missing.append(f"{'Node' if member.is_node else 'HyperNode'} {member.name}")

    def _changed(self, changed: bool) -> bool:
        if changed:
            self._direct.clear()
            self.changes += 1
        return changed
