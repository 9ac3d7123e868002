"""Running pods one by one, for tests: into the columns of a snapshot."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from app.model.ids import GroupKey, QueueName
from app.model.parts import Part
from app.model.placed_pods import Codes, frozen
from app.model.pod import Pod
from app.model.resources import ResourceAxis, Vector
from app.model.running import NO_GROUP, PodKind, Protection, Running
from tests.builders import AXIS

NO_PART = Part("")


@dataclass(frozen=True)
class Runs:
    """A pod of another scheduler, unless told; ``node`` is a row of the table."""

    pod: Pod
    node: int
    gang: GroupKey = NO_GROUP
    queue: QueueName | None = None
    part: Part = NO_PART
    counted: bool = False
    protected: Protection = Protection.NONE
    saved: float = 0.0
    """Its last checkpoint; 0: none."""

    @property
    def request(self) -> Vector:
        return AXIS.vector(self.pod.shape.requests)


def make_running(found: Iterable[Runs], *, axis: ResourceAxis = AXIS) -> Running:
    """The columns of ``found``, with resources of ``axis``."""
    those = list(found)
    requests = [axis.vector(one.pod.shape.requests) for one in those]
    return Running(
        pods=tuple(one.pod for one in those),
        index={one.pod.uid: at for at, one in enumerate(those)},
        nodes=frozen([one.node for one in those]),
        gangs=tuple(one.gang for one in those),
        parts=tuple(one.part for one in those),
        queues=Codes.of([one.queue for one in those]),
        requests=np.array(requests, dtype=np.int64).reshape(len(those), len(axis)),
        priorities=np.array([one.pod.priority for one in those], dtype=np.int64),
        created=np.array([one.pod.created for one in those]),
        started=np.array([one.pod.started for one in those]),
        counted=np.array([one.counted for one in those], dtype=np.bool_),
        bound=np.array([bool(one.pod.node) for one in those], dtype=np.bool_),
        releasing=np.array([one.pod.deleting for one in those], dtype=np.bool_),
        protected=np.array([one.protected for one in those], dtype=np.int8),
        saved=np.array([one.saved or one.pod.started for one in those]),
        grace=np.array([one.pod.grace for one in those]),
        kinds=Codes.of(
            [
                PodKind(one.gang, one.part, request.tobytes(), one.pod.priority)
                for one, request in zip(those, requests, strict=True)
            ]
        ),
    )
