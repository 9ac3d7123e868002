"""Keeping kube-scheduler's calls for what the watch is about to show; it does nothing else then."""

import asyncio
from collections.abc import Callable

from app.cache.cluster import ClusterCache
from app.model.ids import PodUid
from app.service.ports import Clock

GROUP_S = 0.2
"""So long a call is kept for the pod's group."""
IN_VAIN_S = 10.0
"""So long no call is kept for a group after one that was for nothing."""

_LOOK_EVERY_S = 0.002


async def comes_true(check: Callable[[], bool], *, within_s: float) -> bool:
    """Whether ``check`` does so in that time."""
    for _ in range(round(within_s / _LOOK_EVERY_S)):
        await asyncio.sleep(_LOOK_EVERY_S)
        if check():
            return True
    return False


class LateGroups:
    """Pods whose PodGroup is not there, or not known, yet: the watch shows the pod before it."""

    def __init__(self, cache: ClusterCache, *, clock: Clock) -> None:
        self._cache = cache
        self._clock = clock
        self._patient_from = float("-inf")

    def lacks(self, uid: PodUid) -> bool:
        """Whether it is a pod of ours of which only the group is missing."""
        member = self._cache.members.get(uid)
        return member is not None and not self._cache.groups[member.group].known

    async def comes(self, uid: PodUid) -> bool:
        """Whether the group that the pod lacks comes in a moment."""
        if not self.lacks(uid) or self._clock() < self._patient_from:
            return False
        if await comes_true(lambda: not self.lacks(uid), within_s=GROUP_S):
            return True
        self._patient_from = self._clock() + IN_VAIN_S
        return False
