"""Progress of jobs: bars on a terminal, elsewhere a line whenever something changed.

Both go to standard error, so that standard output holds the result alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from app.cli.frames import line, printable
from app.cli.job_rows import replicas
from app.cli.waiting import Display, Why, progress
from app.wire.unstructured import Key, Object, key_of, status


@contextmanager
def display(console: Console | None = None) -> Iterator[Display]:
    """Bars or lines, as it fits where standard error goes."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield Lines()
        return
    with _Progress(
        TextColumn("{task.fields[job]}", markup=False),
        BarColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=console,
    ) as bars:
        yield Bars(bars)


class Lines:
    """A line per change; the numbers of a reason change too often for that."""

    def __init__(self) -> None:
        self._said: dict[Key, tuple[str, str]] = {}

    def show(self, job: Object, why: Why) -> None:
        """Say how far the work has come and why it waits, unless that was said last."""
        news = (progress(job), why.reason or why.summary)
        if self._said.get(key_of(job)) != news:
            self._said[key_of(job)] = news
            told = f": {why.summary}" if why.summary else ""
            typer.echo(printable(f"{key_of(job)}: {progress(job)}{told}"), err=True)


class _Progress(Progress):
    """Bars, and below them a line for each job that waits."""

    def get_renderables(self) -> Iterator[RenderableType]:
        """The bars first."""
        yield from super().get_renderables()
        for task in self.tasks:
            if why := task.fields["why"]:
                told = f"{task.fields['job']} waits: {why}"
                yield line(told, self.console.width, style="yellow")


class Bars:
    """A bar per job: pods that have ended, of all."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[Key, TaskID] = {}

    def show(self, job: Object, why: Why) -> None:
        """Move the bar of the work, and tell below why it waits."""
        key, found = key_of(job), status(job)
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task("", total=None, job=str(key), why="")
        self._bars.update(
            self._tasks[key],
            description=progress(job),
            total=max(replicas(job), 1),
            completed=int(found.get("succeeded") or 0) + int(found.get("failed") or 0),
            why=why.summary,
        )
