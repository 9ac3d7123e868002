"""Where a group stands in the line of its queue, and the columns that order it: for people."""

from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from app.core.actions import begun
from app.core.ledger import Ledger
from app.core.points import Opened
from app.core.policy import Policies
from app.core.tiers import open_policies
from app.model.gang import Gang
from app.model.ids import GroupKey, QueueName
from app.model.snapshot import Snapshot

AHEAD: Final = 20
"""Groups ahead of it that are named, the nearest last."""
_STEP: Final = 64
_SWITCH: Final = "enableJobOrder"


@dataclass(frozen=True, slots=True)
class OrderColumn:
    """What ``by`` (a plugin, or ``age``) orders groups by; the smaller ``value`` goes first."""

    by: str
    value: str


@dataclass(frozen=True, slots=True)
class InLine:
    """A group with the columns by which it is ordered."""

    group: str
    columns: tuple[OrderColumn, ...]


@dataclass(frozen=True, slots=True)
class LinePosition:
    """The group is the ``position``-th (1: the first) of ``waiting`` groups of its ``queue``.

    ``ahead`` are the nearest ones before it. ``decided_by`` is the first column in which it differs
    from the one right before it; empty: it is the first.
    """

    queue: str
    position: int
    waiting: int
    itself: InLine
    ahead: tuple[InLine, ...]
    decided_by: str


def line_position(
    snapshot: Snapshot, policies: Policies, *, gang: Gang, now: float
) -> LinePosition:
    """Where ``gang`` stands among the groups of its queue that wait; it is one of these.

    ``now`` is seconds since the epoch.
    """
    ledger = Ledger(snapshot)
    begun.count_on(ledger)
    opened = open_policies(policies, ledger, now=now, explain=False)
    line = [each for each in snapshot.pending if each.queue == gang.queue]
    line.sort(key=opened.gang_key)
    at = next(number for number, each in enumerate(line) if each.key == gang.key)
    ahead = [_in_line(opened, each) for each in line[max(at - AHEAD, 0) : at]]
    itself = _in_line(opened, line[at])
    return LinePosition(
        queue=gang.queue,
        position=at + 1,
        waiting=len(line),
        itself=itself,
        ahead=tuple(ahead),
        decided_by=_difference(ahead[-1], itself) if ahead else "",
    )


def line_positions(
    snapshot: Snapshot, policies: Policies, *, now: float
) -> Generator[None, None, dict[GroupKey, tuple[int, int]]]:
    """For every group that waits: the how-manieth (1: the first) of how many of its queue it is.

    It is worked out in steps, between which other work may be done. A group that a plugin fails at
    has no place: planning leaves it out too.
    """
    ledger = Ledger(snapshot)
    begun.count_on(ledger)
    opened = open_policies(policies, ledger, now=now, explain=False)
    lines: dict[QueueName, list[tuple[Any, GroupKey]]] = {}
    for number, gang in enumerate(snapshot.pending):
        with suppress(Exception):
            lines.setdefault(gang.queue, []).append((opened.gang_key(gang), gang.key))
        if number % _STEP == 0:
            yield
    found: dict[GroupKey, tuple[int, int]] = {}
    for line in lines.values():
        line.sort()
        found |= {key: (number, len(line)) for number, (_, key) in enumerate(line, 1)}
        yield
    return found


def _in_line(opened: Opened, gang: Gang) -> InLine:
    columns = [
        OrderColumn(conf.name, _text(hooks.gang_order(gang)))
        for tier in opened.configured
        for conf, hooks in tier
        if hooks.gang_order is not None and conf.enabled(_SWITCH)
    ]
    created, _ = gang.age
    return InLine(gang.called, (*columns, OrderColumn("age", _text(created))))


def _text(key: Any) -> str:
    if isinstance(key, tuple):
        return " ".join(map(_text, key))
    if isinstance(key, bool):
        return "1" if key else "0"
    return f"{key:.3f}".rstrip("0").rstrip(".") if isinstance(key, float) else str(key)


def _difference(before: InLine, after: InLine) -> str:
    pairs: Sequence[tuple[OrderColumn, OrderColumn]] = list(
        zip(before.columns, after.columns, strict=True)
    )
    return next((one.by for one, other in pairs if one.value != other.value), "name")
