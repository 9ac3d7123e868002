"""A job with all that belongs to it, as it is once the watch has caught up with our writes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.controllers.job import group, policies, sync
from app.controllers.job.fresh import Fresh
from app.controllers.job.known_jobs import KnownJobs
from app.controllers.job.members import Member, members
from app.controllers.job.view import Job
from app.controllers.runtime import ObjectChange, Stores
from app.kit.workqueue import Again
from app.wire import unstructured
from app.wire.kinds import POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES, Resource
from app.wire.unstructured import Key, Object, key_of


@dataclass(frozen=True, slots=True)
class Seen:
    """A job as it is now; ``group`` is its PodGroup unless that is missing or going."""

    job: Job
    members: Sequence[Member]
    group: Object | None


@dataclass(frozen=True, slots=True)
class _Read:
    changes: int
    members: Sequence[Member]


def without(seen: Seen, taken: Sequence[Member]) -> Seen:
    """``seen`` but for the pods that we take away."""
    gone = sync.uids(taken)
    return replace(seen, members=[member for member in seen.members if member.uid not in gone])


class Reader:
    """Reads what exists, and asks no API server."""

    def __init__(self, stores: Stores, *, fresh: Mapping[Resource, Fresh], jobs: KnownJobs) -> None:
        self._stores = stores
        self._fresh = fresh
        self._jobs = jobs
        self._members: dict[str, _Read] = {}

    def saw(self, change: ObjectChange) -> None:
        """The watch showed something."""
        fresh = self._fresh.get(change.resource)
        if fresh is not None:
            fresh.saw(change)

    def fallen(self, change: ObjectChange) -> Member | None:
        """The pod that is gone with the change, if it had failed; to be asked before `saw`.

        As we know it: the watch may have shown it without our mark.
        """
        if change.resource is not PODS or change.new is not None:
            return None
        known = self._fresh[PODS].get(key_of(change.item))
        is_same = known is not None and unstructured.uid(known) == unstructured.uid(change.item)
        found = members([known if known is not None and is_same else change.item])
        return found[0] if found and found[0].phase == "Failed" else None

    def see(self, key: Key) -> Seen | None:
        """The job of that name, or None."""
        job = self._jobs.get(key)
        return None if job is None else self.around(job)

    def around(self, job: Job) -> Seen:
        """The job with what belongs to it now."""
        return Seen(job, self._members_of(job.uid), self._group(job))

    def still(self, job: Job, since: Seen) -> Seen:
        """:meth:`around`, where no pod was taken away ``since``; raises :class:`Again` otherwise.

        What policies say to that comes first: a status that no longer counts the pod, or another
        pod in its place, would leave nothing to tell that it was evicted.
        """
        now = self.around(job)
        if not policies.are_there_any(job):
            return now
        staying = sync.uids(member for member in now.members if not member.deleting)
        for member in since.members:
            known = member.deleting or member.marked or member.version < job.version
            if member.uid not in staying and not known:
                raise Again(f"pod {member.name} was taken away meanwhile", after_s=0.0)
        return now

    def forget(self, uid: str) -> None:
        """Forget a job that is gone."""
        self._members.pop(uid, None)
        self._jobs.forget(uid)

    def unseen_pods(self, job: Job) -> list[Object]:
        """Pods that we made and the watch has not shown."""
        return self._fresh[PODS].unseen(job.uid)

    def is_left_over(self, job: Job, pod: str) -> bool:
        """Whether the pod of that name is one of an earlier job of the name of this one."""
        there = self._fresh[PODS].get(Key(job.key.namespace, pod))
        return there is not None and job.is_left_over(there)

    def queue(self, name: str) -> Object | None:
        """The queue of that name."""
        return self._stores[QUEUES].get(Key("", name))

    def priorities(self) -> dict[str, int]:
        """PriorityClass to its value."""
        classes = self._stores[PRIORITY_CLASSES].all()
        return {unstructured.name(item): int(item.get("value") or 0) for item in classes}

    def _members_of(self, uid: str) -> Sequence[Member]:
        """Read again only what has changed: a large job is looked at for each of its pods."""
        pods = self._fresh[PODS]
        before = self._members.get(uid)
        changes = pods.changes(uid)
        if before is not None and before.changes == changes:
            return before.members
        known = {member.uid: member for member in before.members} if before else {}
        found = members(pods.owned_by(uid), known)
        self._members[uid] = _Read(pods.changes(uid), found)
        return found

    def _group(self, job: Job) -> Object | None:
        for key in group.keys(job):
            found = self._fresh[POD_GROUPS].get(key)
            owner = unstructured.owner_of(found) if found is not None else None
            if found is not None and owner is not None and owner.uid == job.uid:
                return None if unstructured.is_deleting(found) else found
        return None
