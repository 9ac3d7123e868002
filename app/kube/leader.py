"""Leader election on a Lease: one process of many does the work.

::

    waiting ── it is free, or its holder fell silent for its whole duration ──→ leading
    leading ── not renewed within ``renew_deadline_s``, or another holds it ───────→ waiting
    leading ── stop ── the Lease is given back, the next one need not wait ────────→ ended

Whether a holder is silent is judged by our own steady clock, from when *we* saw the Lease change
last: clocks of machines are never compared, and a jump of one moves nothing. Safety rests on
``renew_deadline_s`` < ``duration_s``: a leader that cannot renew stops working before another may
begin (the request in progress included). Every write carries the resourceVersion that was read, so
of two that try, one fails.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import msgspec

from app.kube import bodies, paths
from app.kube.answers import decoded
from app.kube.client import Body
from app.kube.errors import KubeError, NotFound
from app.kube.limiter import Clock, Sleep
from app.telemetry import metrics

log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]


class LeaseStore(Protocol):
    """What is needed of the client."""

    async def get(self, path: str) -> bytes:
        """Read the object."""

    async def create(self, path: str, body: Body) -> bytes:
        """Make the object; AlreadyExists when there is one."""

    async def replace(self, path: str, body: Body) -> bytes:
        """Overwrite the object; Conflict when it changed since it was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTiming:
    """How fast a dead leader is replaced, and how long a leader may try to renew."""

    duration_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        if not self.duration_s > self.renew_deadline_s > self.retry_s > 0:
            raise ValueError("it must be that duration > renew deadline > retry > 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseId:
    """A Lease, and the identity that wants it."""

    namespace: str
    name: str
    identity: str
    """Unique per process, also across restarts of one pod."""


class _Spec(msgspec.Struct, rename="camel", omit_defaults=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct, rename="camel"):
    metadata: dict[str, object]
    """The Lease's metadata, written back as it was read: labels, version and all."""
    spec: _Spec = msgspec.field(default_factory=_Spec)
    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"


_decode = msgspec.json.Decoder(_Lease).decode
_encode = msgspec.json.Encoder().encode


class LeaderElector:
    """Runs for one Lease until stopped."""

    def __init__(
        self,
        store: LeaseStore,
        lease: LeaseId,
        *,
        timing: LeaseTiming,
        clock: Clock,
        now: Callable[[], datetime],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._store = store
        self._lease = lease
        self._timing = timing
        self._clock = clock
        self._now = now
        self._sleep = sleep
        self._seen: _Lease | None = None
        self._changed_at = clock()
        self._leading = False
        self._has_written = False
        """Whether the Lease may be ours, whatever was answered."""
        metrics.LEADER.labels(lease.name).set(0)

    @property
    def leading(self) -> bool:
        """Whether we hold the Lease."""
        return self._leading

    async def run(self, on_started: Work, on_stopped: Work) -> None:
        """Lead whenever we can, until cancelled; then give the Lease back.

        ``on_started`` may return or work on: it is cancelled when the Lease is lost, and
        ``on_stopped`` is awaited before the Lease is tried for again or given back.
        """
        try:
            while True:
                while not await self._try_once(self._timing.renew_deadline_s):
                    await self._sleep(self._timing.retry_s)
                await self._lead(on_started, on_stopped)
        finally:
            await self._release()

    async def _lead(self, on_started: Work, on_stopped: Work) -> None:
        self._set_leading(True)
        work = asyncio.ensure_future(on_started())
        try:
            await self._renew_while_possible(work)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            await on_stopped()
            self._set_leading(False)

    async def _renew_while_possible(self, work: "asyncio.Future[None]") -> None:
        timing = self._timing
        good_until = self._clock() + timing.renew_deadline_s
        while (left_s := good_until - self._clock()) > 0:
            await self._sleep(min(timing.retry_s, left_s))
            if work.done():
                work.result()
            began = self._clock()
            if await self._try_once(good_until - began):
                good_until = began + timing.renew_deadline_s
            elif not self._is_ours():
                return

    async def _try_once(self, within_s: float) -> bool:
        try:
            async with asyncio.timeout(max(0.0, within_s)):
                return await self._acquire_or_renew()
        except (KubeError, TimeoutError) as error:
            log.warning(
                "lease not written", extra={"lease": self._lease.name, "error": repr(error)}
            )
            return False

    async def _acquire_or_renew(self) -> bool:
        lease = self._lease
        path = paths.lease(lease.namespace, lease.name)
        try:
            self._observe(await self._store.get(path))
        except NotFound:
            self._has_written = True
            created = await self._store.create(paths.leases(lease.namespace), self._taken(None))
            self._observe(created)
            return True
        if not self._is_ours() and not self._is_free():
            return False
        self._has_written = True
        self._observe(await self._store.replace(path, self._taken(self._seen)))
        return True

    def _observe(self, raw: bytes) -> None:
        seen = decoded(raw, _decode)
        if self._seen is None or seen != self._seen:
            self._changed_at = self._clock()
        self._seen = seen

    def _is_ours(self) -> bool:
        return self._seen is not None and (self._seen.spec.holder_identity == self._lease.identity)

    def _is_free(self) -> bool:
        spec = self._seen.spec if self._seen is not None else _Spec()
        if not spec.holder_identity:
            return True
        lasts_s = float(spec.lease_duration_seconds or self._timing.duration_s)
        return self._clock() - self._changed_at >= lasts_s

    def _taken(self, old: _Lease | None) -> bytes:
        stamp = bodies.microseconds(self._now())
        spec = _Spec(
            holder_identity=self._lease.identity,
            lease_duration_seconds=round(self._timing.duration_s),
            acquire_time=stamp,
            renew_time=stamp,
            lease_transitions=0,
        )
        if old is None:
            metadata: dict[str, object] = {
                "name": self._lease.name,
                "namespace": self._lease.namespace,
            }
            return _encode(_Lease(metadata=metadata, spec=spec))
        spec.lease_transitions = (old.spec.lease_transitions or 0) + 1
        if self._is_ours():
            spec.acquire_time = old.spec.acquire_time
            spec.lease_transitions = old.spec.lease_transitions
        return _encode(_Lease(metadata=old.metadata, spec=spec))

    async def _release(self) -> None:
        if not self._has_written:
            return
        try:
            async with asyncio.timeout(self._timing.retry_s):
                await self._give_back()
        except (KubeError, TimeoutError) as error:
            log.info(
                "lease not given back", extra={"lease": self._lease.name, "error": repr(error)}
            )

    async def _give_back(self) -> None:
        """Give the Lease back as it is now: the last write may have been done without an answer."""
        path = paths.lease(self._lease.namespace, self._lease.name)
        self._observe(await self._store.get(path))
        if not self._is_ours() or self._seen is None:
            return
        freed = _Lease(
            metadata=self._seen.metadata,
            spec=_Spec(
                holder_identity="",
                lease_duration_seconds=1,
                renew_time=bodies.microseconds(self._now()),
                lease_transitions=self._seen.spec.lease_transitions,
            ),
        )
        await self._store.replace(path, _encode(freed))

    def _set_leading(self, leading: bool) -> None:
        self._leading = leading
        metrics.LEADER.labels(self._lease.name).set(leading)
        log.info(
            "leading" if leading else "not leading any more",
            extra={"lease": self._lease.name, "identity": self._lease.identity},
        )
