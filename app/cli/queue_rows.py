"""Queues as lines of a table, with the PodGroups that are in them counted by phase."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.cli.tables import Column, extended, fitted, resources, table
from app.wire.unstructured import Object, name, spec, status

PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")
_WIDTH = 8
_GAP = 3

Tally = Mapping[str, Mapping[str, int]]
"""Queue -> phase -> how many PodGroups."""


def tally(groups: Iterable[Object]) -> Tally:
    """PodGroups counted by queue and phase; one without a phase is Pending."""
    found: dict[str, Counter[str]] = {}
    for group in groups:
        queue = spec(group).get("queue") or "default"
        found.setdefault(queue, Counter())[status(group).get("phase") or "Pending"] += 1
    return found


def rows(queues: Sequence[Object], counts: Tally, *, wide: bool = False) -> str:
    """The table of ``queue list`` and ``queue get``."""
    columns = (
        *_FIRST,
        Column("Parent", lambda queue: spec(queue).get("parent"), _WIDTH),
        *(_count(phase, counts) for phase in PHASES),
    )
    return table(extended(columns, _WIDE) if wide else columns, queues)


def short_rows(queues: Sequence[Object], counts: Tally, *, wide: bool = False) -> str:
    """The table of ``vqueues``."""
    columns = (*_FIRST, *(_count(phase, counts) for phase in PHASES[:-1]))
    return table(extended(columns, _WIDE) if wide else columns, queues)


def held(queue: Object) -> Mapping[str, Any]:
    """What the queue's groups hold; its status names cpu and memory also where they hold none."""
    amounts = status(queue).get("allocated") or {}
    return {resource: amount for resource, amount in amounts.items() if str(amount) != "0"}


def _weight(queue: Object) -> int:
    return int(spec(queue).get("weight") or 0)


def _state(queue: Object) -> str:
    return str(status(queue).get("state") or "")


def _count(phase: str, counts: Tally) -> Column:
    return Column(phase, lambda queue: counts.get(name(queue), {}).get(phase, 0), _WIDTH)


def _amounts(title: str, found: Any) -> Column:
    return fitted(title, lambda queue: resources(found(queue)), gap=_GAP)


_FIRST = (
    Column("Name", name, 25),
    Column("Weight", _weight, _WIDTH),
    Column("State", _state, _WIDTH),
)
_WIDE = (
    fitted(
        "Reclaimable",
        lambda queue: "no" if spec(queue).get("reclaimable") is False else "yes",
        gap=_GAP,
    ),
    fitted("Priority", lambda queue: int(spec(queue).get("priority") or 0), gap=_GAP),
    _amounts("Guarantee", lambda queue: (spec(queue).get("guarantee") or {}).get("resource")),
    _amounts("Deserved", lambda queue: spec(queue).get("deserved")),
    _amounts("Capability", lambda queue: spec(queue).get("capability")),
    _amounts("Allocated", held),
)
