"""Removes the gates of pods, and remembers it until the watch shows it.

A pod may be decided about anew before that: one that changes its group is placed once more, when
its PodGroup comes above all. Its gate is not removed a second time then, which the API server would
refuse.
"""

from app.model.ids import NO_NODE, NodeName, PodUid
from app.model.pod import Pod
from app.service.ports import Clock, PodWriter
from app.telemetry import metrics
from app.wire import patches

REPEAT_S = 5.0
"""A gate that is still there this long after its removal was accepted is removed again."""


class Gates:
    """The gates that were removed lately."""

    def __init__(self, *, pods: PodWriter, clock: Clock) -> None:
        self._pods = pods
        self._clock = clock
        self._opened: dict[PodUid, float] = {}

    def is_open(self, uid: PodUid) -> bool:
        """Whether the gate's removal was accepted just now."""
        return self._opened.get(uid, float("-inf")) > self._clock() - REPEAT_S

    async def open(self, pod: Pod, *, pin: NodeName = NO_NODE) -> None:
        """Remove the gate, and pin the pod to the node in the same write; raises `WriteError`."""
        await self._pods.patch_pod(pod.namespace, pod.name, patches.open_gate(pod, pin=pin))
        self._opened[pod.uid] = self._clock()
        metrics.WRITES.labels("gate", "done").inc()

    def tidy(self) -> None:
        """Forget what was long ago."""
        self._opened = {uid: at for uid, at in self._opened.items() if self.is_open(uid)}
