"""Foreign pods that are nominated to a node: pods were evicted there for them."""

from collections.abc import Callable, Iterable

from app.model.amounts import Amounts
from app.model.ids import NodeName, PodUid
from app.model.pod import TERMINAL, Pod
from app.model.resources import Vector
from app.model.snapshot import Claim


class NominatedOthers:
    """The foreign pods that wait for the room of their victims."""

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

    def claims(
        self,
        vector: Callable[[Amounts], Vector],
        *,
        besides: Iterable[tuple[Pod, NodeName]] = (),
    ) -> tuple[Claim, ...]:
        """What the pods wait for, those of the highest priority first.

        ``besides``: further pods, and where room was made for them.
        """
        waiting = [*((pod, pod.nominated) for pod in self._pods.values()), *besides]
        waiting.sort(key=lambda each: (-each[0].priority, each[0].uid))
        return tuple(Claim(on, vector(p.shape.requests), p.priority) for p, on in waiting)
