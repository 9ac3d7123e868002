"""What all readers of the same rights are told: one text for them all, and what changed in it.

Rows are kept as JSON. A row that says the same as before is in no delta, so the deltas applied to
the whole of before are the whole of now.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from app.service.telling.hiding import HIDDEN, HIDDEN_JOB, hidden
from app.service.telling.view.rows import (
    FutureRow,
    JobRow,
    NodeRow,
    QueueRow,
    Row,
    RowKey,
    Section,
    ViewerOf,
    without_others,
)
from app.service.telling.view.state import Head, State

Readers = frozenset[str] | None
"""The namespaces whose rows readers are told; None: all of them."""

DELTAS: Final = 8
"""How many steps a reader may be behind without being told the whole anew."""
_SLICE: Final = 32

_encode: Final = msgspec.json.Encoder(enc_hook=str).encode


@dataclass(frozen=True, slots=True)
class Delta:
    """What changed from the generation ``before`` to ``generation``, as JSON."""

    before: int
    generation: int
    text: bytes


@dataclass(slots=True, eq=False)
class Audience:
    """The view of ``readers``; of generation 0 it has not been told anything yet."""

    readers: Readers
    generation: int = 0
    used_at: float = 0.0
    """When a reader of it asked last."""
    deltas: deque[Delta] = field(default_factory=lambda: deque(maxlen=DELTAS))
    _rows: dict[Section, dict[str, bytes]] = field(
        default_factory=lambda: {section: {} for section in Section}
    )
    _queues: frozenset[str] = frozenset()
    """The queues that are told."""
    _head: Head | None = None
    _parts: dict[str, bytes] = field(default_factory=dict)
    """The parts of the head that are told when they change."""
    _body: bytes | None = None
    """The rows as they are in the whole; None: to be put together."""

    def steps(
        self, state: State, changed: Iterable[RowKey], *, generation: int
    ) -> Generator[None, None, None]:
        """Follow the state, of which these rows may have changed; all of them for a new one."""
        head = state.head
        assert head is not None
        if self.generation == 0:
            changed = [RowKey(section, key) for section in Section for key in state.rows[section]]
        told = {section: list[bytes]() for section in Section}
        gone = {section: list[str]() for section in Section}
        names = _Names.of(self.readers, state.namespaces)
        for number, (section, key) in enumerate([*changed, *self._other_queues(state)]):
            row = state.rows[section].get(key)
            self._follow(section, key, self._for_us(row, names), told=told, gone=gone)
            if number % _SLICE == 0:
                yield
        self._step(self._head_for_us(head, names), told, gone, generation)

    def _follow(
        self,
        section: Section,
        key: str,
        row: Row | None,
        *,
        told: Mapping[Section, list[bytes]],
        gone: Mapping[Section, list[str]],
    ) -> None:
        rows = self._rows[section]
        if row is None:
            if rows.pop(key, None) is not None:
                gone[section].append(key)
            return
        text = _encode(row)
        if rows.get(key) != text:
            rows[key] = text
            told[section].append(text)

    def _step(
        self,
        head: Head,
        told: Mapping[Section, list[bytes]],
        gone: Mapping[Section, list[str]],
        generation: int,
    ) -> None:
        """Go on to ``generation`` if anything is told."""
        parts = {"cluster": _encode(head.cluster), "resources": _encode(head.resources)}
        news = {name: text for name, text in parts.items() if self._parts.get(name) != text}
        is_new = self._head is None or _banner(self._head) != _banner(head)
        if not (news or is_new or any(told.values()) or any(gone.values())):
            return
        before, self.generation = self.generation, generation
        self._head, self._parts, self._body = head, parts, None
        if is_new:
            self.deltas.clear()
            return
        fields = {
            "generation": _encode(generation),
            "before": _encode(before),
            "at": _encode(head.at),
            "scheduler": _encode(head.scheduler),
            **news,
            "changed": _object({s: _array(rows) for s, rows in told.items() if rows}),
            "gone": _encode({s: keys for s, keys in gone.items() if keys}),
        }
        self.deltas.append(Delta(before, generation, _object(fields)))

    # --- what is told ----------------------------------------------------------------------------

    def whole(self, user: str, *, at: float) -> Iterator[bytes]:
        """The whole for one reader, as pieces of JSON; ``at`` is the time of the answer."""
        head = self._head
        assert head is not None
        namespaces = None if self.readers is None else tuple(sorted(self.readers))
        first = {
            "generation": _encode(self.generation),
            "at": _encode(at),
            "role": _encode(head.role),
            "notice": _encode(head.notice),
            "viewer": _encode(ViewerOf(user, namespaces)),
            "scheduler": _encode(head.scheduler),
            **self._parts,
        }
        if self._body is None:
            rows: dict[str, bytes] = {
                section: _array(self._rows[section].values()) for section in Section
            }
            self._body = _object(rows)[1:]
        yield _object(first)[:-1] + b","
        yield self._body

    @property
    def queues(self) -> frozenset[str] | None:
        """The queues that are told; None: all of them."""
        return None if self.readers is None else self._queues

    def since(self, generation: int) -> list[Delta] | None:
        """The deltas from that generation on; None: it takes the whole."""
        if generation == self.generation:
            return []
        found = [each for each in self.deltas if each.before >= generation]
        return found if found and found[0].before == generation else None

    def _for_us(self, row: Row | None, names: "_Names") -> Row | None:
        """The row as the readers are told it; None: they are not told it."""
        mine = self.readers
        if row is None or mine is None:
            return row
        match row:
            case JobRow():
                return names.hide_in(row) if row.namespace in mine else None
            case FutureRow():
                told = replace(row, text=names.hide(row.text, instead=HIDDEN_JOB))
                return told if row.job.partition("/")[0] in mine else None
            case NodeRow():
                return without_others(row, mine)
            case QueueRow():
                return row if row.key in self._queues else None
        return row

    def _head_for_us(self, head: Head, names: "_Names") -> Head:
        if self.readers is None:
            return head
        scheduler = replace(head.scheduler, notices=())
        return replace(head, scheduler=scheduler, notice=names.hide(head.notice))

    def _other_queues(self, state: State) -> list[RowKey]:
        """Queues that are told from now on, or no more: those of own jobs, and those above them."""
        if self.readers is None:
            return []
        queues = state.rows[Section.QUEUES]
        told: set[str] = set()
        for job in state.rows[Section.JOBS].values():
            if isinstance(job, JobRow) and job.namespace in self.readers:
                told.update(_ancestry(job.queue, queues, told))
        before, self._queues = self._queues, frozenset(told)
        return [RowKey(Section.QUEUES, key) for key in before ^ self._queues]


@dataclass(frozen=True, slots=True)
class _Names:
    """Hides the names of namespaces of ``others`` from readers."""

    others: frozenset[str]

    @classmethod
    def of(cls, readers: Readers, known: Iterable[str]) -> "_Names":
        return cls(frozenset() if readers is None else frozenset(known) - readers)

    def hide(self, text: str, *, instead: str = HIDDEN) -> str:
        return hidden(text, own="", namespaces=self.others, instead=instead)

    def hide_in(self, row: JobRow) -> JobRow:
        eta = row.eta and replace(row.eta, text=self.hide(row.eta.text, instead=HIDDEN_JOB))
        reason, trouble = self.hide(row.reason), self.hide(row.trouble)
        return replace(row, reason=reason, trouble=trouble, eta=eta)


def _ancestry(queue: str, queues: Mapping[str, Row], known: set[str]) -> Iterator[str]:
    """A queue and those above it, up to one that is known."""
    at = queue
    while at and at not in known:
        yield at
        known = {*known, at}
        row = queues.get(at)
        at = row.parent if isinstance(row, QueueRow) else ""


def _banner(head: Head) -> tuple[Any, ...]:
    """What changes only together with everything."""
    return head.role, head.notice


def _array(texts: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(texts) + b"]"


def _object(fields: Mapping[str, bytes]) -> bytes:
    return b"{" + b",".join(b'"%b":%b' % (n.encode(), text) for n, text in fields.items()) + b"}"
