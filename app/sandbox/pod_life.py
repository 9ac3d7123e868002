"""The life of one pod on a node.

::

    bound -> (init containers, one after the other) -> main containers, side by side
          (a restartable init container, a sidecar, is begun in its turn and stays until they end)
          -> each: running -> ended -> restarted or not (restartPolicy, crash back-off)
          -> all ended for good -> Succeeded | Failed
    asked to go at any point -> containers stop (at once, or at the end of the grace period when
          PID 1 is a shell) -> final status -> removed
    longer on the node than activeDeadlineSeconds -> containers stop likewise -> Failed
    no room on the node (:mod:`app.sandbox.node_usage`) -> Failed, without ever running

One task per pod; the status is patched whenever a container changes.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace

from app.sandbox.clock import Clock, parse_timestamp, timestamp
from app.sandbox.commands import Program, program_of, unreadable_annotations
from app.sandbox.pod_events import pod_event
from app.sandbox.pod_status import (
    ContainerState,
    PodFacts,
    Stage,
    Verdict,
    is_sidecar,
    status_patch,
)
from app.sandbox.ports import KubeletApi, PodMissing
from app.wire.documents import Document, items, name_of, section, uid_of

logger = logging.getLogger(__name__)

_KILLED = 137
_RETRY_S = 1.0
_FIRST_BACKOFF_S = 10.0
_LONGEST_BACKOFF_S = 300.0
_TOO_LONG = Verdict(
    "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
)


class PodLife:
    """Runs one pod to its end. ``stop`` asks it to go; asked again, it may only go sooner."""

    def __init__(self, pod: Document, *, api: KubeletApi, clock: Clock, ip: str) -> None:
        self._pod = pod
        self._api = api
        self._clock = clock
        self._policy = section(pod, "spec").get("restartPolicy") or "Always"
        self._leaving = asyncio.Event()
        self._stopping = asyncio.Event()
        self._hurried = asyncio.Event()
        self._kill_at = math.inf
        self._states: dict[str, dict[str, ContainerState]] = {
            field: {container["name"]: ContainerState() for container in items(pod, "spec", field)}
            for field in ("initContainers", "containers")
        }
        self._ip = ip
        self._started = _start_time(pod, clock)
        self._limited = asyncio.Event()
        self._verdict: Verdict | None = None
        self._over = False
        # Containers that end together must not overtake each other's reports: the API server lets
        # none run again that has ended.
        self._reporting = asyncio.Lock()

    def observe(self, pod: Document) -> None:
        """The pod as the API server has it now."""
        before, self._pod = self._pod, pod
        if _limit(before) != _limit(pod):
            limited, self._limited = self._limited, asyncio.Event()
            limited.set()

    def stop(self, grace: float) -> None:
        """Ask the containers to end; they are killed after ``grace`` seconds at the latest."""
        self._leaving.set()
        self._stop_containers(grace)

    def _stop_containers(self, grace: float) -> None:
        kill_at = self._clock.now() + grace
        if kill_at < self._kill_at:
            self._kill_at = kill_at
            hurried, self._hurried = self._hurried, asyncio.Event()
            hurried.set()
        self._stopping.set()

    async def run(self, *, start_seconds: float, stop_seconds: float, is_over: bool) -> None:
        """From the beginning, or only the removal of a pod that ``is_over`` already."""
        if not is_over:
            for complaint in unreadable_annotations(self._pod):
                await self._tell("Warning", "UnreadableAnnotation", complaint)
            limit = asyncio.create_task(self._keep_limit())
            try:
                await self._run_containers(start_seconds)
            finally:
                limit.cancel()
            if self._leaving.is_set():
                await self._clock.sleep(stop_seconds)
        await self._go()

    async def refuse(self, verdict: Verdict) -> None:
        """Instead of ``run``: there is no room for the pod on its node."""
        await self._tell("Warning", verdict.reason, verdict.message)
        message = f"Pod was rejected: {verdict.message}"
        started = timestamp(self._started)
        failed = {"phase": "Failed", "reason": verdict.reason, "message": message}
        await self._patch({**failed, "startTime": started})
        await self._go()

    async def give_up(self, error: Exception) -> None:
        """Instead of the rest of ``run``, which came to an error of our own: the pod has failed."""
        status = {"phase": "Failed", "reason": "KubeletError", "message": repr(error)}
        try:
            await self._patch(status)
        except PodMissing:
            raise
        except Exception:
            logger.exception("failure not written", extra={"pod": str(name_of(self._pod))})
        await self._go()

    async def _go(self) -> None:
        await self._leaving.wait()
        await self._insist(lambda: self._api.delete_pod(name_of(self._pod), uid=uid_of(self._pod)))

    async def _run_containers(self, start_seconds: float) -> None:
        if start_seconds:
            await self._report()
            await self._pause(start_seconds)
        sidecars: list[asyncio.Task[None]] = []
        try:
            if await self._run_init_containers(sidecars):
                await self._run_mains()
        finally:
            await _cancelled(sidecars)
        for sidecar in sidecars:
            if not sidecar.cancelled():
                sidecar.result()
        self._end_sidecars()
        self._over = True
        await self._report()

    async def _keep_limit(self) -> None:
        """Stop the containers when the pod has been here for too long; the limit may change."""
        while (left := self._started + _limit(self._pod) - self._clock.now()) > 0:
            await self._wait(self._limited, at_most=left)
        if not self._stopping.is_set():
            self._verdict = _TOO_LONG
            # Told first: once the containers have stopped, this task is ended.
            await self._tell("Normal", _TOO_LONG.reason, _TOO_LONG.message)
            grace = section(self._pod, "spec").get("terminationGracePeriodSeconds")
            self._stop_containers(float(grace or 0))

    async def _run_init_containers(self, sidecars: list[asyncio.Task[None]]) -> bool:
        """Whether the main containers may start; those that stay are added to ``sidecars``."""
        for container in items(self._pod, "spec", "initContainers"):
            if is_sidecar(container):
                sidecars.append(asyncio.create_task(self._run_sidecar(container)))
                await asyncio.sleep(0)
                continue
            code = await self._run_container("initContainers", container)
            while code and self._policy != "Never" and not self._stopping.is_set():
                code = await self._run_container("initContainers", container)
            if code or self._stopping.is_set():
                return False
        return not self._stopping.is_set()

    async def _run_sidecar(self, container: Document) -> None:
        while not self._stopping.is_set():
            await self._run_container("initContainers", container)

    def _end_sidecars(self) -> None:
        for container in items(self._pod, "spec", "initContainers"):
            state = self._states["initContainers"][container["name"]]
            if is_sidecar(container) and state.stage is Stage.RUNNING:
                code = program_of(self._pod, container).stop_code
                self._end("initContainers", container["name"], code=code)

    async def _run_mains(self) -> None:
        containers = items(self._pod, "spec", "containers")
        tasks = [asyncio.create_task(self._run_main(container)) for container in containers]
        try:
            await asyncio.gather(*tasks)
        finally:
            await _cancelled(tasks)

    async def _run_main(self, container: Document) -> None:
        while True:
            code = await self._run_container("containers", container)
            again = self._policy == "Always" or (self._policy == "OnFailure" and code != 0)
            if not again or self._stopping.is_set():
                return

    async def _run_container(self, field: str, container: Document) -> int:
        """One run of a container, after the back-off that its restarts have earned."""
        name = container["name"]
        await self._back_off(field, name)
        program = program_of(self._pod, container)
        if program.seconds is None and field == "initContainers" and not is_sidecar(container):
            # It prepares something, or waits for something that is there: the rest shall run.
            program = replace(program, seconds=0.0)
        now = self._clock.now()
        before = self._states[field][name]
        running = replace(before, stage=Stage.RUNNING, started=now, reason="", exit_code=0)
        if self._stopping.is_set():
            return self._end(field, name, code=_KILLED)
        self._states[field][name] = running
        if program.seconds != 0:
            await self._report()
        stopped = await self._pause(program.seconds)
        code = await self._stop_code(program, started=now) if stopped else program.exit_code
        self._end(field, name, code=code)
        if field == "initContainers" or len(items(self._pod, "spec", "containers")) > 1:
            await self._report()
        return code

    async def _back_off(self, field: str, name: str) -> None:
        state = self._states[field][name]
        if state.stage is not Stage.TERMINATED:
            return
        restarts = state.restarts + 1
        waiting = replace(
            state,
            stage=Stage.WAITING,
            reason="CrashLoopBackOff",
            restarts=restarts,
            last=state.document(),
        )
        self._states[field][name] = waiting
        if restarts > 1:
            await self._report()
            await self._pause(min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * 2 ** (restarts - 2)))

    def _end(self, field: str, name: str, *, code: int) -> int:
        ended = replace(
            self._states[field][name],
            stage=Stage.TERMINATED,
            exit_code=code,
            finished=self._clock.now(),
        )
        self._states[field][name] = ended
        return code

    async def _stop_code(self, program: Program, *, started: float) -> int:
        """How a container ends that was asked to: at once, unless PID 1 does not listen."""
        if not program.ignores_term:
            return program.stop_code
        ends = math.inf if program.seconds is None else started + program.seconds
        while (left := min(ends, self._kill_at) - self._clock.now()) > 0:
            await self._wait(self._hurried, at_most=left)
        return program.exit_code if ends <= self._kill_at else _KILLED

    async def _pause(self, seconds: float | None) -> bool:
        """Wait (for ever without ``seconds``) or until asked to stop; whether it was."""
        if seconds is None:
            await self._stopping.wait()
        elif seconds > 0 and not self._stopping.is_set():
            await self._wait(self._stopping, at_most=seconds)
        return self._stopping.is_set()

    async def _wait(self, event: asyncio.Event, *, at_most: float) -> None:
        """Return when the event happened or the time is over."""
        if at_most == math.inf:
            await event.wait()
            return
        timer = asyncio.ensure_future(self._clock.sleep(at_most))
        happened = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait({timer, happened}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            happened.cancel()

    async def _report(self) -> None:
        async with self._reporting:
            await self._patch(status_patch(self._pod, self._facts(), now=self._clock.now()))

    def _facts(self) -> PodFacts:
        return PodFacts(
            started=self._started,
            ip=self._ip,
            init=self._states["initContainers"],
            main=self._states["containers"],
            is_over=self._over,
            verdict=self._verdict,
        )

    async def _patch(self, status: Document) -> None:
        await self._insist(
            lambda: self._api.patch_pod_status(
                name_of(self._pod), uid=uid_of(self._pod), status=status
            )
        )

    async def _tell(self, kind: str, reason: str, note: str) -> None:
        now = self._clock.now()
        event = pod_event(self._pod, kind=kind, reason=reason, note=note, now=now)
        await self._api.create_event(event)

    async def _insist(self, write: Callable[[], Awaitable[None]]) -> None:
        """Write until the API server has been reached."""
        while True:
            try:
                await write()
            except OSError as error:
                fields = {"pod": str(name_of(self._pod)), "error": str(error)}
                logger.warning("pod not written, trying again", extra=fields)
                await self._clock.sleep(_RETRY_S)
            else:
                return


async def _cancelled(tasks: list[asyncio.Task[None]]) -> None:
    """Have the tasks end; what they raised is not raised here."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _start_time(pod: Document, clock: Clock) -> float:
    """When a kubelet first saw the pod: another one may have, before this one."""
    told = section(pod, "status").get("startTime")
    return parse_timestamp(told) if told else clock.now()


def _limit(pod: Document) -> float:
    """How long the pod may stay on its node."""
    seconds = section(pod, "spec").get("activeDeadlineSeconds")
    return math.inf if seconds is None else float(seconds)
