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
from app.cli.findings import Findings, conclude
from app.cli.job_rows import FAILURE, is_over, phase, replicas
from app.kube import errors
from app.wire.kinds import JOBS, POD_GROUPS
from app.wire.unstructured import Key, Object, key_of, name, status, uid

EVERY_S: Final = 0.5
PATIENCE_S: Final = 60.0
"""How long the API server may be silent."""

REASON_S: Final = 2.0
"""How often the PodGroup of a waiting job is asked for its reason."""
QUIET_S: Final = 10.0
"""How long a job may wait without a reason before that itself is told."""

_WAITS = {"", "Pending"}


@dataclass(frozen=True, slots=True)
class Why:
    """Why a job waits, in a word and in a sentence; both empty: there is nothing to tell."""

    reason: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited, and by which clock; no ``timeout_s``: until the end."""

    timeout_s: float | None = None
    every_s: float = EVERY_S
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Display(Protocol):
    """Where progress is shown."""

    def show(self, job: Object, why: Why) -> None:
        """``job`` as it is now, and why it waits; may be the same as before."""


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
    reasons = _Reasons(cluster, patience.clock)
    began = patience.clock()
    answered = began
    while True:
        try:
            waiting = [await _now(cluster, job) for job in waiting]
            await reasons.look(waiting)
            answered = patience.clock()
        except errors.Transient:
            if patience.clock() - answered > PATIENCE_S:
                raise
        for job in waiting:
            display.show(job, reasons.of(job))
        ended += [job for job in waiting if is_over(job)]
        waiting = [job for job in waiting if not is_over(job)]
        if not waiting:
            return _judged(ended)
        left = _left(patience, began)
        if left <= 0:
            raise _late(waiting, reasons)
        await patience.sleep(min(patience.every_s, left))


class _Reasons:
    """Why jobs wait, as their PodGroups tell; nothing where the user may not see those."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._began = clock()
        self._next_at = self._began
        self._found: dict[Key, Why] = {}
        self._may_see = True

    def of(self, job: Object) -> Why:
        """Why the job waits, as was found last."""
        return self._found.get(key_of(job), Why()) if phase(job) in _WAITS else Why()

    async def look(self, jobs: Iterable[Object]) -> None:
        """Ask for the reasons of those of the jobs that wait, if it is time."""
        if not self._may_see or self._clock() < self._next_at:
            return
        self._next_at = self._clock() + REASON_S
        for job in jobs:
            if phase(job) in _WAITS:
                self._found[key_of(job)] = await self._why(job)

    async def _why(self, job: Object) -> Why:
        group = None
        key = Key(key_of(job).namespace, f"{name(job)}-{uid(job)}")
        try:
            group = await self._cluster.get(POD_GROUPS, key)
        except errors.NotFound:
            pass
        except errors.Forbidden:
            self._may_see = False
            return Why()
        told = conclude(Findings(subject="", job=job, group=group, sees_queue=False))
        is_quiet = self._clock() - self._began < QUIET_S
        return Why() if not told.reason and is_quiet else Why(told.reason, told.summary)


async def _now(cluster: Cluster, job: Object) -> Object:
    found = await cluster.get(JOBS, key_of(job))
    if uid(found) != uid(job):
        raise CommandFailed(Code.NOT_FOUND, f"job {key_of(job)} was deleted and made anew")
    return found


def _left(patience: Patience, began: float) -> float:
    if patience.timeout_s is None:
        return patience.every_s
    return began + patience.timeout_s - patience.clock()


def _late(jobs: Sequence[Object], reasons: _Reasons) -> CommandFailed:
    states = "; ".join(
        f"{key_of(job)} is {progress(job)}" + (f": {why}" if why else "")
        for job in jobs
        for why in (reasons.of(job).summary,)
    )
    return CommandFailed(Code.TIMEOUT, f"timed out: {states}")


def _judged(jobs: list[Object]) -> list[Object]:
    failed = [job for job in jobs if phase(job) in FAILURE]
    if failed:
        raise CommandFailed(Code.JOB_FAILED, "; ".join(_ending(job) for job in failed))
    return jobs


def _ending(job: Object) -> str:
    state = status(job).get("state") or {}
    why = state.get("message") or state.get("reason")
    return f"job {key_of(job)} ended {progress(job)}" + (f": {why}" if why else "")
