"""Stranded gangs of plain PodGroups: what their annotations ask for is done in time.

The pods of such a group are of another operator, which makes lost ones anew. So *restart* evicts
those that are left, and the operator makes all of them again. *Release* evicts none: the rest runs
on, and the scheduler keeps no room for the missing members any more. Groups of vcjobs are the job
controller's. Each step is told by an event of the PodGroup.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from app.controllers.podgroup.group import GROUP
from app.controllers.ports import Api, ApiError, Clock, Events, Failure
from app.controllers.requests import GONE, unless
from app.controllers.runtime import ObjectChange
from app.controllers.store import Index, Store
from app.core.gangs import stranded
from app.core.gangs.stranded import STRANDED_SINCE, StrandedAction, StrandedRule
from app.kit.workqueue import Again
from app.model.workload import STRANDED_RELEASED, GroupPhase
from app.wire import times
from app.wire.errors import DecodeError
from app.wire.kinds import JOBS, POD_GROUPS, PODS, Resource
from app.wire.unstructured import (
    Key,
    Object,
    annotations,
    is_deleting,
    key_of,
    metadata,
    namespace,
    owner_of,
    spec,
    status,
    uid,
)

NAME: Final = "pg-controller"
_JOB: Final = (JOBS.api_version, JOBS.kind)
_FOLLOWS: Final = {
    StrandedAction.RESTART: "the pods that are left are evicted at {}",
    StrandedAction.RELEASE: "at {} no more room is kept for the missing members",
}


def by_group(item: Object) -> str:
    """The PodGroup of a pod, as ``namespace/name``."""
    named = annotations(item).get(GROUP)
    return str(Key(namespace(item), named)) if named else ""


INDEXES: Final[Mapping[Resource, Mapping[str, Index]]] = {PODS: {"group": by_group}}


class StrandedGroups:
    """PodGroups below their minimum, by their names."""

    name = NAME
    kinds = (POD_GROUPS,)

    def __init__(
        self, stores: Mapping[Resource, Store], *, api: Api, events: Events, clock: Clock
    ) -> None:
        self._stores = stores
        self._api = api
        self._events = events
        self._clock = clock
        self._told: dict[str, str] = {}
        """What was told last of the group with that UID, beside what its annotations show."""

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        """The group, unless a vcjob owns it."""
        if change.new is None:
            self._told.pop(uid(change.item), None)
            return ()
        owner = owner_of(change.item)
        of_job = owner is not None and (owner.api_version, owner.kind) == _JOB
        return () if of_job else (key_of(change.item),)

    async def reconcile(self, key: Key) -> None:
        """Note since when the group is stranded, and act when its time is over."""
        group = self._stores[POD_GROUPS].get(key)
        if group is None or is_deleting(group):
            return
        await self._complain(group)
        rule = stranded.rule_of(annotations(group))
        if rule is None or status(group).get("phase") != GroupPhase.UNKNOWN:
            await self._forget(group)
            return
        since = _moment(annotations(group).get(STRANDED_SINCE, ""))
        if since is None:
            since = self._clock()
            await self._note(group, {STRANDED_SINCE: times.seconds(since)})
            await self._tell_what_follows(group, rule, since)
        left_s = since + rule.after_s - self._clock()
        if left_s > 0:
            raise Again("a gang is stranded", after_s=left_s)
        if rule.action is StrandedAction.RESTART:
            await self._restart(group, since + rule.after_s)
        elif not annotations(group).get(STRANDED_RELEASED):
            await self._note(group, {STRANDED_RELEASED: times.seconds(self._clock())})
            text = "the gang runs on below its minimum; no room is kept for the missing members"
            await self._events.record(group, "Warning", "StrandedReleased", text)

    async def _restart(self, group: Object, due: float) -> None:
        """Evict the pods that are left; those that were made since wait for the others."""
        left = [
            pod
            for pod in self._stores[PODS].by("group", str(key_of(group)))
            if spec(pod).get("nodeName")
            and not is_deleting(pod)
            and status(pod).get("phase") not in ("Succeeded", "Failed")
            and (_moment(metadata(pod).get("creationTimestamp")) or 0.0) <= due
        ]
        refused: list[ApiError] = []
        for pod in left:
            try:
                with unless(*GONE):
                    await self._api.evict(key_of(pod), uid=uid(pod))
            except ApiError as error:
                refused.append(error)
        gone = len(left) - len(refused)
        if gone:
            pods = "1 pod is" if gone == 1 else f"{gone} pods are"
            text = f"{pods} evicted so that all members of the gang are made anew"
            await self._events.record(group, "Warning", "StrandedRestarted", text)
        if refused:
            await self._tell_once(group, "StrandedNotRestarted", str(refused[0]))
            if any(error.failure is not Failure.REFUSED for error in refused):
                raise refused[0]

    async def _tell_what_follows(self, group: Object, rule: StrandedRule, since: float) -> None:
        due = _FOLLOWS[rule.action].format(times.seconds(since + rule.after_s))
        text = f"the gang has run below its minimum since {times.seconds(since)}; {due}"
        await self._events.record(group, "Warning", "Stranded", text)

    async def _forget(self, group: Object) -> None:
        there = {key for key in (STRANDED_SINCE, STRANDED_RELEASED) if key in annotations(group)}
        if there:
            await self._note(group, dict.fromkeys(there))

    async def _note(self, group: Object, changes: Mapping[str, str | None]) -> None:
        body = {"metadata": {"uid": uid(group), "annotations": dict(changes)}}
        with unless(*GONE):
            stored = await self._api.patch(POD_GROUPS, key_of(group), body)
            self._stores[POD_GROUPS].renew(stored)

    async def _complain(self, group: Object) -> None:
        """Tell of annotations that ask for nothing, as webhooks may not have seen them."""
        problem = stranded.unreadable(annotations(group))
        if problem is not None:
            await self._tell_once(group, "PolicyIgnored", str(problem))

    async def _tell_once(self, group: Object, reason: str, text: str) -> None:
        told = f"{reason}: {text}"
        if self._told.get(uid(group)) != told:
            self._told[uid(group)] = told
            await self._events.record(group, "Warning", reason, text)


def _moment(text: object) -> float | None:
    try:
        return times.parse(text) if isinstance(text, str) and text else None
    except DecodeError:
        return None
