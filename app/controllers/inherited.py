"""What Volcano's plugins read of a pod and of its group: pods have it of their job, groups of them.

Each key stays what it was, label or annotation.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from app.model.disruption import BUDGETS
from app.model.pod import PREEMPTABLE, REVOCABLE_ZONE

_BOTH: Final = (PREEMPTABLE, "volcano.sh/cooldown-time")
_ANNOTATIONS: Final = (*_BOTH, REVOCABLE_ZONE)


def annotations_of(said: Mapping[str, str]) -> dict[str, str]:
    """Of the annotations ``said``. A pod may have only one budget; of both, the first."""
    budget = [key for key in BUDGETS if key in said][:1]
    return _pick(said, (*_ANNOTATIONS, *budget))


def labels_of(said: Mapping[str, str]) -> dict[str, str]:
    """Of the labels ``said``."""
    return _pick(said, _BOTH)


def _pick(said: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    return {key: said[key] for key in keys if key in said}
