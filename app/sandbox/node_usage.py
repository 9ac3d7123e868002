"""Whether nodes have room for the pods that are bound to them, as their kubelets look at it.

Two schedulers do not see what the other one does before it is stored, and no API server compares a
Binding with the node. So the kubelet has the last word: what does not fit there fails, with the
reason of the first resource that is short. It goes by what a node offers now; a resource of devices
that the node does not list is another component's business. What has begun on a node stays there.
"""

from __future__ import annotations

from app.model.amounts import CPU, MEMORY
from app.model.colocation import BATCH_CPU, USED_BY
from app.sandbox.nodes import NumaSpec
from app.sandbox.numa import CpuManagers
from app.sandbox.pod_status import Verdict
from app.sandbox.scheduler.cluster import Cluster, NodeState
from app.sandbox.scheduler.requirements import PODS, requirements_of
from app.wire.documents import Document, section

_ORDER = {PODS: 0, CPU: 1, MEMORY: 2, "ephemeral-storage": 3}


class NodeUsage:
    """The room on all nodes, and their cpus by number where those have NUMA nodes."""

    def __init__(self, numa: NumaSpec | None = None) -> None:
        self._cluster = Cluster()
        self._cpus = None if numa is None else CpuManagers(numa)

    def set_node(self, node: Document) -> None:
        """A node that is new or has changed; its pods keep what they hold."""
        self._cluster.set_node(node)
        if self._cpus is not None:
            self._cpus.set_node(node)

    def drop_node(self, name: str) -> None:
        """A node that is deleted; the cpus that its pods hold by number go with the node."""
        self._cluster.remove_node(name)
        if self._cpus is not None:
            self._cpus.drop_node(name)

    def take(self, pod: Document) -> Verdict | None:
        """Let the pod take its room; or why it cannot."""
        node = self._cluster.nodes.get(section(pod, "spec")["nodeName"])
        refusal = None if node is None or has_begun(pod) else _refusal(pod, node)
        if refusal is None and self._cpus is not None:
            refusal = self._cpus.take(pod)
        if refusal is None:
            self._cluster.set_pod(pod)
        return refusal

    def free(self, uid: str) -> None:
        """The pod is over, or gone."""
        self._cluster.remove_pod(uid)
        if self._cpus is not None:
            self._cpus.free(uid)

    def loads(self) -> dict[str, tuple[float, float]]:
        """Cpu and memory in per cent by node, as if pods used what they request."""
        return {
            name: (_share(node, CPU), _share(node, MEMORY))
            for name, node in self._cluster.nodes.items()
        }

    def new_topologies(self) -> list[Document]:
        """The Numatopologies that say something else than when this was asked last."""
        return [] if self._cpus is None else self._cpus.changed()


def has_begun(pod: Document) -> bool:
    """Whether a kubelet has taken the pod before."""
    return bool(section(pod, "status").get("startTime"))


def _share(node: NodeState, measured: str) -> float:
    has = node.allocatable.get(measured, 0)
    # Online pods ask for cpu in thousandths, offline ones for whole millicores.
    grains = {name: 1000 if name == BATCH_CPU else 1 for name in USED_BY[measured]}
    used = sum(node.used[name] / grain for name, grain in grains.items())
    return min(round(100.0 * used / has, 1), 100.0) if has else 0.0


def _refusal(pod: Document, node: NodeState) -> Verdict | None:
    asked = requirements_of(pod).resources
    short = [name for name in asked if _is_short(name, asked[name], node)]
    if not short:
        return None
    name = min(short, key=lambda each: (_ORDER.get(each, len(_ORDER)), each))
    grain = 1 if name == CPU else 1000
    text = (
        f"Node didn't have enough resource: {name}, requested: {asked[name] // grain},"
        f" used: {node.used[name] // grain}, capacity: {node.allocatable.get(name, 0) // grain}"
    )
    return Verdict(f"OutOf{name}", text)


def _is_short(name: str, amount: int, node: NodeState) -> bool:
    is_elsewhere = "/" in name and name not in node.allocatable
    return amount > max(node.free(name), 0) and not is_elsewhere
