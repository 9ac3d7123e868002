"""Keeping kube-scheduler's calls for what the watch is about to show; it does nothing else then."""

import asyncio
from collections.abc import Callable

from app.cache.cluster import ClusterCache
from app.model.ids import GroupKey, PodUid
from app.service.ports import Clock

GROUP_S = 0.2
"""How long a call is kept for the pod's group."""
IN_VAIN_S = 10.0
"""How long no call is kept for a group after one that was for nothing."""
IN_VAIN = 3
"""After how many calls that were for nothing no call is kept for any group."""

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
        self._in_vain: dict[GroupKey, float] = {}
        """Groups that a call was kept for and that did not come; since when."""

    def lacks(self, uid: PodUid) -> bool:
        """Whether the pod is ours and only its group is missing."""
        member = self._cache.members.get(uid)
        return member is not None and not self._cache.groups[member.group].known

    async def comes(self, uid: PodUid) -> bool:
        """Whether the group that the pod lacks comes in a moment."""
        if not self.lacks(uid):
            return False
        group = self._cache.members[uid].group
        if self._is_given_up(group):
            return False
        if await comes_true(lambda: not self.lacks(uid), within_s=GROUP_S):
            return True
        self._in_vain[group] = self._clock()
        return False

    def _is_given_up(self, group: GroupKey) -> bool:
        since = self._clock() - IN_VAIN_S
        self._in_vain = {key: at for key, at in self._in_vain.items() if at > since}
        return group in self._in_vain or len(self._in_vain) >= IN_VAIN
