"""The facts that rules ask for, kept from what is put in: a few words of each object.

The process fills it from its informers, the embedded cluster from its store. Only queues are kept
whole; of a PodGroup its queue, of a node its size, of a namespace its annotations.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from app.wire import kinds
from app.wire.kinds import Resource
from app.wire.reading import amounts, integer, mapping, text
from app.wire.unstructured import Key, Object, annotations, key_of, name, spec, status

NAMESPACES: Final = Resource("Namespace", "v1", "namespaces", namespaced=False)

Size = tuple[tuple[str, int], ...]


def _group_queue(group: Object) -> str:
    return text(spec(group).get("queue"))


def _size(node: Object) -> Size:
    return tuple(sorted(amounts(mapping(status(node)).get("allocatable")).items()))


def _value(priority_class: Object) -> int:
    return integer(priority_class.get("value"))


def _whole(queue: Object) -> Object:
    return queue


_KEPT: Final[Mapping[Resource, Callable[[Object], Any]]] = {
    kinds.QUEUES: _whole,
    kinds.POD_GROUPS: _group_queue,
    kinds.PRIORITY_CLASSES: _value,
    kinds.NODES: _size,
    NAMESPACES: annotations,
}

FOLLOWED: Final = tuple(_KEPT)
"""The kinds whose objects are to be put in."""


class ClusterFacts:
    """Facts about one cluster, kept up to date by :meth:`put` and :meth:`drop`."""

    def __init__(self) -> None:
        self._kept: dict[Resource, dict[Key, Any]] = {resource: {} for resource in FOLLOWED}
        self._sizes: Counter[Size] = Counter()
        self._groups: Counter[str] = Counter()

    def put(self, resource: Resource, item: Object) -> None:
        """An object is there, new or changed."""
        key = key_of(item)
        self.drop(resource, key)
        value = _KEPT[resource](item)
        self._kept[resource][key] = value
        self._count(resource, value, 1)

    def drop(self, resource: Resource, key: Key) -> None:
        """An object is gone."""
        kept = self._kept[resource]
        if key in kept:
            self._count(resource, kept.pop(key), -1)

    def with_queues(self, queues: Iterable[Object]) -> "ClusterFacts":
        """Other facts: ``queues`` instead of the queues that were put in."""
        view = ClusterFacts()
        view._kept = {**self._kept, kinds.QUEUES: {Key("", name(queue)): queue for queue in queues}}
        view._sizes, view._groups = self._sizes, self._groups
        return view

    def queue(self, name: str) -> Object | None:
        """The queue of that name."""
        found: Object | None = self._kept[kinds.QUEUES].get(Key("", name))
        return found

    def queues(self) -> Iterable[Object]:
        """All queues."""
        return list(self._kept[kinds.QUEUES].values())

    def groups_in(self, queue: str) -> int:
        """How many PodGroups name that queue."""
        return self._groups[queue]

    def has_priority_class(self, name: str) -> bool:
        """Whether there is one of that name."""
        return Key("", name) in self._kept[kinds.PRIORITY_CLASSES]

    def priority(self, name: str) -> int:
        """The value of the priority class of that name; 0 without one."""
        value: int = self._kept[kinds.PRIORITY_CLASSES].get(Key("", name), 0)
        return value

    def node_sizes(self) -> Iterable[Mapping[str, int]]:
        """What the nodes can give; nodes that can give the same count once."""
        return [dict(size) for size in self._sizes]

    def total(self) -> Mapping[str, int]:
        """What all nodes together can give."""
        total: Counter[str] = Counter()
        for size, count in self._sizes.items():
            for resource, number in size:
                total[resource] += number * count
        return total

    def namespace_annotations(self, namespace: str) -> Mapping[str, str]:
        """Annotations of a namespace; empty when there is none."""
        found: Mapping[str, str] = self._kept[NAMESPACES].get(Key("", namespace), {})
        return found

    def _count(self, resource: Resource, value: Any, by: int) -> None:
        if resource == kinds.NODES:
            _add(self._sizes, value, by)
        elif resource == kinds.POD_GROUPS:
            _add(self._groups, value, by)


def _add(counter: Counter[Any], value: Any, by: int) -> None:
    counter[value] += by
    if not counter[value]:
        del counter[value]
