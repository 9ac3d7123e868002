"""Bind: hold the call at the barrier, then send the Binding.

The answer is an error text, empty for success. kube-scheduler retries a failed Bind after 1, 2, 4,
8, 10 seconds whatever we do, so an error is said once and early, and a Binding that failed for a
passing reason (429, 5xx, no connection) is tried again here first. A call whose client is gone is
never bound: the scheduler has given the room to others by then.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from app.cache.cluster import ClusterCache
from app.cache.members import Member, Stage
from app.model.ids import GroupKey, NodeName, PodUid
from app.service.barrier import OPEN, Barrier
from app.service.bursts import Bursts
from app.service.limits import Limits
from app.service.ports import Binder, Clock, Reaction, WriteError

Gone = Callable[[], Awaitable[None]]
"""Returns when the client has closed the connection."""

_FIRST_PAUSE_S = 0.05
_CLIENT_GONE = "client is gone"
_NO_PLACE = "the place was given back; the pod is planned again"


@dataclass(frozen=True, slots=True)
class BindCall:
    """What kube-scheduler asks: bind the pod with this UID to ``node``."""

    uid: PodUid
    namespace: str
    name: str
    node: NodeName


class Binding:
    """Answers Bind."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        barrier: Barrier,
        binder: Binder,
        limits: Limits,
        clock: Clock,
        arrived: Callable[[GroupKey], None],
    ) -> None:
        """``arrived``: told the group of each member that has come, held or not."""
        self._cache = cache
        self._arrived = arrived
        self._barrier = barrier
        self._binder = binder
        self._limits = limits
        self._clock = clock
        self._bursts = Bursts(limits.burst_s)
        self._latest: dict[PodUid, object] = {}
        """The call that speaks for a pod: kube-scheduler may call again before we answered."""

    async def bind(self, call: BindCall, *, gone: Gone) -> str:
        """Bind a pod of ours once its gang is complete; other pods are bound at once."""
        member = self._cache.members.get(call.uid)
        if member is None:
            return await self._bind_stranger(call, gone=gone)
        if member.pod.node:
            return _already(member, call)
        refusal = self._take_place(member, call)
        if refusal:
            return refusal
        self._cache.assume(call.uid, now=self._clock())
        self._arrived(member.group)
        turn = self._latest[call.uid] = object()
        error = "call was cancelled"
        try:
            error = await self._pass_barrier(member, call, gone=gone)
            if error == OPEN:
                error = await self._post(call, gone=gone)
        finally:
            if self._latest.get(call.uid) is turn:
                del self._latest[call.uid]
                if error:
                    self._cache.unassume(call.uid, now=self._clock())
        return error

    def _take_place(self, member: Member, call: BindCall) -> str:
        if member.stage is Stage.WAITING:
            return _NO_PLACE
        if member.node == call.node:
            return ""
        if member.stage is Stage.PLANNED and self._cache.move(
            call.uid, call.node, now=self._clock()
        ):
            return ""
        return f"planned on {member.node}, no room on {call.node}"

    async def _pass_barrier(self, member: Member, call: BindCall, *, gone: Gone) -> str:
        group = self._cache.groups[member.group]
        if member.stage is Stage.BINDING:
            return OPEN  # it was let go before; if that Binding arrived, this one says so
        if not group.known:
            return "PodGroup is gone"
        if self._barrier.check(member.group):
            return self._start(call)
        future = self._barrier.hold(member.group, call.uid)
        closed = asyncio.ensure_future(gone())
        try:
            ends: set[asyncio.Future[Any]] = {future, closed}
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            closed.cancel()
            self._barrier.leave(member.group, call.uid, future)
        if closed.done() and not closed.cancelled():
            return _CLIENT_GONE
        return future.result() or self._start(call)

    def _start(self, call: BindCall) -> str:
        return OPEN if self._cache.binding(call.uid, now=self._clock()) else _NO_PLACE

    async def _bind_stranger(self, call: BindCall, *, gone: Gone) -> str:
        """A pod that is not ours (form C), or that the watch has not shown: look, then bind."""
        try:
            pod = await self._binder.read_pod(call.namespace, call.name)
        except WriteError as error:
            return str(error)
        if pod is None or pod.uid != call.uid:
            return "pod does not exist any more"
        if self._cache.ours(pod):
            return "pod is not planned yet"
        return await self._post(call, gone=gone)

    async def _post(self, call: BindCall, *, gone: Gone) -> str:
        await self._bursts.join()
        deadline = self._clock() + self._limits.bind_patience_s
        pause = _FIRST_PAUSE_S
        while True:
            try:
                await self._binder.bind(call.namespace, call.name, uid=call.uid, node=call.node)
            except WriteError as error:
                if error.reaction is Reaction.CONFLICT:
                    return await self._look(call, error)
                if error.reaction is not Reaction.RETRY:
                    return str(error)
                wait = max(pause, error.retry_after_s or 0.0)
                if self._clock() + wait > deadline:
                    return await self._look(call, error)
                if await _gone_within(gone, wait):
                    return _CLIENT_GONE
                pause = min(pause * 2, 1.0)
            else:
                return ""

    async def _look(self, call: BindCall, doubt: WriteError) -> str:
        """Somebody was faster (409), or an answer was lost: success if it is on that node."""
        try:
            pod = await self._binder.read_pod(call.namespace, call.name)
        except WriteError as error:
            return str(error)
        if pod is not None and pod.uid == call.uid and pod.node == call.node:
            return ""
        return str(doubt)


async def _gone_within(gone: Gone, seconds: float) -> bool:
    """Wait that long, or until the client is gone; returns whether it is."""
    closed = asyncio.ensure_future(gone())
    try:
        done, _ = await asyncio.wait({closed}, timeout=seconds)
    finally:
        closed.cancel()
    return bool(done)


def _already(member: Member, call: BindCall) -> str:
    if member.pod.node == call.node:
        return ""
    return f"already bound to {member.pod.node}"
