"""Queues under queues: which may be the parent of which, and that the parts fit the whole (§6.4).

The object that is judged stands for itself wherever the tree is walked, so what is checked is the
tree as it would be afterwards.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from app.model.ids import ROOT_QUEUE
from app.model.workload import DEEPEST_QUEUE
from app.webhooks.job_queue import not_found
from app.webhooks.queue_amounts import (
    CAPABILITY,
    DESERVED,
    GUARANTEE,
    exceeds,
    read,
    summed,
    told,
)
from app.webhooks.world import World
from app.wire import quantity
from app.wire.findings import Findings
from app.wire.reading import amount, mapping, text
from app.wire.unstructured import Object, name, spec, status


def parent_of(queue: Mapping[str, Any]) -> str:
    """The queue above; none for the root."""
    if name(queue) == ROOT_QUEUE:
        return ""
    return text(spec(queue).get("parent")) or ROOT_QUEUE


def allocated_pods(queue: Mapping[str, Any]) -> int:
    """Pods that run on behalf of the queue or of those below, as its status says."""
    return amount("pods", mapping(mapping(status(queue)).get("allocated")).get("pods")) or 0


class QueueTree:
    """All queues with ``subject`` in its new form."""

    def __init__(self, subject: Object, world: World) -> None:
        self.subject = subject
        self._queues = {name(queue): queue for queue in world.facts.queues()}
        self._queues[name(subject)] = subject
        self._children: dict[str, list[Object]] = {}
        for queue in self._queues.values():
            self._children.setdefault(parent_of(queue), []).append(queue)

    def get(self, queue: str) -> Object | None:
        """The queue of that name."""
        return self._queues.get(queue)

    def children(self, queue: str) -> list[Object]:
        """The queues right below."""
        return self._children.get(queue, [])

    def ancestors(self, queue: Mapping[str, Any]) -> Iterator[Object]:
        """From the parent up to the root; ends before it comes to a queue a second time.

        It ends above `DEEPEST_QUEUE` queues too: admission lets none be so deep.
        """
        seen = {name(queue)}
        above = parent_of(queue)
        while above and above not in seen and above in self._queues and len(seen) <= DEEPEST_QUEUE:
            seen.add(above)
            yield self._queues[above]
            above = parent_of(self._queues[above])

    def descendants(self, queue: str) -> Iterator[Object]:
        """All queues below."""
        for level in self._levels_below(queue):
            yield from level

    def height(self, queue: str) -> int:
        """How many levels of queues are below; at most one more than `DEEPEST_QUEUE`."""
        return sum(1 for _ in self._levels_below(queue))

    def _levels_below(self, queue: str) -> Iterator[list[Object]]:
        seen, level = {queue}, self.children(queue)
        for _ in range(DEEPEST_QUEUE + 1):
            level = [each for each in level if name(each) not in seen]
            if not level:
                return
            yield level
            seen |= {name(each) for each in level}
            level = [below for each in level for below in self.children(name(each))]


def check_parent(tree: QueueTree, world: World, findings: Findings) -> None:
    """Check the queue's place in the tree."""
    queue, path = tree.subject, "spec.parent"
    above = text(spec(queue).get("parent"))
    if not above or above == ROOT_QUEUE:
        return
    if above == name(queue):
        findings.refuse(path, f"queue {name(queue)} cannot use itself as parent")
        return
    parent = tree.get(above)
    if parent is None:
        findings.refuse(
            path, f"failed to get parent queue of queue {name(queue)}: {not_found(above)}"
        )
        return
    most = world.options.max_queue_depth
    above_it = [each for each in tree.ancestors(queue) if name(each) != ROOT_QUEUE]
    if 1 + len(above_it) > most:
        findings.refuse(path, f"queue {name(queue)} exceeds the maximum allowed depth of {most}")
    elif 1 + len(above_it) + tree.height(name(queue)) > most:
        findings.refuse(
            path, f"queues below queue {name(queue)} exceed the maximum allowed depth of {most}"
        )
    if any(name(below) == above for below in tree.descendants(name(queue))):
        findings.refuse(path, f"queue {above} is below queue {name(queue)}: they form a cycle")
    others = [child for child in tree.children(above) if name(child) != name(queue)]
    if not others and allocated_pods(parent):
        findings.refuse(
            path,
            f"queue {above} cannot be the parent queue of queue {name(queue)} because it has "
            f"allocated Pods: {allocated_pods(parent)}",
        )


def check_shares(tree: QueueTree, findings: Findings) -> None:
    """What the queue has, against those above and below it."""
    queue = tree.subject
    _check_capability(tree, findings)
    parent = tree.get(parent_of(queue))
    if parent is not None and name(parent) != ROOT_QUEUE:
        for kind in (GUARANTEE, DESERVED):
            _check_sum(tree, parent, kind, f"parent queue {name(parent)}", findings=findings)
    for below in tree.descendants(name(queue)):
        _check_below(queue, below, tree, findings)
    for kind in (GUARANTEE, DESERVED):
        _check_sum(tree, queue, kind, f"queue {name(queue)}", findings=findings)


def _check_capability(tree: QueueTree, findings: Findings) -> None:
    queue = tree.subject
    for resource, number in read(queue, CAPABILITY).items():
        limit = _limit_above(tree, queue, resource)
        if limit is not None and number > limit:
            findings.refuse(
                f"spec.capability[{resource}]",
                f"queue {name(queue)} capability[{resource}]={quantity.text(resource, number)} "
                f"exceeds its ancestor's capability={quantity.text(resource, limit)}",
            )


def _limit_above(tree: QueueTree, queue: Object, resource: str) -> int | None:
    """The capability of the nearest queue above that names the resource, below the root."""
    for above in tree.ancestors(queue):
        limits = read(above, CAPABILITY)
        if name(above) != ROOT_QUEUE and resource in limits:
            return limits[resource]
    return None


def _check_below(queue: Object, below: Object, tree: QueueTree, findings: Findings) -> None:
    """A queue below that may use more than ``queue``, the nearest that limits it."""
    limits = read(queue, CAPABILITY)
    for resource, number in read(below, CAPABILITY).items():
        nearest = _nearest_limiter(tree, below, resource)
        if resource in limits and nearest == name(queue) and number > limits[resource]:
            findings.refuse(
                f"spec.capability[{resource}]",
                f"queue {name(queue)} capability[{resource}]="
                f"{quantity.text(resource, limits[resource])} is smaller than its descendants' "
                f"max capability={quantity.text(resource, number)}",
            )


def _nearest_limiter(tree: QueueTree, below: Object, resource: str) -> str:
    for above in tree.ancestors(below):
        if resource in read(above, CAPABILITY):
            return name(above)
    return ""


def _check_sum(
    tree: QueueTree, parent: Object, kind: str, whose: str, *, findings: Findings
) -> None:
    total, limits = summed(tree.children(name(parent)), kind), read(parent, kind)
    if exceeds(total, limits):
        findings.refuse(
            f"spec.{kind}",
            f"{whose} validation failed: sum of children's {kind} ({told(total)}) exceeds "
            f"parent's {kind} limit ({told(limits)})",
        )
