"""What happened to a member or a group: the latest steps, and why each was taken.

Stories are kept for all pods of a cluster, so a step is a plain tuple of atoms, which takes a
hundred bytes and which the collector of cyclic garbage soon leaves alone.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from app.model.ids import NO_NODE, NodeName

MEMBER_STEPS: Final = 8
GROUP_STEPS: Final = 16
"""How many steps are kept; the oldest goes first."""


class Stimulus(StrEnum):
    """What set a step off."""

    CYCLE = "cycle"
    """A planning cycle, or a plan on demand."""
    EQUAL_POD = "equal pod"
    """A batch of pods that are like one that was planned: no plan was made for this one."""
    HEIR = "heir"
    """Another member of the gang left the place."""
    SLOT = "slot"
    """The member came, and room was kept for it."""
    FILTER = "filter"
    """A Filter call of kube-scheduler."""
    BIND = "bind"
    """A Bind call of kube-scheduler."""
    BARRIER = "barrier"
    """Enough members of the gang have come to Bind."""
    BINDING = "binding"
    """What became of a Binding."""
    EVICTION = "eviction"
    """Pods are evicted, for the member's gang or of it."""
    TAKEN_BACK = "taken back"
    """We took the reservation back."""
    WATCH = "watch"
    """What the API server says of a pod, a node or a PodGroup."""


Step = tuple[float, str, int, str, str, str, str]
"""When, stimulus, generation of the snapshot (0: not by a plan), from, to, node, why."""

Steps = list[Step]
"""The latest steps of one member or group, the latest last."""


@dataclass(frozen=True, slots=True)
class StoryEntry:
    """One step, for people: ``before`` and ``after`` are states of a member or of a group.

    ``generation`` is that of the snapshot that the step was planned on; 0: it was not planned.
    """

    at: float
    stimulus: str
    generation: int
    before: str
    after: str
    node: str
    why: str


def tell(
    steps: Steps | None,
    stimulus: Stimulus,
    *,
    at: float,
    before: str,
    after: str,
    most: int,
    generation: int = 0,
    node: NodeName = NO_NODE,
    why: str = "",
) -> Steps:
    """``steps`` with one more, and without the oldest when there are ``most``."""
    step = (at, stimulus.value, generation, before, after, node, why)
    if steps is None:
        return [step]
    if len(steps) >= most:
        del steps[0]
    steps.append(step)
    return steps


def entries(steps: Steps | None) -> tuple[StoryEntry, ...]:
    """The steps for people, the latest last."""
    return tuple(StoryEntry(*step) for step in steps or ())


def as_text(steps: Steps | None) -> str:
    """The steps in one line, for errors."""
    return "; ".join(
        f"{before} -> {after} by {stimulus}"
        + (f" on {node}" if node else "")
        + (f" ({why})" if why else "")
        for _, stimulus, _, before, after, node, why in steps or ()
    )
