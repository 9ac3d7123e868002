"""``pumice top``: queues, waiting gangs and nodes as one view, on a terminal or as plain text.

Pure: what the cluster has goes in, lines come out. On a terminal the view has the size of the
terminal: columns that matter least are left out where it is narrow, rows where it is short.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.text import Text

from app.cli import node_usage, queue_shares
from app.cli.findings import Findings, conclude
from app.cli.frames import APART, Head, head_lines, line, printable
from app.cli.node_usage import Usage
from app.cli.queue_shares import Share
from app.cli.start_times import StartTimes
from app.cli.tables import fitted, resources, table
from app.wire.ages import age
from app.wire.unstructured import (
    Object,
    is_deleting,
    key_of,
    metadata,
    name,
    namespace,
    owner_of,
    spec,
    status,
)

QUEUES, WAITING, NODES = "Queues", "Waiting", "Nodes"

_WAIT: Final = frozenset({"", "Pending", "Inqueue"})
"""Phases of groups that wait: for their queue, or for places."""
_LEAST_NAME: Final = 16
"""Columns that names have at least."""
_LEAST: Final = 24
"""So wide is a reason at least; where it would be narrower, another column is left out."""
_SECTION_LINES: Final = 3
"""A section has no use below this: its title, the titles of its columns and a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is shown; ``unseen`` says by section why there is nothing of it."""

    shares: Sequence[Share] = ()
    groups: Sequence[Object] = ()
    """The PodGroups that wait (`is_waiting`)."""
    queues: Mapping[str, Object] | None = None
    """By name; None: the user may not see queues."""
    start_times: StartTimes | None = None
    """When the groups start; None: there is no column for that."""
    nodes: Sequence[Usage] = ()
    total: Usage | None = None
    """All nodes together."""
    unseen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Column:
    """``drop``: the higher, the sooner it is left out; 0: never."""

    title: str
    drop: int = 0


@dataclass(frozen=True, slots=True)
class _Section:
    """A table; the last of its columns takes what width the others leave.

    Names in the first column are cut where that is needed for the others.
    """

    title: str
    about: str
    columns: Sequence[_Column]
    rows: Sequence[Sequence[str]]
    note: str = ""
    """What is said where there are no rows."""


def is_waiting(group: Object) -> bool:
    """Whether the PodGroup waits for its queue or for places."""
    return str(status(group).get("phase") or "") in _WAIT and not is_deleting(group)


def plain(view: View, *, now: float) -> str:
    """The whole view as tables below each other; ``now`` in seconds since the epoch."""
    return "\n".join(_plain(section) for section in _sections(view, now))


def frame(view: View, head: Head, *, now: float, width: int, height: int) -> RenderableType:
    """The view on a terminal of so many columns and lines."""
    sections = _sections(view, now)
    lines = head_lines(head, width)
    left = height - len(lines)
    apart = [Text()] if left >= sum(map(_lines, sections)) + len(sections) else []
    rooms = _rooms(sections, left - len(apart) * len(sections))
    if not any(rooms.values()):
        lines += [_title(section, width) for section in sections]
    for section in sections:
        lines += [*apart, *_drawn(section, width, rooms[section.title])]
    return Group(*lines[:height])


# --- what is shown ------------------------------------------------------------------------------


def _sections(view: View, now: float) -> tuple[_Section, _Section, _Section]:
    sections = (_queues(view), _waiting(view, now), _nodes(view))
    queues, waiting, nodes = (
        replace(each, rows=(), about="", note=view.unseen[each.title])
        if each.title in view.unseen
        else each
        for each in sections
    )
    return queues, waiting, nodes


def _queues(view: View) -> _Section:
    counts: dict[str, int] = {}
    for group in view.groups:
        queue = _queue_of(group)
        counts[queue] = counts.get(queue, 0) + 1
    rows = [
        (
            "  " * share.depth + share.name,
            share.state,
            str(counts.get(share.name, 0)),
            queue_shares.bar(share.share),
            share.resource or "-",
            resources(queue_shares.rounded_texts(share.allocated)),
            resources(queue_shares.entitlement(share)),
        )
        for share in view.shares
    ]
    return _Section(QUEUES, str(len(rows)), _QUEUE_COLUMNS, rows, "there are no queues")


def _waiting(view: View, now: float) -> _Section:
    longest = sorted(
        view.groups, key=lambda g: (str(metadata(g).get("creationTimestamp")), name(g))
    )
    rows = [_waiting_row(group, view, now) for group in longest]
    columns: tuple[_Column, ...] = _WAITING_COLUMNS
    if view.start_times is None:
        left_out = columns.index(_STARTS)
        columns = (*columns[:left_out], *columns[left_out + 1 :])
        rows = [(*row[:left_out], *row[left_out + 1 :]) for row in rows]
    return _Section(WAITING, str(len(rows)), columns, rows, "no gang waits")


def _waiting_row(group: Object, view: View, now: float) -> tuple[str, ...]:
    queue = _queue_of(group)
    told = conclude(
        Findings(
            subject="",
            group=group,
            queue=(view.queues or {}).get(queue),
            sees_queue=view.queues is not None,
        )
    )
    owner = owner_of(group)
    called = owner.name if owner is not None and owner.kind == "Job" else name(group)
    return (
        f"{namespace(group)}/{called}",
        queue,
        str(status(group).get("phase") or "-"),
        age(metadata(group).get("creationTimestamp"), now),
        (view.start_times or {}).get(str(key_of(group)), "-"),
        str(int(spec(group).get("minMember") or 0)),
        told.reason or "-",
        told.summary,
    )


def _nodes(view: View) -> _Section:
    rows = [
        (
            usage.name,
            "away" if usage.away else "ready",
            node_usage.requested_of(usage, "cpu"),
            node_usage.requested_of(usage, "memory"),
            node_usage.gpus(usage),
            str(usage.jobs),
        )
        for usage in view.nodes
    ]
    about = str(len(rows))
    if view.total is not None and rows:
        total = view.total
        about += f", cpu {node_usage.requested_of(total, 'cpu')}"
        about += f", memory {node_usage.requested_of(total, 'memory')}"
        about += "" if (gpus := node_usage.gpus(total)) == "-" else f", GPUs {gpus}"
        about += f", {total.away} away" if total.away else ""
    return _Section(NODES, about, _NODE_COLUMNS, rows, "there are no nodes")


def _queue_of(group: Object) -> str:
    return str(spec(group).get("queue") or "default")


_QUEUE_COLUMNS = (
    _Column("Name"),
    _Column("State", 4),
    _Column("Waiting", 2),
    _Column("Share"),
    _Column("Of", 1),
    _Column("Allocated", 3),
    _Column("Deserved", 5),
)
_STARTS = _Column("ETA", 1)
_WAITING_COLUMNS = (
    _Column("Gang"),
    _Column("Queue", 3),
    _Column("Phase", 6),
    _Column("For", 2),
    _STARTS,
    _Column("Needs", 5),
    _Column("Reason", 4),
    _Column("Why"),
)
_NODE_COLUMNS = (
    _Column("Name"),
    _Column("State", 4),
    _Column("CPU"),
    _Column("Memory", 1),
    _Column("GPUs", 2),
    _Column("Jobs", 3),
)


# --- how it is drawn ----------------------------------------------------------------------------


def _plain(section: _Section) -> str:
    if not section.rows:
        return f"{section.title}: {section.note}\n"
    titles = [column.title for column in section.columns]
    columns = [fitted(title, itemgetter(title), gap=len(APART)) for title in titles]
    rows = [map(printable, row) for row in section.rows]
    lines = table(columns, [dict(zip(titles, row, strict=True)) for row in rows])
    text = "".join(line.rstrip() + "\n" for line in lines.splitlines())
    return f"{section.title}: {section.about}\n{text}"


def _lines(section: _Section) -> int:
    """How many lines the whole of it takes."""
    return 2 + len(section.rows) if section.rows else 1


def _rooms(sections: Sequence[_Section], height: int) -> dict[str, int]:
    """Lines for each section by its title; 0: there is no room for it.

    What all would like is given where it fits. Else each has an equal part, and what one does not
    need goes to the others. Waiting gangs come first where not even three lines each are there.
    """
    rooms = {each.title: 0 for each in sections}
    first = sorted(sections, key=lambda each: each.title != WAITING)
    there = first[: max(0, height // _SECTION_LINES)]
    left = height
    while there:
        there.sort(key=_lines)
        section = there.pop(0)
        rooms[section.title] = min(_lines(section), left // (len(there) + 1))
        left -= rooms[section.title]
    return rooms


def _title(section: _Section, width: int, *, shown: int | None = None) -> Text:
    about = section.about if section.rows else section.note
    some = f" ({shown} shown)" if shown is not None and shown < len(section.rows) else ""
    return line(f"{section.title}: {about}{some}", width, style="bold")


def _drawn(section: _Section, width: int, room: int) -> list[Text]:
    """At most ``room`` lines: the title, and below it the table."""
    if room < 1:
        return []
    if not section.rows or room < _SECTION_LINES:
        return [_title(section, width)]
    rows = section.rows[: room - 2]
    kept, widths = _widths(section, width)
    titles = [section.columns[at].title for at in kept]
    return [
        _title(section, width, shown=len(rows)),
        _row(titles, widths, width, style="dim"),
        *(_row([row[at] for at in kept], widths, width) for row in rows),
    ]


def _widths(section: _Section, width: int) -> tuple[list[int], list[int]]:
    """Which columns there is room for, and how wide each of them is."""
    natural = [
        max(cell_len(column.title), *(cell_len(printable(row[at])) for row in section.rows))
        for at, column in enumerate(section.columns)
    ]
    last = len(natural) - 1
    least = [min(each, _LEAST) if at == last else each for at, each in enumerate(natural)]
    least[0] = min(natural[0], max(_LEAST_NAME, width // 3))
    kept = list(range(len(natural)))
    while _total(least[at] for at in kept) > width:
        dropped = max(kept, key=lambda at: section.columns[at].drop)
        if not section.columns[dropped].drop:
            break
        kept.remove(dropped)
    names = width - _total(least[at] for at in kept) + least[0]
    return kept, [max(least[0], min(natural[0], names)), *(natural[at] for at in kept[1:])]


def _cell(text: str, width: int) -> str:
    """The text on exactly so many columns."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(text, width - 1) + "…"


def _total(widths: Iterable[int]) -> int:
    listed = list(widths)
    return sum(listed) + len(APART) * (len(listed) - 1)


def _row(cells: Sequence[str], widths: Sequence[int], width: int, *, style: str = "") -> Text:
    padded = [_cell(printable(cell), each) for cell, each in zip(cells, widths, strict=True)]
    drawn = line(APART.join(padded).rstrip(), width, style=style)
    for begin, end, colour in queue_shares.bars(drawn.plain):
        drawn.stylize(colour, begin, end)
    return drawn
