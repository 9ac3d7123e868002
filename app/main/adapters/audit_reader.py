"""Answers questions about the decisions that are kept, from the files as they are."""

import asyncio
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Final

import msgspec

from app.kit.turns import Turns
from app.main.adapters.audit_files import COLUMNS, first_number, named, read_only
from app.model.decision import AuditAnswer, AuditQuestion, Coverage, KeptDecision
from app.service.ports import TakesTooLong

AT_ONCE: Final = 2
"""Questions that are answered at a time: each has a thread of those that all of us share."""
MOST_WAITING: Final = 16
"""Questions, those that are being answered included."""
MOST_S: Final = 5.0
"""How long an answer is read, by the clock of the machine."""
_STEPS: Final = 2_000
"""Instructions of SQLite between two looks at the clock: less than a millisecond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReader:
    """Reads in a thread. A file that cannot be read is told of, the others are read.

    ``folder`` gives None as long as there is none.
    """

    folder: Callable[[], Path | None]
    outlives_process: bool
    began: float
    settle: Callable[[], None]
    dropped: Callable[[], int]
    problems: Callable[[], tuple[str, ...]]
    most_s: float = MOST_S
    turns: Turns = field(
        default_factory=lambda: Turns("readers of decisions", at_once=AT_ONCE, most=MOST_WAITING)
    )

    async def ask(self, question: AuditQuestion) -> AuditAnswer:
        """The decisions asked for: the latest of them, or the first ``after`` a number.

        Raises `TooMany` and `TakesTooLong`.
        """
        async with self.turns.turn():
            return await asyncio.to_thread(self.read, question)

    async def certificate(self, plan: str) -> Any:
        """The certificate of an eviction plan as a JSON value; None: none is kept.

        Raises `TooMany` and `TakesTooLong`.
        """
        async with self.turns.turn():
            return await asyncio.to_thread(self.read_certificate, plan)

    def read(self, question: AuditQuestion) -> AuditAnswer:
        """As :meth:`ask`, in the thread that calls."""
        self.settle()
        ends = monotonic() + self.most_s
        oldest_first = question.after is not None
        where, given = _where(question)
        order = "ASC" if oldest_first else "DESC"
        text = f"SELECT {COLUMNS} FROM decisions {where} ORDER BY number {order} LIMIT ?"
        found: list[KeptDecision] = []
        unread: list[str] = []
        for path in self._files(oldest_first=oldest_first):
            if len(found) >= question.most:
                break
            try:
                with closing(read_only(path)) as file:
                    file.set_progress_handler(lambda: monotonic() > ends, _STEPS)
                    rows = file.execute(text, (*given, question.most - len(found))).fetchall()
            except sqlite3.Error as error:
                self._require_time(ends)
                unread.append(f"{path.name} cannot be read: {error}")
                continue
            found += map(_kept, rows)
        told = found if oldest_first else found[::-1]
        return AuditAnswer(tuple(told), self._coverage(unread))

    def read_certificate(self, plan: str) -> Any:
        """As :meth:`certificate`, in the thread that calls."""
        self.settle()
        ends = monotonic() + self.most_s
        for path in self._files(oldest_first=False):
            try:
                with closing(read_only(path)) as file:
                    file.set_progress_handler(lambda: monotonic() > ends, _STEPS)
                    found = file.execute(
                        "SELECT certificate FROM plans WHERE plan = ?", (plan,)
                    ).fetchone()
            except sqlite3.Error:
                self._require_time(ends)
                continue  # what cannot be read is told of with the decisions
            if found is not None:
                return msgspec.json.decode(zlib.decompress(found[0]))
        return None

    def _require_time(self, ends: float) -> None:
        if monotonic() > ends:
            raise TakesTooLong(
                f"to read the decisions takes more than {self.most_s:g} s; ask about a shorter time"
            )

    def _files(self, *, oldest_first: bool) -> list[Path]:
        folder = self.folder()
        paths = named(folder) if folder is not None else []
        return paths if oldest_first else paths[::-1]

    def _coverage(self, unread: list[str]) -> Coverage:
        folder = self.folder()
        return Coverage(
            outlives_process=self.outlives_process,
            folder=str(folder) if folder is not None and self.outlives_process else "",
            since=self._since(),
            dropped=self.dropped(),
            problems=(*self.problems(), *unread),
        )

    def _since(self) -> float:
        for path in self._files(oldest_first=True):
            is_first = first_number(path) == 1
            what = "min(began) FROM processes" if is_first else "min(at) FROM decisions"
            try:
                with closing(read_only(path)) as file:
                    [(since,)] = file.execute(f"SELECT {what}")
            except sqlite3.Error:
                continue
            if since is not None:
                return float(since)
        return self.began


def _where(question: AuditQuestion) -> tuple[str, list[Any]]:
    """The condition, and the values of it in their order."""
    terms: list[str] = []
    given: list[Any] = []

    def add(term: str, *values: Any) -> None:
        terms.append(term)
        given.extend(values)

    if question.job:
        namespace, _, name = question.job.partition("/")
        mine = f"{namespace}/"
        add(
            '((job = ? AND substr("group", 1, ?) = ?) OR "group" = ? OR preemptor = ?'
            ' OR preemptor IN (SELECT "group" FROM decisions WHERE job = ?'
            ' AND substr("group", 1, ?) = ?))',
            *(name, len(mine), mine, question.job, question.job),
            *(name, len(mine), mine),
        )
    if question.pod:
        namespace, _, name = question.pod.partition("/")
        mine = f"{namespace}/"
        add('pod = ? AND substr("group", 1, ?) = ?', name, len(mine), mine)
    if question.namespace:
        mine = f"{question.namespace}/"
        add('substr("group", 1, ?) = ?', len(mine), mine)
    for term, value in (
        ("queue = ?", question.queue),
        ("kind = ?", question.kind),
        ("at >= ?", question.since),
        ("at < ?", question.until),
        ("number < ?", question.before),
    ):
        if value:
            add(term, value)
    if question.after is not None:
        add("number > ?", question.after)
    return (f"WHERE {' AND '.join(terms)}" if terms else ""), given


def _kept(row: tuple[Any, ...]) -> KeptDecision:
    *atoms, story, refusal = row
    told = None if refusal is None else msgspec.json.decode(refusal)
    return KeptDecision._make((*atoms, msgspec.json.decode(story), told))
