"""numa-aware: no pod goes where its kubelet would refuse it for its NUMA nodes.

Rules are about pods of the class Guaranteed that need whole cpus. One that names a policy
(``topologyPolicy`` of its task) goes to nodes whose kubelet has that policy and the static CPU
manager; others may go anywhere, and are looked at where a kubelet aligns cpus. Nodes on which a pod
with a policy is spread over fewer NUMA nodes are preferred: the argument ``weight`` (1) says how
much.

What a kubelet will do is worked out by :mod:`app.core.placement.sockets`, from the Numatopology of
the node, the pods that have places there and what the cycle has decided so far.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from app.core.arguments import Arguments
from app.core.entries import Entry, Evicted, Placed
from app.core.ledger import Ledger
from app.core.placement.journal import JournalReader
from app.core.placement.sockets import Lacking, Taken, assign, plus
from app.core.policy import Hooks, NodeRule, NodeScore, NodesNow, OpenPlugin, Session
from app.model.conf import PluginConf
from app.model.exchange import ANY_EQUAL, Exchange
from app.model.gang import Gang, Task
from app.model.numa import Cpus, NumaNeed, NumaNode, NumaPolicy
from app.model.reason import Cause
from app.model.resources import Mask, Scores

_FULL = 100.0

Test = Callable[[NumaNeed, NumaNode | None], bool]
Details = Callable[[Gang, Task, NodesNow], str]


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``weight``."""
    weight = Arguments(conf).integer("weight", 1)

    def open_(session: Session) -> Hooks:
        numa = NumaNodes(session.ledger, weight=weight)
        return Hooks(
            node_rules=numa.rules(),
            node_score=NodeScore(numa.aligned_need, numa.score) if weight else None,
            place_class=numa.place_class,
        )

    return open_


class NumaNodes:
    """The plugin on the nodes of one cycle."""

    def __init__(self, ledger: Ledger, *, weight: int) -> None:
        snapshot = ledger.snapshot
        self._weight = weight
        self._nodes = [snapshot.numa.get(node.name) for node in snapshot.table.nodes]
        self._most = max((len(node.free) for node in self._nodes if node is not None), default=1)
        self._rules_any = any(node is not None and node.layout.rules for node in self._nodes)
        self._free = _FreeCpus(ledger, self._nodes)

    def rules(self) -> Sequence[NodeRule]:
        """Volcano's, in the order in which it looks at them."""
        return [
            self._of_policy("numa info is empty", lambda _, node: node is not None),
            self._of_policy(
                "cpu manager policy isn't static",
                lambda _, node: node is None or node.layout.static,
            ),
            self._of_policy(
                "task topology policy is different with node",
                lambda need, node: node is None or node.layout.policy == need.policy,
                self._policies,
            ),
            NodeRule(
                "container cannot be assigned by numa",
                self._need_and_request,
                self._admitted,
                Cause.NUMA,
                self._details,
            ),
        ]

    def aligned_need(self, _gang: Gang, task: Task) -> NumaNeed | None:
        """The need of a pod that names a policy; None: it names none."""
        need = task.shape.numa
        return need if need is not None and need.policy.aligns else None

    def score(self, _gang: Gang, task: Task, nodes: NodesNow) -> Scores:
        """Up to 100 times the weight, for a node where all cpus are of one NUMA node."""
        scores = np.zeros(len(nodes.rows))
        for at, found in self._outcomes(task, nodes):
            if isinstance(found, Taken):
                scores[at] = (self._most - max(found.spread, 1)) / max(self._most - 1, 1)
        return scores * (_FULL * self._weight)

    def place_class(self, gang: Gang, task: Task, _row: int) -> Exchange:
        """Free room on any node does not do, the place of an equal pod does."""
        if self._need(gang, task) is None and self.aligned_need(gang, task) is None:
            return ANY_EQUAL
        return ANY_EQUAL.within("NUMA nodes")

    def _of_policy(self, text: str, test: Test, details: Details | None = None) -> NodeRule:
        def allows(_gang: Gang, task: Task, nodes: NodesNow) -> Mask:
            need = task.shape.numa
            return np.array(
                [need is None or test(need, self._nodes[row]) for row in nodes.rows.tolist()],
                dtype=np.bool_,
            )

        return NodeRule(text, self.aligned_need, allows, Cause.NUMA, details)

    def _need(self, _gang: Gang, task: Task) -> NumaNeed | None:
        """The need of a pod that some kubelet may refuse; None: it has none, or none may."""
        return task.shape.numa if self._rules_any else None

    def _need_and_request(self, gang: Gang, task: Task) -> tuple[NumaNeed, bytes] | None:
        need = self._need(gang, task)
        return None if need is None else (need, task.request.tobytes())

    def _admitted(self, _gang: Gang, task: Task, nodes: NodesNow) -> Mask:
        """Where the kubelet takes ``task``, and where other resources are short in any case."""
        mask: Mask = np.ones(len(nodes.rows), dtype=np.bool_)
        for at, found in self._outcomes(task, nodes):
            mask[at] = isinstance(found, Taken)
        asked = task.request[:, None]
        mask |= ((nodes.free < asked) & (asked > 0)).any(axis=0)
        return mask

    def _outcomes(self, task: Task, nodes: NodesNow) -> Iterator[tuple[int, Taken | Lacking]]:
        """By position in ``nodes``: what becomes of ``task`` where a kubelet aligns cpus."""
        need, free = task.shape.numa, self._free.now(ahead=nodes.ahead)
        for at, row in enumerate(nodes.rows.tolist() if need is not None else ()):
            node = self._nodes[row]
            if need is not None and node is not None and node.layout.rules:
                yield at, assign(node.layout.policy, node.layout.sizes, free[row], need)

    # --- details ---------------------------------------------------------------------------------

    def _policies(self, _gang: Gang, task: Task, nodes: NodesNow) -> str:
        need, on = task.shape.numa, [self._nodes[row] for row in nodes.rows.tolist()]
        found = {node.layout.policy or NumaPolicy.NONE for node in on if node is not None}
        asked = "" if need is None else need.policy
        return f"topology policy {asked} asked, nodes have {', '.join(sorted(found))}"

    def _details(self, _gang: Gang, task: Task, nodes: NodesNow) -> str:
        """``no NUMA node with 8 free cpus; largest has 6``."""
        lacking = [each for _, each in self._outcomes(task, nodes) if isinstance(each, Lacking)]
        if not lacking:
            return ""
        best = max(lacking, key=lambda each: (each.most, -each.asked, -each.nodes))
        if best.nodes == 1:
            return f"no NUMA node with {best.asked} free cpus; largest has {best.most}"
        if best.nodes:
            return (
                f"no {best.nodes} NUMA nodes with {best.asked} free cpus; "
                f"the largest {best.nodes} have {best.most}"
            )
        return f"no node with {best.asked} cpus that no pod has to itself; largest has {best.most}"


class _FreeCpus:
    """The cpus that pods may have to themselves, by row, as the ledger stands."""

    def __init__(self, ledger: Ledger, nodes: Sequence[NumaNode | None]) -> None:
        self._snapshot = ledger.snapshot
        self._nodes = nodes
        self._idle: list[Cpus] = [() if node is None else node.free for node in nodes]
        self._ahead: list[Cpus] = [
            () if node is None else plus(node.free, node.coming) for node in nodes
        ]
        self._taken: dict[int, Cpus] = {}
        """What entries of the journal take, by identity: they live as long as they are there."""
        self._journal = JournalReader(ledger.journal)

    def now(self, *, ahead: bool) -> Sequence[Cpus]:
        """By row; empty where nothing is known. ``ahead``: with what is about to be free."""
        for entry, row, sign in self._journal.changes():
            node = self._nodes[row]
            if node is not None:
                self._follow(entry, row, node, undone=sign != entry.sign)
        return self._ahead if ahead else self._idle

    def _follow(self, entry: Entry, row: int, node: NumaNode, *, undone: bool) -> None:
        if undone:
            taken = self._taken.pop(id(entry), None)
        else:
            taken = self._of(entry, row, node)
            if taken is not None:
                self._taken[id(entry)] = taken
        if taken is None:
            return
        move = plus if undone is isinstance(entry, Placed) else _minus
        self._ahead[row] = move(self._ahead[row], taken)
        if isinstance(entry, Placed) and not entry.pipelined:
            self._idle[row] = move(self._idle[row], taken)

    def _of(self, entry: Entry, row: int, node: NumaNode) -> Cpus | None:
        """The cpus that the pod of ``entry`` takes, or gives back."""
        if isinstance(entry, Evicted):
            known = self._snapshot.numa_taken.get(entry.pod.uid)
            return None if entry.releasing or known is None else known
        need = entry.shape.numa
        if need is None or not node.layout.static:
            return None
        free = (self._ahead if entry.pipelined else self._idle)[row]
        found = assign(node.layout.policy, node.layout.sizes, free, need)
        return found.cpus if isinstance(found, Taken) else None


def _minus(one: Cpus, other: Cpus) -> Cpus:
    return tuple(a - b for a, b in zip(one, other, strict=True))
