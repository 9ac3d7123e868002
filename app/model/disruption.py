"""PodDisruptionBudgets: how many of the selected pods may be disrupted now."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from app.model.ids import PodUid
from app.model.shape import LabelSelector

BUDGETS = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")
"""The annotations in which a job says how many of its pods may be disrupted."""


class Disruptable(Protocol):
    """A pod, as far as it matters for its disruption."""

    @property
    def uid(self) -> PodUid:
        """The pod's UID."""

    @property
    def namespace(self) -> str:
        """The pod's namespace."""

    @property
    def name(self) -> str:
        """The pod's name there."""

    @property
    def labels(self) -> Mapping[str, str]:
        """What a budget selects it by."""


@dataclass(frozen=True, slots=True, eq=False)
class DisruptionBudget:
    """A PodDisruptionBudget; ``selector`` None selects nothing."""

    namespace: str
    name: str
    selector: LabelSelector | None
    allowed: int
    disrupted: frozenset[str] = frozenset()
    """Names of pods that the API server already counts as disrupted."""

    def covers(self, pod: Disruptable) -> bool:
        """Whether evicting ``pod`` takes from what is allowed, and has not done so yet."""
        mine = pod.namespace == self.namespace and pod.name not in self.disrupted
        return mine and self.selector is not None and self.selector.matches(pod.labels)
