"""The rule that the claims of a pod can have devices on its node.

Pods that claim devices go where ResourceSlices have some free for them, and to the nodes that reach
what their claims have already. All pods that share a claim with devices of one node go to that
node, so the first of them goes where there is room for its whole gang.
"""

from collections.abc import Hashable

import numpy as np

from app.core.placement.claim_books import ClaimBooks, Claims
from app.core.placement.claims import Lacking
from app.core.policy import NodeRule, NodesNow
from app.kit.quantities import amount_text
from app.model.exchange import ANY_EQUAL, NO_EXCHANGE, Exchange
from app.model.gang import Gang, Task
from app.model.reason import Cause
from app.model.resources import Mask, Matrix, Vector
from app.model.snapshot import NodeTable

_MOST_ASKED = 256
"""Nodes that are asked what they lack, to tell the one that lacks least."""


class ClaimRule:
    """The rule that a pod's claims can have devices on its node."""

    def __init__(self, books: ClaimBooks, table: NodeTable) -> None:
        self._books = books
        self._nodes = table.nodes

    def rule(self) -> NodeRule:
        """The rule, and what it tells."""
        return NodeRule(
            "no devices for its claims", self.key, self._allowed, Cause.DEVICE_CLAIMS, self._details
        )

    def key(self, gang: Gang, task: Task) -> Hashable | None:
        """What the claims of a task ask for and have; None: it has none."""
        if task.shape.claims is None:
            return None
        self._books.follow()
        asked = self._claims(task)
        moves = self._books.any_wide or bool(task.shape.claims.shared)
        return (
            tuple(claim.spec for claim in asked.open),
            asked.at,
            asked.missing,
            self._needed(gang, task, asked).tobytes(),
            self._books.version if moves else 0,
        )

    def place_class(self, _gang: Gang, task: Task, _row: int) -> Exchange:
        """The place of an equal pod does; none does where claims are elsewhere or are shared."""
        claims = task.shape.claims
        if claims is None:
            return ANY_EQUAL
        return NO_EXCHANGE if claims.shared or self._claims(task).own else _AMONG_CLAIMS

    def _claims(self, task: Task) -> Claims:
        claims = task.shape.claims
        return Claims() if claims is None else self._books.claims(task.uid, claims)

    def _needed(self, gang: Gang, task: Task, asked: Claims) -> Vector:
        """What has to be free for the task, and for those that share its claims on its node."""
        shared = set(task.shape.claims.shared) if task.shape.claims is not None else set()
        mine = [claim for claim in asked.open if claim.key in shared]
        if not mine or not self._books.is_of_one_node(mine):
            return task.request
        followers = [each for each in gang.waiting if task.uid in each.after]
        needed = task.request.copy()
        for each in followers[: max(gang.min_member - 1, 0)]:
            needed += each.request
        return needed

    def _allowed(self, gang: Gang, task: Task, nodes: NodesNow) -> Mask:
        """Where devices are free, and where other resources are short in any case."""
        self._books.follow()
        asked = self._claims(task)
        needed = self._needed(gang, task, asked)[:, None]
        mask = _short(nodes, task.request[:, None])
        crowded = _short(nodes, needed)
        for at, row in enumerate(nodes.rows.tolist()):
            if not crowded[at]:
                mask[at] = self._books.fits(asked, row, ahead=nodes.ahead)
        return mask

    def _details(self, _gang: Gang, task: Task, nodes: NodesNow) -> str:
        """What the node lacks that lacks least: how many devices it has free, how many are asked.

        ``node n1: 2 devices of class gpu.example.com free; 4 asked``
        """
        self._books.follow()
        asked = self._claims(task)
        if asked.missing:
            return asked.missing
        rows = nodes.rows.tolist()
        elsewhere = [self._books.is_elsewhere(asked, row) for row in rows]
        if all(elsewhere):
            return f"ResourceClaim {elsewhere[0]} has its devices on other nodes" if rows else ""
        best: tuple[int, int, Lacking] | None = None
        for row in rows[:_MOST_ASKED]:
            lacks = self._books.lacking(asked, row, ahead=nodes.ahead)
            if lacks is not None and (best is None or lacks.free - lacks.asked > best[0]):
                best = lacks.free - lacks.asked, row, lacks
        if best is not None:
            return f"node {self._nodes[best[1]].name}: {_sentence(best[2])}"
        if any(self._books.fits(asked, row, ahead=nodes.ahead) for row in rows[:_MOST_ASKED]):
            return "no node with free devices has room for all pods that share a claim"
        return "no node has free devices that satisfy all requests of its claims together"


def _short(nodes: NodesNow, needed: Matrix) -> Mask:
    """The nodes that have less free than is ``needed``, shape ``(R, 1)``."""
    short: Mask = np.zeros(len(nodes.rows), dtype=np.bool_)
    short |= ((nodes.free < needed) & (needed > 0)).any(axis=0)
    return short


def _sentence(lacks: Lacking) -> str:
    devices = "device" if lacks.free == 1 else "devices"
    parts = ", ".join(f"{name} {amount_text(name, amount)}" for name, amount in lacks.parts)
    having = f" with {parts}" if parts else ""
    if not lacks.asked:
        return f"no devices of class {lacks.device_class}; all of them asked"
    return f"{lacks.free} {devices} of class {lacks.device_class}{having} free; {lacks.asked} asked"


_AMONG_CLAIMS = ANY_EQUAL.within("claims")
