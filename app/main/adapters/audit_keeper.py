"""Keeps decisions: one thread writes them, so that nothing that decides waits for a disk.

Decisions wait in a queue of bounded length; what finds it full is counted and not kept. When the
files cannot be written (no room, no rights, another process has them), the thread tries again now
and then with what it has, and says so in the meantime.
"""

import logging
import sqlite3
import tempfile
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from app.core.texts import describe
from app.main.adapters.audit_files import AuditFiles, InUse, Row, is_away
from app.main.adapters.audit_reader import AuditReader
from app.model.decision import Decision
from app.telemetry import metrics

log = logging.getLogger(__name__)

MOST_WAITING: Final = 50_000
"""Decisions in the queue."""
UNCHOSEN_SIZE: Final = 8 * 1024 * 1024
"""Bytes at most where no folder was chosen: temporary folders are small."""
_AT_ONCE: Final = 2_000
_EVERY_S: Final = 0.25
_PATIENCE_S: Final = 15.0
_json = msgspec.json.Encoder(enc_hook=str).encode


class AuditKeeper:
    """``keep`` is for the thread that decides; all else may be called from any."""

    def __init__(
        self, folder: Path | None, *, size: int, days: float, clock: Callable[[], float]
    ) -> None:
        """Keep at most ``size`` bytes and ``days`` days in ``folder``.

        None: in a temporary folder of this process, which goes with it.
        """
        self._chosen = folder
        self._size = size if folder is not None else min(size, UNCHOSEN_SIZE)
        self._days = days
        self._began = clock()
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._files: AuditFiles | None = None
        self._queue: deque[Decision] = deque()
        self._dropped = 0
        self._problem = ""
        self._unwritable = 0
        self._unwritable_why = ""
        self._wake = threading.Event()
        self._written = threading.Condition()
        self._busy = False
        self._stopping = False
        self._tried_s = float("-inf")
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)

    def start(self) -> None:
        """Begin to write; what earlier processes left can be read after the first try."""
        self._busy = True
        self._thread.start()

    def keep(self, decision: Decision) -> None:
        """Take a decision; it is written soon, or counted as dropped."""
        if len(self._queue) >= MOST_WAITING:
            self._drop(1)
            return
        self._queue.append(decision)

    def settle(self, *, timeout_s: float = 2.0) -> None:
        """Wait until all that was decided before is written, or the time is up."""
        self._wake.set()
        with self._written:
            self._written.wait_for(self._is_idle, timeout=timeout_s)

    def stop(self) -> None:
        """Write what is there, and end; the folder is free for another process then."""
        self._stopping = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=10.0)

    def has_folder(self) -> bool:
        """Whether this process has its folder to itself."""
        return self._files is not None and self._files.is_held

    def notices(self) -> tuple[str, ...]:
        """What an operator should know."""
        told = []
        if self._problem:
            told.append(f"decisions are not kept: {self._problem}")
        if self._unwritable:
            told.append(
                f"decisions dropped that cannot be written: {self._unwritable}, the last "
                f"since {self._unwritable_why}"
            )
        return tuple(told)

    def reader(self) -> AuditReader:
        """Answers questions about what is kept."""
        return AuditReader(
            folder=lambda: self._files.folder if self._files is not None else None,
            outlives_process=self._chosen is not None,
            began=self._began,
            settle=self.settle,
            dropped=lambda: self._dropped,
            problems=self._problems,
        )

    def _problems(self) -> tuple[str, ...]:
        aside = self._files.put_aside if self._files is not None else ()
        lost = tuple(f"{name} is damaged, it was put aside" for name in aside)
        return self.notices() + lost

    def _is_idle(self) -> bool:
        return not (self._queue or self._busy) or bool(self._problem)

    def _drop(self, count: int) -> None:
        self._dropped += count
        metrics.AUDIT_DROPPED.inc(count)

    # --- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        left: list[Decision] = []
        while True:
            self._wake.wait(_EVERY_S)
            self._wake.clear()
            stopping = self._stopping
            self._busy = True
            left = self._write_all(left, at_once=stopping)
            self._busy = False
            with self._written:
                self._written.notify_all()
            if stopping:
                self._end(lost=len(left) + len(self._queue))
                return

    def _write_all(self, left: list[Decision], *, at_once: bool) -> list[Decision]:
        """Write ``left`` and the queue; returns what could not be written and is tried again."""
        if self._problem and not at_once and time.monotonic() - self._tried_s < _PATIENCE_S:
            return left
        self._tried_s = time.monotonic()
        while True:
            batch = left or [self._queue.popleft() for _ in range(min(len(self._queue), _AT_ONCE))]
            if not self._write(batch):
                return batch
            left = []
            if not self._queue:
                return []

    def _write(self, batch: list[Decision]) -> bool:
        last = batch[-1].at if batch else None
        try:
            files = self._opened()
            self._put(files, batch)
        except sqlite3.DatabaseError as error:
            self._on_error(error)
            return False
        except OSError as error:
            self._is_wrong(str(error) if isinstance(error, InUse) else error.strerror or str(error))
            return False
        except Exception as error:
            log.exception("files of decisions cannot be used")
            self._is_wrong(f"{type(error).__name__}: {error}")
            return False
        self._is_right()
        if last is not None:
            self._tidy(files, now=last)
        return True

    def _put(self, files: AuditFiles, batch: list[Decision]) -> None:
        """Write the batch and empty it; what cannot be written as it is is dropped.

        Raises what is wrong with the files; the batch has what is not written then.
        """
        at_once = len(batch)
        while batch:
            part = batch[:at_once]
            try:
                files.write([_row(each) for each in part], _certificates(part))
                metrics.AUDIT_WRITTEN.inc(len(part))
            except Exception as error:
                if _is_of_files(error):
                    raise
                if len(part) > 1:
                    at_once = 1
                    continue
                log.exception("a decision cannot be written as it is")
                self._unwritable += 1
                self._unwritable_why = f"{type(error).__name__}: {error}"
                self._drop(1)
            del batch[:at_once]

    def _tidy(self, files: AuditFiles, *, now: float) -> None:
        try:
            files.rotate(now=now)
            metrics.AUDIT_BYTES.set(files.bytes())
        except Exception as error:
            log.warning("files of decisions are not tidied", extra={"error": repr(error)})
            files.let_go()

    def _opened(self) -> AuditFiles:
        if self._files is None:
            self._files = AuditFiles(
                self._folder(), size=self._size, days=self._days, began=self._began
            )
        self._files.open()
        return self._files

    def _folder(self) -> Path:
        if self._chosen is not None:
            return self._chosen
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="pumice-audit-")
        return Path(self._temporary.name)

    def _on_error(self, error: sqlite3.Error) -> None:
        files = self._files
        assert files is not None
        try:
            files.let_go()
            if not is_away(error):
                files.damaged()
                self._tried_s = float("-inf")  # at once, in another file
            elif error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL and files.drop_oldest():
                self._tried_s = float("-inf")
        except (OSError, sqlite3.Error) as more:
            log.warning("files of decisions cannot be mended", extra={"error": str(more)})
        self._is_wrong(str(error))

    def _is_wrong(self, why: str) -> None:
        where = self._chosen or "a temporary folder"
        text = f"{where}: {why}"
        metrics.AUDIT_KEPT.set(0)
        if text != self._problem:
            log.warning("decisions are not kept", extra={"why": text})
        self._problem = text

    def _is_right(self) -> None:
        metrics.AUDIT_KEPT.set(1)
        if self._problem:
            log.info("decisions are kept again")
        self._problem = ""

    def _end(self, *, lost: int) -> None:
        self._drop(lost)
        try:
            if self._files is not None:
                self._files.close()
            if self._temporary is not None:
                self._temporary.cleanup()
        except (OSError, sqlite3.Error) as error:
            log.warning("files of decisions are not closed", extra={"error": str(error)})


def _is_of_files(error: Exception) -> bool:
    """Whether the files are to blame; if not, what was to be written is."""
    about_values = (sqlite3.ProgrammingError, sqlite3.DataError)
    return isinstance(error, OSError | sqlite3.DatabaseError) and not isinstance(
        error, about_values
    )


def _row(each: Decision) -> Row:
    refusal = each.refusal
    return (
        each.at,
        each.kind.value,
        each.group,
        each.job,
        each.queue,
        each.pod,
        each.uid,
        each.node,
        each.stimulus,
        each.cause,
        describe(refusal) if refusal is not None else each.text,
        each.generation,
        each.preemptor,
        each.rule,
        each.plan,
        _json(each.story).decode(),
        _json(refusal).decode() if refusal is not None else None,
    )


def _certificates(batch: Iterable[Decision]) -> list[tuple[str, bytes]]:
    """The certificates that decisions bring, each once, compressed."""
    found = {each.plan: each.certificate for each in batch if each.certificate}
    return [(plan, zlib.compress(_json(certificate))) for plan, certificate in found.items()]
