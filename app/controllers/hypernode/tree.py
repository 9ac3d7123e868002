"""What lies below each HyperNode: nodes, and other HyperNodes with theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.controllers.hypernode.selecting import Labels, Names, SelectorError

Members = Sequence[Mapping[str, Any]]


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

    def _directly(self, name: str) -> _Direct:
        if name not in self._direct:
            direct = self._direct[name] = _Direct()
            for member in self._members.get(name, ()):
                self._take(member, direct)
        return self._direct[name]

    def _take(self, member: Mapping[str, Any], direct: _Direct) -> None:
        is_node = member.get("type") == "Node"
        names, found = (self._nodes, direct.nodes) if is_node else (self._hyper, direct.children)
        selector = member.get("selector") or {}
        try:
            selected = names.selected(selector)
        except SelectorError as error:
            direct.invalid.append(str(error))
            return
        found |= selected
        exact = (selector.get("exactMatch") or {}).get("name")
        if exact and not selected:
            direct.missing.append(f"{member.get('type')} {exact}")

    def _changed(self, changed: bool) -> bool:
        if changed:
            self._direct.clear()
        return changed
