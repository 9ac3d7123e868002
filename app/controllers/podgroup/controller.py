"""Makes PodGroups for plain pods, and keeps those of ReplicaSets and StatefulSets up to date.

A pod gets its group's name in an annotation once the group exists; from then on it is left alone.
Two controllers, because they look at different kinds: the first at each pod, the second at the
workloads whose pods share a group.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from app.controllers.podgroup.confirmed import Confirmed
from app.controllers.podgroup.group import (
    GROUP,
    difference,
    group_for,
    is_ours,
    key_for,
    key_of_owner,
    wants_group,
)
from app.controllers.ports import Api, ApiError, Events, Failure
from app.controllers.requests import GONE, is_stored, unless
from app.controllers.runtime import ObjectChange
from app.controllers.store import Index, Store, by_controller
from app.wire.errors import DecodeError
from app.wire.kinds import (
    GATHERING,
    POD_GROUPS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    Resource,
)
from app.wire.unstructured import (
    Key,
    Object,
    annotations,
    is_deleting,
    key_of,
    labels,
    namespace,
    owner_of,
    spec,
    status,
    uid,
)

NAME: Final = "pg-controller"
INDEXES: Final[Mapping[Resource, Mapping[str, Index]]] = {PODS: {"controller": by_controller}}
"""How these controllers find objects in the stores."""

_WORKLOADS: Final = (REPLICA_SETS, STATEFUL_SETS)
_REVISION: Final = "controller-revision-hash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Which pods get groups, and whether an owner's annotations are copied."""

    schedulers: frozenset[str]
    inherit: bool = True


class PodGrouping:
    """Groups for pods that name none."""

    name = NAME
    kinds = (PODS,)

    def __init__(
        self,
        stores: Mapping[Resource, Store],
        *,
        api: Api,
        events: Events,
        confirmed: Confirmed,
        options: Options,
    ) -> None:
        self._stores = stores
        self._api = api
        self._events = events
        self._confirmed = confirmed
        self._options = options
        self._looking: dict[Key, asyncio.Event] = {}
        """Groups that are being looked for, and when that ends."""
        self._told: dict[Key, tuple[str, str]] = {}
        """UID of a pod whose group is refused, and why; it is tried until it is not."""

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        """The pod, if it wants a group."""
        if change.new is not None and wants_group(change.new, self._options.schedulers):
            return (key_of(change.new),)
        return ()

    async def reconcile(self, key: Key) -> None:
        """See that the group is there, then tell the pod."""
        pod = self._stores[PODS].get(key)
        if pod is None or not wants_group(pod, self._options.schedulers):
            self._told.pop(key, None)
            return
        if await self._is_there(key_for(pod)) or await self._make(pod):
            self._told.pop(key, None)
            await self._tell(pod, key_for(pod).name)

    async def _is_there(self, at: Key) -> bool:
        """Whether there is such a group; the watch may be late to show that it is gone."""
        while True:
            known = self._stores[POD_GROUPS].get(at)
            if known is None or self._confirmed.is_there(uid(known)):
                return known is not None
            if at not in self._looking:
                return await self._look(at)
            await self._looking[at].wait()

    async def _look(self, at: Key) -> bool:
        """Ask the API server, once for all callers of this moment."""
        answered = self._looking[at] = asyncio.Event()
        asked_at = self._confirmed.now()
        try:
            with unless(Failure.NOT_FOUND):
                stored = await self._api.get(POD_GROUPS, at)
                self._confirmed.note(uid(stored), asked_at=asked_at)
                return True
            return False
        finally:
            del self._looking[at]
            answered.set()

    async def _make(self, pod: Object) -> bool:
        """Make the pod's group, unless it exists; False: its pod cannot be read.

        The API server asks quotas and webhooks before it looks what is there: a group that it
        refuses to create may exist.
        """
        owner = await self._owner(pod)
        try:
            await self._api.create(POD_GROUPS, group_for(pod, owner, inherit=self._options.inherit))
        except DecodeError as error:
            await self._complain(pod, error)
            return False
        except ApiError as error:
            if error.failure is Failure.EXISTS:
                return True
            if error.failure is not Failure.REFUSED:
                raise
            if not await is_stored(self._api, POD_GROUPS, key_for(pod)):
                await self._complain_once(pod, error)
                raise
        return True

    async def _complain_once(self, pod: Object, error: ApiError) -> None:
        """Each try is refused in the same words."""
        key, told = key_of(pod), (uid(pod), str(error))
        if self._told.get(key) != told:
            self._told[key] = told
            await self._complain(pod, error)

    async def _complain(self, pod: Object, error: Exception) -> None:
        await self._events.record(pod, "Warning", "FailedCreatePodGroup", str(error))

    async def _owner(self, pod: Object) -> Object | None:
        """The pod's controller, of the kinds that may say something about its group."""
        owner = owner_of(pod)
        resource = GATHERING.get((owner.api_version, owner.kind)) if owner else None
        if owner is None or resource is None:
            return None
        key = Key(namespace(pod), owner.name)
        found = self._stores[resource].get(key) if resource in self._stores else None
        if found is None:
            try:
                found = await self._api.get(resource, key)
            except ApiError as error:
                if error.failure is not Failure.NOT_FOUND:
                    raise
        return found if found is not None and uid(found) == owner.uid else None

    async def _tell(self, pod: Object, group: str) -> None:
        """Once: a change of the pod that came meanwhile knows nothing of it."""
        body = {"metadata": {"uid": uid(pod), "annotations": {GROUP: group}}}
        with unless(*GONE):
            self._stores[PODS].renew(await self._api.patch(PODS, key_of(pod), body))


class WorkloadGrouping:
    """The groups of ReplicaSets and StatefulSets, as these change."""

    name = NAME
    kinds = (PODS, *_WORKLOADS)

    def __init__(
        self,
        stores: Mapping[Resource, Store],
        *,
        api: Api,
        confirmed: Confirmed,
        options: Options,
    ) -> None:
        self._stores = stores
        self._api = api
        self._confirmed = confirmed
        self._options = options

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        """The workload, or that of the pod."""
        if change.resource is not PODS:
            return (key_of(change.item),)
        owner = owner_of(change.item)
        if owner is None or GATHERING.get((owner.api_version, owner.kind)) not in _WORKLOADS:
            return ()
        return (Key(namespace(change.item), owner.name),)

    async def reconcile(self, key: Key) -> None:
        """A ReplicaSet and a StatefulSet may share a name: look at both."""
        for resource in _WORKLOADS:
            workload = self._stores[resource].get(key)
            if workload is not None and not is_deleting(workload):
                await self._bring_up_to_date(workload)

    async def _bring_up_to_date(self, workload: Object) -> None:
        at = key_of_owner(namespace(workload), uid(workload))
        stored = self._stores[POD_GROUPS].get(at)
        if stored is None:
            return
        if spec(workload).get("replicas", 1) == 0:
            await remove(stored, api=self._api, confirmed=self._confirmed)
            return
        pod = self._first_pod(workload, group=at.name)
        if pod is None:
            return
        try:
            patch = difference(stored, group_for(pod, workload, inherit=self._options.inherit))
        except DecodeError:
            return
        if patch:
            patch.setdefault("metadata", {})["uid"] = uid(stored)
            await self._change(at, patch)

    def _first_pod(self, workload: Object, *, group: str) -> Object | None:
        revision = status(workload).get("updateRevision")
        for pod in self._stores[PODS].by("controller", uid(workload)):
            # Not by the workload's template: a webhook may give pods their scheduler.
            if not is_ours(pod, self._options.schedulers):
                continue
            if annotations(pod).get(GROUP) not in (None, "", group) or is_deleting(pod):
                continue
            if not revision or labels(pod).get(_REVISION) == revision:
                return pod
        return None

    async def _change(self, key: Key, patch: Object) -> None:
        with unless(*GONE):
            await self._api.patch(POD_GROUPS, key, patch)


async def remove(group: Object, *, api: Api, confirmed: Confirmed) -> None:
    """Delete a group that no pod needs any more; new pods may need it at once."""
    with unless(*GONE):
        await api.delete(POD_GROUPS, key_of(group), uid=uid(group))
    confirmed.removed(uid(group))
