"""Pods that name a PodGroup and that another scheduler has bound.

Foreign members take room on their nodes and are no members: mostly the template of an operator's
pods names the group and forgets the scheduler. Their group waits for members that will never come,
so it has to name the scheduler that took them.
"""

from collections import Counter
from collections.abc import Mapping

from app.model.ids import GroupKey, PodUid
from app.model.pod import Pod


class ForeignMembers:
    """The schedulers of such pods, by group; a pod is in one at most."""

    def __init__(self) -> None:
        self._schedulers: dict[GroupKey, Counter[str]] = {}
        self._pods: dict[PodUid, Pod] = {}

    def note(self, pod: Pod) -> set[GroupKey]:
        """Another scheduler's pod as it is now; the groups for which that changes something."""
        known = self._pods.get(pod.uid)
        if known is not None and (known.group, known.scheduler) == (pod.group, pod.scheduler):
            return set()
        changed = self.drop(pod.uid)
        if not pod.grouped:
            return changed
        self._pods[pod.uid] = pod
        self._schedulers.setdefault(pod.group, Counter())[pod.scheduler] += 1
        return changed | {pod.group}

    def drop(self, uid: PodUid) -> set[GroupKey]:
        """Drop a pod that is gone or over; returns the group that this changes something for."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return set()
        left = self._schedulers[pod.group] - Counter([pod.scheduler])
        if left:
            self._schedulers[pod.group] = left
        else:
            del self._schedulers[pod.group]
        return {pod.group}

    def count(self, key: GroupKey) -> int:
        """How many pods of the group other schedulers have bound."""
        return sum(self.of(key).values())

    def of(self, key: GroupKey) -> Mapping[str, int]:
        """Scheduler -> how many pods of the group it has bound."""
        return self._schedulers.get(key, {})
