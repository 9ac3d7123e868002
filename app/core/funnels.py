"""How the nodes narrow down for the members that a gang lacks: numbers for people."""

from collections.abc import Iterable

from app.core.actions import begun
from app.core.gangs.slots import least_slots
from app.core.ledger import Ledger
from app.core.placement.statics import ShapeCache
from app.core.placement.verdicts import funnel
from app.core.policy import Policies
from app.core.tiers import open_policies, placer_on
from app.model.funnel import Funnel
from app.model.gang import Gang, Task
from app.model.shape import PodShape
from app.model.snapshot import Snapshot

MOST = 8
"""Kinds of members that are told of, those of which most are lacking first."""


def funnels(
    snapshot: Snapshot, policies: Policies, *, gang: Gang, now: float, shapes: ShapeCache | None
) -> tuple[Funnel, ...]:
    """A funnel for each kind of member that ``gang`` lacks, existing or not.

    ``now`` is seconds since the epoch; ``shapes`` outlives questions.
    """
    ledger = Ledger(snapshot)
    begun.count_on(ledger)
    opened = open_policies(policies, ledger, now=now)
    placer = placer_on(ledger, opened, shapes=shapes)
    wanted = [(task, 1) for task in gang.waiting]
    wanted += least_slots(gang, snapshot, made={})
    found: list[Funnel] = []
    for task, count in _most(_by_kind(wanted)):
        steps, fit = funnel(placer.case(gang, task))
        found.append(Funnel(task.role, count, fit, steps))
    return tuple(found)


def _by_kind(wanted: Iterable[tuple[Task, int]]) -> list[tuple[Task, int]]:
    """One task of each role, shape and pin, and how many there are of these."""
    kinds: dict[tuple[str, PodShape, str], tuple[Task, int]] = {}
    for task, count in wanted:
        key = task.role, task.shape, task.pinned
        one, before = kinds.get(key, (task, 0))
        kinds[key] = one, before + count
    return list(kinds.values())


def _most(kinds: list[tuple[Task, int]]) -> list[tuple[Task, int]]:
    return sorted(kinds, key=lambda kind: (-kind[1], kind[0].role, kind[0].name))[:MOST]
