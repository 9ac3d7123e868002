"""The files of the audit trail: SQLite databases, each for a stretch of time, the oldest go first.

A file is named by the number of its first decision. Only the newest is written to. One that cannot
be read is put aside under another name, so that a damaged file costs its own decisions and no more.
"""

import fcntl
import re
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote

PARTS: Final = 8
"""Into how many files at least the room and the days are divided."""
_DAY_S: Final = 86_400.0
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS decisions(
    number INTEGER PRIMARY KEY, at REAL, kind TEXT, "group" TEXT, job TEXT, queue TEXT, pod TEXT,
    uid TEXT, node TEXT, stimulus TEXT, cause TEXT, text TEXT, generation INTEGER, preemptor TEXT,
    rule TEXT, plan TEXT, story TEXT, refusal TEXT);
CREATE INDEX IF NOT EXISTS by_job ON decisions(job);
CREATE INDEX IF NOT EXISTS by_group ON decisions("group");
CREATE INDEX IF NOT EXISTS by_preemptor ON decisions(preemptor) WHERE preemptor != '';
CREATE INDEX IF NOT EXISTS by_pod ON decisions(pod) WHERE pod != '';
CREATE TABLE IF NOT EXISTS plans(plan TEXT PRIMARY KEY, certificate BLOB);
CREATE TABLE IF NOT EXISTS processes(began REAL PRIMARY KEY);
"""
COLUMNS: Final = (
    'number, at, kind, "group", job, queue, pod, uid, node, stimulus, cause, text, generation, '
    "preemptor, rule, plan, story, refusal"
)
_INSERT: Final = f"INSERT INTO decisions VALUES ({', '.join('?' * 18)})"
_NAME: Final = re.compile(r"audit-([0-9]{16,})\.db")
_OURS: Final = re.compile(r"audit-[0-9]{16,}\.(db(-wal|-shm|-journal)?|damaged)")

Row = tuple[Any, ...]


class InUse(OSError):
    """Another process writes to the folder."""


class AuditFiles:
    """The files in one ``folder``, of at most ``size`` bytes and ``days`` days together.

    Every method but :meth:`named` may raise ``OSError`` or ``sqlite3.Error``.
    """

    def __init__(self, folder: Path, *, size: int, days: float, began: float) -> None:
        """``began`` is when this process did (seconds since the epoch)."""
        self.folder = folder
        self.put_aside: list[str] = []
        """Files that could not be read."""
        self._size = size
        self._days = days
        self._began = began
        self._lock: IO[bytes] | None = None
        self._file: sqlite3.Connection | None = None
        self._first_at: float | None = None
        self._next = 1

    def open(self) -> None:
        """Take the folder, and go on in its newest file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._lock is None:
            self._lock = _locked(self.folder / "lock")
        newest = next(reversed(self.named()), None)
        while newest is not None and self._file is None:
            try:
                self._go_on(newest)
            except sqlite3.DatabaseError as error:
                if is_away(error):
                    raise
                self._set_aside(newest)
                newest = next(reversed(self.named()), None)
        if self._file is None:
            self._begin()

    @property
    def is_held(self) -> bool:
        """Whether no other process may write to the folder."""
        return self._lock is not None

    def write(self, rows: Sequence[Row], certificates: Iterable[tuple[str, bytes]]) -> None:
        """Keep decisions, given without their numbers, and certificates of plans; all or none."""
        assert self._file is not None
        first = self._next
        with self._file:
            self._file.executemany(_INSERT, ((first + at, *row) for at, row in enumerate(rows)))
            self._file.executemany("INSERT OR IGNORE INTO plans VALUES (?, ?)", certificates)
        self._next += len(rows)
        if rows and self._first_at is None:
            self._first_at = rows[0][0]

    def close(self) -> None:
        """Write nothing more; the folder is for others then."""
        self.let_go()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def let_go(self) -> None:
        """Close the file; :meth:`open` goes on."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def named(self) -> list[Path]:
        """The files, the oldest first."""
        return named(self.folder)

    def bytes(self) -> int:
        """How much room the files take."""
        return sum(map(_size, self._ours()))

    def damaged(self) -> None:
        """The newest file turned out to be damaged while it was written."""
        self.let_go()
        newest = next(reversed(self.named()), None)
        if newest is not None:
            self._set_aside(newest)

    def _go_on(self, path: Path) -> None:
        file = _opened(path)
        try:
            with file:
                file.executescript(_SCHEMA)
                file.execute("INSERT OR IGNORE INTO processes VALUES (?)", (self._began,))
            [(last, first_at)] = file.execute("SELECT max(number), min(at) FROM decisions")
        except sqlite3.Error:
            file.close()
            raise
        self._file, self._first_at = file, first_at
        self._next = max(self._next, first_number(path), (last or 0) + 1)

    def _begin(self) -> None:
        if self._file is not None:
            self._file.execute("PRAGMA journal_mode=DELETE")  # one file is left, for any reader
        self.let_go()
        self._go_on(self.folder / f"audit-{self._next:016d}.db")

    def rotate(self, *, now: float) -> None:
        """Begin another file when this one is long enough, and let old ones go."""
        assert self._file is not None
        if self._first_at is None:
            return
        [(pages,)] = self._file.execute("PRAGMA page_count")
        [(page,)] = self._file.execute("PRAGMA page_size")
        age = now - self._first_at
        if pages * page >= self._size / PARTS or age >= self._days * _DAY_S / PARTS:
            self._begin()
        if len(self.named()) > 1 and self.bytes() > self._size:
            self.drop_oldest()
        for path in self.named()[:-1]:
            if now - path.stat().st_mtime > self._days * _DAY_S:
                _remove(path)

    def drop_oldest(self) -> bool:
        """Delete the oldest file that is not written to; returns whether there was one."""
        others = self.named()[:-1]
        if others:
            _remove(others[0])
        return bool(others)

    def _set_aside(self, path: Path) -> None:
        """The room of a damaged file counts still: one is kept, the latest."""
        for old in self._ours():
            if old.suffix == ".damaged":
                old.unlink(missing_ok=True)
        path.replace(path.with_suffix(".damaged"))
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        self._next = max(self._next, first_number(path) + 1)
        self.put_aside.append(path.name)

    def _ours(self) -> list[Path]:
        """Everything that was made here; an operator may have put other files beside it."""
        return [path for path in self.folder.iterdir() if _OURS.fullmatch(path.name)]


def named(folder: Path) -> list[Path]:
    """The files in ``folder`` that have the name of one, the oldest first; others are not ours."""
    return sorted(path for path in folder.glob("audit-*.db") if _NAME.fullmatch(path.name))


def first_number(path: Path) -> int:
    """The number of the first decision of a file that :func:`named` told."""
    found = _NAME.fullmatch(path.name)
    assert found is not None
    return int(found[1])


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing; raises ``sqlite3.Error``."""
    return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)


def is_away(error: sqlite3.Error) -> bool:
    """Whether a file may be sound and cannot be used now: no room, no rights, locked."""
    full_or_busy = (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_LOCKED,
    )
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in full_or_busy


def _locked(path: Path) -> IO[bytes]:
    file = path.open("ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise InUse("another process keeps its decisions there") from error
    return file


def _opened(path: Path) -> sqlite3.Connection:
    file = sqlite3.connect(path, timeout=1.0, check_same_thread=False)
    try:
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("PRAGMA synchronous=NORMAL")
        file.execute("PRAGMA journal_size_limit=4194304")
    except sqlite3.Error:
        file.close()
        raise
    return file


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _remove(path: Path) -> None:
    for each in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        each.unlink(missing_ok=True)
