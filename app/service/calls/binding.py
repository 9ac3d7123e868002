"""Bind: hold the call at the barrier, then send the Binding.

The answer is an error text, empty for success. kube-scheduler retries a failed Bind after 1, 2, 4,
8, 10 seconds whatever we do, so an error is said once and early, and a Binding that failed for a
passing reason (429, 5xx, no connection) is tried again here first, until the process stops. It is
sent, first or again, only if its gang still stands then (:mod:`app.service.calls.binding_check`),
and by the replica that leads: another one may have given the room to others, or begun to bring a
gang that is bound in part to its minimum. A call whose client is gone is never bound: the scheduler
has given the room to others by then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Answer, Member, Stage
from app.cache.gangs.story import Stimulus
from app.model.ids import GroupKey, NodeName, PodUid
from app.model.numa import NUMA_DECISION
from app.service.activity import OTHER_LEADS, Activity
from app.service.calls.barrier import OPEN, Barrier
from app.service.calls.binding_check import BindingCheck, may_leave, standing, why_fallen
from app.service.calls.bursts import Bursts
from app.service.calls.node_locks import NodeLocks
from app.service.limits import Limits
from app.service.ports import Binder, Clock, Reaction, WriteError
from app.wire.objects.numatopologies import decision_text

Gone = Callable[[], Awaitable[object]]
"""Returns when the caller does not wait for the answer any more."""

_FIRST_PAUSE_S = 0.05
_CLIENT_GONE = "client is gone"
_NO_PLACE = "the place was given back; the pod is planned again"
_UNDER_WAY = "its Binding is under way for an earlier call"
_BROKEN_OFF = "call was broken off"
_LATE = "its turn came too late"
_FOREIGN = "not a pod of our schedulers: such pods are bound with --bind-foreign-pods only (form C)"
_NO_DEVICES = "the devices that it asks for are not free on {node} any more; it is planned again"
_FALLEN = "not tried again: the gang is not what it was"


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
        activity: Activity,
        barrier: Barrier,
        binder: Binder,
        locks: NodeLocks,
        limits: Limits,
        clock: Clock,
        arrived: Callable[[GroupKey], None],
    ) -> None:
        """``arrived``: told the group of each member that has come, held or not."""
        self._cache = cache
        self._activity = activity
        self._arrived = arrived
        self._barrier = barrier
        self._binder = binder
        self._locks = locks
        self._limits = limits
        self._clock = clock
        self._bursts = Bursts(limits.burst_s)
        self._room = asyncio.Semaphore(limits.bindings_in_flight)
        self._latest: dict[PodUid, object] = {}
        """The call that speaks for a pod: kube-scheduler may call again before we answered."""

    async def bind(self, call: BindCall, *, gone: Gone) -> str:
        """Bind a pod of ours once its gang is complete; foreign pods, if at all, are at once."""
        member = self._cache.members.get(call.uid)
        if member is None:
            return await self._bind_unknown(call, gone=gone)
        if member.pod.node:
            return _already(member, call)
        refusal = self._take_place(member, call)
        if refusal:
            return refusal
        if member.stage is Stage.BINDING:
            return "" if member.answer is Answer.YES else _UNDER_WAY
        self._cache.bind_steps.assume(call.uid, now=self._clock())
        self._arrived(member.group)
        turn = self._latest[call.uid] = object()
        error = _BROKEN_OFF  # until there is an answer
        try:
            error = await self._answer(member, call, gone=gone)
        finally:
            if not error:
                self._cache.bind_steps.answered(call.uid, Answer.YES)
            if self._latest.get(call.uid) is turn:
                del self._latest[call.uid]
                if error:
                    self._cache.bind_steps.unassume(call.uid, now=self._clock(), why=error)
        return error

    async def _answer(self, member: Member, call: BindCall, *, gone: Gone) -> str:
        end = await self._pass_barrier(member, call, gone=gone)
        if end != OPEN:
            return end
        keys = self._cache.devices.locks_of(member.pod.shape.devices)
        error = await self._post(call, gone=gone, ours=True)
        if not error:
            self._locks.forget(call.uid, call.node, keys)
        elif keys and not await self._may_be_bound(call):
            await self._locks.give_back(call.uid, call.node, keys)
        return error

    async def _may_be_bound(self, call: BindCall) -> bool:
        try:
            return await self._is_bound(call)
        except WriteError:
            return True

    def _take_place(self, member: Member, call: BindCall) -> str:
        if member.stage is Stage.WAITING:
            return _NO_PLACE
        if member.node != call.node and not (
            member.stage is Stage.PLANNED
            and self._cache.reservations.move(
                call.uid, call.node, now=self._clock(), by=Stimulus.BIND
            )
        ):
            return f"planned on {member.node}, no room on {call.node}"
        if not self._cache.has_its_devices(member):
            why = _NO_DEVICES.format(node=call.node)
            self._cache.reservations.withdraw(call.uid, now=self._clock(), why=why)
            return why
        return ""

    async def _pass_barrier(self, member: Member, call: BindCall, *, gone: Gone) -> str:
        group = self._cache.groups[member.group]
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
        return OPEN if self._cache.bind_steps.binding(call.uid, now=self._clock()) else _NO_PLACE

    async def _bind_unknown(self, call: BindCall, *, gone: Gone) -> str:
        """A foreign pod, or one that the watch has not shown: look, then bind it if it is foreign.

        Only form C sends foreign pods. Elsewhere such a call comes from another client, which may
        not have that pod bound.
        """
        try:
            pod = await self._binder.read_pod(call.namespace, call.name)
        except WriteError as error:
            return str(error)
        if pod is None or pod.uid != call.uid:
            return "pod does not exist any more"
        if self._cache.pods.ours(pod):
            return "pod is not planned yet"
        if not self._limits.binds_foreign:
            return _FOREIGN
        return await self._post(call, gone=gone, ours=False)

    async def _post(self, call: BindCall, *, gone: Gone, ours: bool) -> str:
        await self._bursts.join()
        patience = _Patience(
            gone,
            self._barrier.draining,
            clock=self._clock,
            seconds=self._limits.bind_patience_s,
        )
        while True:
            self._cache.bind_steps.answered(call.uid, Answer.OPEN)
            try:
                if not await self._send(call, gone=gone, ours=ours):
                    return _CLIENT_GONE
            except WriteError as error:
                if error.reaction is Reaction.CONFLICT:
                    return await self._look(call, error)
                if error.reaction is not Reaction.RETRY:
                    return str(error)
                answer = await self._wait(call, error, patience, ours=ours)
                if answer is not None:
                    return answer
            else:
                return ""

    async def _send(self, call: BindCall, *, gone: Gone, ours: bool) -> bool:
        """Send the Binding when its turn comes; False: its client did not wait so long.

        By then another scheduler may have taken the room, of this member or of one it goes with.
        """
        closed = asyncio.ensure_future(gone()) if self._room.locked() else None
        try:
            async with self._room:
                if closed is not None and closed.done():
                    return False
                if ours:
                    await self._lock(call)
                if not self._activity.active:
                    raise WriteError(Reaction.REFUSED, OTHER_LEADS)
                if ours and not may_leave(self._cache, call.uid):
                    raise WriteError(Reaction.RETRY, _LATE)
                self._cache.bind_steps.sent(call.uid)
                await self._binder.bind(
                    call.namespace,
                    call.name,
                    uid=call.uid,
                    node=call.node,
                    annotations=self._decided(call) if ours else {},
                )
                return True
        finally:
            if closed is not None:
                closed.cancel()

    async def _lock(self, call: BindCall) -> None:
        member = self._cache.members.get(call.uid)
        if member is not None:
            keys = self._cache.devices.locks_of(member.pod.shape.devices)
            await self._locks.take(call.uid, call.node, keys)

    def _decided(self, call: BindCall) -> Mapping[str, str]:
        """The annotations that tell the pod what was decided about its place on the node.

        Raises WriteError where that needs devices and there are none.
        """
        found = self._cache.numa.decision(call.uid)
        cpus = {} if found is None else {NUMA_DECISION: decision_text(*found)}
        member = self._cache.members.get(call.uid)
        if member is not None and not self._cache.has_its_devices(member):
            raise WriteError(Reaction.REFUSED, _NO_DEVICES.format(node=call.node))
        return {**cpus, **(self._cache.devices.decision(call.uid, now=self._clock()) or {})}

    async def _wait(
        self, call: BindCall, doubt: WriteError, patience: "_Patience", *, ours: bool
    ) -> str | None:
        """None when the Binding may be sent again, else what the call is answered."""
        at_least_s = doubt.retry_after_s or 0.0
        while True:
            match await patience.pause(at_least_s):
                case _End.TIME_UP | _End.STOPPING:
                    return await self._look(call, doubt)
                case _End.CLIENT_GONE:
                    return _CLIENT_GONE
            if not ours or standing(self._cache, call.uid) is BindingCheck.STANDS:
                return None
            if await self._turns_out_bound(call):
                return ""
            if standing(self._cache, call.uid) is BindingCheck.FALLEN:
                return why_fallen(self._cache, call.uid) or f"{doubt}; {_FALLEN}"
            at_least_s = 0.0

    async def _turns_out_bound(self, call: BindCall) -> bool:
        """Whether a Binding arrived whose answer was lost; what is found out is noted."""
        member = self._cache.members.get(call.uid)
        if member is not None and member.answer is Answer.NO:
            return False  # nothing was sent since that was found
        try:
            bound = await self._is_bound(call)
        except WriteError:
            return False
        if not bound:
            self._cache.bind_steps.answered(call.uid, Answer.NO)
        return bound

    async def _look(self, call: BindCall, doubt: WriteError) -> str:
        """Look at the pod after a conflict (409) or a lost answer: fine if it is on that node."""
        try:
            return "" if await self._is_bound(call) else str(doubt)
        except WriteError as error:
            return str(error)

    async def _is_bound(self, call: BindCall) -> bool:
        pod = await self._binder.read_pod(call.namespace, call.name)
        return pod is not None and pod.uid == call.uid and pod.node == call.node


class _End(Enum):
    """Why a Binding is not tried again."""

    TIME_UP = "time is up"
    CLIENT_GONE = "client is gone"
    STOPPING = "extender is stopping"


class _Patience:
    """The pauses between the tries of one Binding; none when the process is ``stopping``.

    It stops earlier than the time is up, and the call would not be answered at all.
    """

    def __init__(
        self, gone: Gone, stopping: asyncio.Event, *, clock: Clock, seconds: float
    ) -> None:
        self._gone = gone
        self._stopping = stopping
        self._clock = clock
        self._deadline = clock() + seconds
        self._next = _FIRST_PAUSE_S

    async def pause(self, at_least_s: float) -> _End | None:
        """Wait for the next try; returns why there is none."""
        wait = max(self._next, at_least_s)
        if self._clock() + wait > self._deadline:
            return _End.TIME_UP
        end = await self._cut_short(wait)
        self._next = min(self._next * 2, 1.0)
        return end

    async def _cut_short(self, seconds: float) -> _End | None:
        """Wait that long, or until something ends the wait; returns what did."""
        ends = {
            asyncio.ensure_future(self._gone()): _End.CLIENT_GONE,
            asyncio.ensure_future(self._stopping.wait()): _End.STOPPING,
        }
        try:
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return next((end for future, end in ends.items() if future.done()), None)
        finally:
            for future in ends:
                future.cancel()


def _already(member: Member, call: BindCall) -> str:
    if member.pod.node == call.node:
        return ""
    return f"already bound to {member.pod.node}"
