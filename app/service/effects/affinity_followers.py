"""Members that must be near others of their gang are told their places when these are at Bind.

Before that kube-scheduler would refuse them, without asking us, and would try them again only when
it is woken. Which members these are is decided in :mod:`app.core.placement.affinity_followers`.
"""

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Final

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Member, Stage
from app.kit.workqueue import WorkQueue
from app.model.ids import GroupKey, namespace_of
from app.service.telling.affinity_followers import follows, must_follow

_GATHER_S: Final = 0.02
"""How long a group is not looked at again: its members come one after the other."""

_SHARE: Final = 0.1
"""Of the time at most: looks at a gang of thousands, each with a rule of its own, take long."""

_LOOKING_AT_ONCE: Final = 4


class AffinityFollowers:
    """Finds out whose turn it is, again and again as members of their gangs arrive."""

    def __init__(
        self,
        cache: ClusterCache,
        *,
        tell: Callable[[Member], None],
        failed: Callable[[GroupKey, Exception], None],
    ) -> None:
        """``tell``: what happens with a member whose turn it is."""
        self._cache = cache
        self._tell = tell
        self._incomplete: set[GroupKey] = set()
        """Groups with members whose turn it was not."""
        self._work: WorkQueue[GroupKey] = WorkQueue(self._look, failed=failed, lane_of=namespace_of)

    def __len__(self) -> int:
        """Groups with members whose turn has not come."""
        return len(self._incomplete)

    async def run(self) -> None:
        """Work for ever; cancel to stop."""
        await self._work.run(_LOOKING_AT_ONCE)

    def look(self, key: GroupKey) -> None:
        """Members of the group got places."""
        self._work.add(key)

    def look_again(self, key: GroupKey) -> None:
        """A member of the group got its place, or has come to Bind: others may wait for it."""
        if key in self._incomplete:
            self._work.add(key)

    def after_cycle(self, changed: Collection[GroupKey]) -> None:
        """Forget groups that are gone."""
        if self._incomplete:
            self._incomplete -= {key for key in changed if key not in self._cache.groups}

    async def _look(self, key: GroupKey) -> None:
        began = time.perf_counter()
        self._tell_whose_turn_it_is(key)
        took = time.perf_counter() - began
        await asyncio.sleep(max(_GATHER_S, took / _SHARE))

    def _tell_whose_turn_it_is(self, key: GroupKey) -> None:
        self._incomplete.discard(key)
        group = self._cache.groups.get(key)
        if group is None:
            return
        behind = must_follow(self._cache, group)
        if behind or not group.placed_minimum:
            self._incomplete.add(key)
        if not group.placed_minimum:
            return  # the one that they must be near may be lacking
        for uid, member in tuple(group.members.items()):
            if not follows(member) or member.stage is not Stage.PLANNED:
                continue
            if uid not in behind:
                self._tell(member)
            elif not member.pod.gates:
                # It is refused, or will be: kube-scheduler does not ask us first.
                self._cache.decisions.refused(member)
