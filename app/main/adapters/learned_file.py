"""What was learned of run times, and how good ETAs were, in a file that outlives a process.

The file is an SQLite database beside those of the audit trail, of less than 1 MB. It is written as
a whole, now and then and at the end, by the process that has the folder to itself.
"""

import asyncio
import logging
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from app.core.eta.run_times import BUCKETS, Counts
from app.model.ids import QueueName
from app.service.cycle.eta.answers import Kept
from app.service.cycle.eta.etas import Etas

log = logging.getLogger(__name__)

NAME: Final = "learned.db"
EVERY_S: Final = 60.0
_VERSION: Final = 1
"""Of the tables, and of the buckets of sketches."""
_SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS run_times(place INTEGER PRIMARY KEY, key BLOB, runs BLOB);
CREATE TABLE IF NOT EXISTS answers(queue TEXT, asked REAL, p50 REAL, p90 REAL, started REAL);
PRAGMA user_version = {_VERSION};
"""


class Learned(NamedTuple):
    """Sketches by key, those that were fed least lately first, and outcomes of ETAs."""

    sketches: list[tuple[bytes, Counts]]
    answers: list[Kept]


NOTHING: Final = Learned([], [])


def read(folder: Path) -> Learned:
    """What the file in ``folder`` has; nothing where there is none, or it is of another version.

    Raises ``sqlite3.Error``.
    """
    path = folder / NAME
    if not path.exists():
        return NOTHING
    with closing(sqlite3.connect(path, timeout=1.0)) as file:
        [(version,)] = file.execute("PRAGMA user_version")
        if version != _VERSION:
            return NOTHING
        sketches = [
            (bytes(key), counts)
            for key, runs in file.execute("SELECT key, runs FROM run_times ORDER BY place")
            if len(counts := np.frombuffer(zlib.decompress(runs), dtype="<u2")) == BUCKETS
        ]
        found = file.execute("SELECT queue, asked, p50, p90, started FROM answers ORDER BY rowid")
        return Learned(sketches, [Kept(QueueName(queue), *times) for queue, *times in found])


def write(folder: Path, learned: Learned) -> None:
    """Let the file in ``folder`` have this and nothing else.

    Raises ``OSError`` and ``sqlite3.Error``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = (
        (place, key, zlib.compress(counts.astype("<u2").tobytes(), 1))
        for place, (key, counts) in enumerate(learned.sketches)
    )
    with closing(sqlite3.connect(folder / NAME, timeout=1.0)) as file:
        file.executescript(_SCHEMA)
        with file:
            file.execute("DELETE FROM run_times")
            file.execute("DELETE FROM answers")
            file.executemany("INSERT INTO run_times VALUES (?, ?, ?)", rows)
            file.executemany("INSERT INTO answers VALUES (?, ?, ?, ?, ?)", learned.answers)


@dataclass(slots=True, eq=False)
class LearnedKeeper:
    """Keeps what ``etas`` learn in ``folder`` (None: nowhere).

    ``is_ours`` tells whether this process has the folder to itself.
    """

    etas: Etas
    folder: Path | None
    is_ours: Callable[[], bool]
    _saved: tuple[int, int] = (0, 0)

    async def run(self) -> None:
        """Read what was kept, then write what is new, for ever, and once more at the end."""
        await self.load()
        try:
            while self.folder is not None:
                await asyncio.sleep(EVERY_S)
                await self.save()
        finally:
            await self.save()

    async def save(self) -> None:
        """Write what is new, if anything is."""
        run_times, answers = self.etas.run_times, self.etas.answers
        counts = (run_times.learned, answers.noted)
        if self.folder is None or counts == self._saved or not self.is_ours():
            return
        learned = Learned(list(run_times.sketches.all()), answers.all())
        try:
            await asyncio.to_thread(write, self.folder, learned)
        except sqlite3.DatabaseError as error:
            log.warning("learned run times are not kept", extra={"error": str(error)})
            if not isinstance(error, sqlite3.OperationalError):
                self._set_aside(self.folder)
            return
        except OSError as error:
            log.warning("learned run times are not kept", extra={"error": str(error)})
            return
        self._saved = counts

    async def load(self) -> None:
        """Read what was kept."""
        if self.folder is None:
            return
        try:
            learned = await asyncio.to_thread(read, self.folder)
        except (sqlite3.Error, zlib.error, OSError) as error:
            log.warning("learned run times cannot be read", extra={"error": str(error)})
            return
        self.etas.run_times.sketches.take(learned.sketches)
        self.etas.answers.take(learned.answers)

    def _set_aside(self, folder: Path) -> None:
        """A damaged file is written anew."""
        try:
            (folder / NAME).replace(folder / f"{NAME}.damaged")
        except OSError as error:
            log.warning("a damaged file stays", extra={"error": str(error)})
