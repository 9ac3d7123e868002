"""Progress of jobs: bars on a terminal, elsewhere a line whenever something changed.

Both go to standard error, so that standard output holds the result alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from app.cli.job_rows import replicas
from app.cli.waiting import Display, progress
from app.wire.unstructured import Key, Object, key_of, status


@contextmanager
def display(console: Console | None = None) -> Iterator[Display]:
    """Bars or lines, as it fits where standard error goes."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield Lines()
        return
    with Progress(
        TextColumn("{task.fields[job]}", markup=False),
        BarColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=console,
    ) as bars:
        yield Bars(bars)


class Lines:
    """A line per change."""

    def __init__(self) -> None:
        self._said: dict[Key, str] = {}

    def show(self, job: Object) -> None:
        """Say how far the work has come, unless that was said last."""
        text = progress(job)
        if self._said.get(key_of(job)) != text:
            self._said[key_of(job)] = text
            typer.echo(f"{key_of(job)}: {text}", err=True)


class Bars:
    """A bar per job: pods that have ended, of all."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[Key, TaskID] = {}

    def show(self, job: Object) -> None:
        """Move the bar of the work."""
        key, found = key_of(job), status(job)
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task("", total=None, job=str(key))
        self._bars.update(
            self._tasks[key],
            description=progress(job),
            total=max(replicas(job), 1),
            completed=int(found.get("succeeded") or 0) + int(found.get("failed") or 0),
        )
