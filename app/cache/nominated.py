"""Pods of others that are nominated to a node: pods were evicted there for them."""

from collections.abc import Callable

from app.model.ids import PodUid
from app.model.pod import TERMINAL, Pod
from app.model.resources import Amounts, Vector
from app.model.snapshot import Claim


class NominatedOthers:
    """Those that wait for that room."""

    def __init__(self) -> None:
        self._pods: dict[PodUid, Pod] = {}

    def note(self, pod: Pod) -> bool:
        """Take in what a pod says; returns whether it claims less than before."""
        before = self._pods.pop(pod.uid, None)
        if pod.nominated and not (pod.node or pod.deleting or pod.status in TERMINAL):
            self._pods[pod.uid] = pod
        now = self._pods.get(pod.uid)
        return before is not None and (now is None or now.nominated != before.nominated)

    def drop(self, uid: PodUid) -> bool:
        """The pod has gone; returns whether it claimed something."""
        return self._pods.pop(uid, None) is not None

    def claims(self, vector: Callable[[Amounts], Vector]) -> tuple[Claim, ...]:
        """What they wait for, those of the highest priority first."""
        pods = sorted(self._pods.values(), key=lambda pod: (-pod.priority, pod.uid))
        return tuple(Claim(p.nominated, vector(p.shape.requests), p.priority) for p in pods)
