"""PodDisruptionBudgets: how many of the selected pods may be disrupted now."""

from dataclasses import dataclass

from app.model.shape import LabelSelector


@dataclass(frozen=True, slots=True, eq=False)
class DisruptionBudget:
    """A PodDisruptionBudget; ``selector`` None selects nothing."""

    namespace: str
    name: str
    selector: LabelSelector | None
    allowed: int
    disrupted: frozenset[str] = frozenset()
    """Names of pods that the API server already counts as disrupted."""
