"""Takes away the PodGroups of Kubernetes Jobs that are suspended, once their pods are gone.

Such a Job wants no pods, as a ReplicaSet without replicas does. A controller that suspends one that
runs (Kueue, to let another run) wants its room for others at once: a group would have room kept for
members that are to be made anew. Pods of a Job that goes on get a new group.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from app.controllers.podgroup.confirmed import Confirmed
from app.controllers.podgroup.controller import NAME, remove
from app.controllers.podgroup.group import key_of_owner
from app.controllers.ports import Api
from app.controllers.requests import GONE, unless
from app.controllers.runtime import ObjectChange
from app.controllers.store import Store
from app.wire.kinds import KUBERNETES_JOBS, POD_GROUPS, PODS, Resource
from app.wire.unstructured import Key, Object, Owner, namespace, owner_of, spec, uid

_JOB: Final = (KUBERNETES_JOBS.api_version, KUBERNETES_JOBS.kind)


class SuspendedJobs:
    """The groups of Kubernetes Jobs, by the groups' names. Jobs are asked for, not followed."""

    name = NAME
    kinds = (PODS, POD_GROUPS)

    def __init__(self, stores: Mapping[Resource, Store], *, api: Api, confirmed: Confirmed) -> None:
        self._stores = stores
        self._api = api
        self._confirmed = confirmed

    def keys(self, change: ObjectChange) -> Iterable[Key]:
        """The group of a Job that lost a pod, or is looked at for the first time."""
        owner = _job_of(change.item)
        news = change.new is None if change.resource is PODS else change.old is None
        return (key_of_owner(namespace(change.item), owner.uid),) if owner and news else ()

    async def reconcile(self, key: Key) -> None:
        """Delete the group if it has no pods and its Job is suspended."""
        group = self._stores[POD_GROUPS].get(key)
        owner = _job_of(group) if group is not None else None
        if group is None or owner is None or key != key_of_owner(key.namespace, owner.uid):
            return
        if any(self._stores[PODS].by("controller", owner.uid)):
            return
        with unless(*GONE):
            job = await self._api.get(KUBERNETES_JOBS, Key(key.namespace, owner.name))
            if uid(job) == owner.uid and spec(job).get("suspend") is True:
                await remove(group, api=self._api, confirmed=self._confirmed)


def _job_of(item: Object) -> Owner | None:
    owner = owner_of(item)
    return owner if owner and (owner.api_version, owner.kind) == _JOB else None
