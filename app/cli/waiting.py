"""``job run --wait``: look at jobs until each has come to its end.

Jobs are read again and again, not watched: a command lives for minutes, and a reader needs nothing
but the right to read. Answers that fail for a while are waited out.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from app.cli.cluster import Cluster
from app.cli.endings import Code, CommandFailed
from app.cli.job_rows import phase, replicas
from app.kube import errors
from app.wire.kinds import JOBS
from app.wire.unstructured import Object, key_of, status, uid

EVERY_S: Final = 0.5
PATIENCE_S: Final = 60.0
"""How long the API server may be silent."""

_SUCCESS = {"Completed"}
_FAILURE = {"Failed", "Terminated", "Aborted"}


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited, and by which clock; no ``timeout_s``: until the end."""

    timeout_s: float | None = None
    every_s: float = EVERY_S
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Display(Protocol):
    """Where progress is shown."""

    def show(self, job: Object) -> None:
        """``job`` as it is now; may be the same as before."""


def is_over(job: Object) -> bool:
    """Whether nothing will happen to the job by itself any more."""
    return phase(job) in _SUCCESS | _FAILURE


def progress(job: Object) -> str:
    """How far the job has come: ``Running (2 running, 1 succeeded of 3)``."""
    found = status(job)
    counts = [
        f"{found[field]} {field}"
        for field in ("pending", "running", "succeeded", "failed", "terminating", "unknown")
        if found.get(field)
    ]
    pods = f" ({', '.join(counts)} of {replicas(job)})" if counts else ""
    return f"{phase(job) or 'Pending'}{pods}"


async def wait_for(
    cluster: Cluster, jobs: Iterable[Object], *, patience: Patience, display: Display
) -> list[Object]:
    """The jobs as they ended; CommandFailed when one does not, or does not end well."""
    waiting, ended = list(jobs), []
    began = patience.clock()
    answered = began
    while True:
        try:
            waiting = [await _now(cluster, job) for job in waiting]
            answered = patience.clock()
        except errors.Transient:
            if patience.clock() - answered > PATIENCE_S:
                raise
        for job in waiting:
            display.show(job)
        ended += [job for job in waiting if is_over(job)]
        waiting = [job for job in waiting if not is_over(job)]
        if not waiting:
            return _judged(ended)
        left = _left(patience, began)
        if left <= 0:
            raise _late(waiting)
        await patience.sleep(min(patience.every_s, left))


async def _now(cluster: Cluster, job: Object) -> Object:
    found = await cluster.get(JOBS, key_of(job))
    if uid(found) != uid(job):
        raise CommandFailed(Code.NOT_FOUND, f"job {key_of(job)} was deleted and made anew")
    return found


def _left(patience: Patience, began: float) -> float:
    if patience.timeout_s is None:
        return patience.every_s
    return began + patience.timeout_s - patience.clock()


def _late(jobs: Sequence[Object]) -> CommandFailed:
    states = "; ".join(f"{key_of(job)} is {progress(job)}" for job in jobs)
    return CommandFailed(Code.TIMEOUT, f"timed out: {states}")


def _judged(jobs: list[Object]) -> list[Object]:
    failed = [job for job in jobs if phase(job) in _FAILURE]
    if failed:
        raise CommandFailed(Code.JOB_FAILED, "; ".join(_ending(job) for job in failed))
    return jobs


def _ending(job: Object) -> str:
    state = status(job).get("state") or {}
    why = state.get("message") or state.get("reason")
    return f"job {key_of(job)} ended {progress(job)}" + (f": {why}" if why else "")
