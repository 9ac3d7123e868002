"""Watches gangs while a test does harm: for how long was a gang bound in part?

A gang is *partial* while some, but fewer than its minimum, of its members are bound, or too few of
a role.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from tests.clusters import workloads
from tests.clusters.awake import AwakeClock
from tests.clusters.client import ApiClient, Event, Object
from tests.clusters.following import Follower
from tests.clusters.processes import wait_until


class Partials(Follower):
    """Follows the gangs of a namespace whose minimums are given; `with` starts and ends it.

    ``roles`` are the minimums of the roles of some of them.
    """

    def __init__(
        self,
        api: ApiClient,
        namespace: str,
        minimums: Mapping[str, int],
        *,
        roles: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        super().__init__(api, namespace)
        self._minimums = dict(minimums)
        self._roles = roles or {}
        self._clock = AwakeClock()
        self._bound: dict[str, dict[str, str]] = {group: {} for group in minimums}
        """The bound members of each, and their roles."""
        self._uids: dict[str, set[str]] = {}
        self._since: dict[str, float] = {}
        self._longest: dict[str, float] = {}
        self._trigger: tuple[int, Callable[[], object]] | None = None
        self._fired = threading.Event()

    def __enter__(self) -> Self:
        self._clock.__enter__()
        return super().__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        self._clock.__exit__(kind, error, trace)

    def let_go(self, group: str) -> None:
        """The gang is about to be deleted: it may end pod by pod."""
        with self.lock:
            del self._minimums[group], self._bound[group]
            self._since.pop(group, None)

    def bound(self, group: str | None = None) -> int:
        """How many pods are bound, of all gangs or of one."""
        with self.lock:
            gangs = self._bound.values() if group is None else [self._bound[group]]
            return sum(map(len, gangs))

    def is_whole(self, group: str) -> bool:
        """Whether so many are bound as the gang needs, in all and of each role."""
        with self.lock:
            return not self._lacks(group)

    def made_twice(self) -> list[str]:
        """The pods that were seen under more than one UID."""
        with self.lock:
            return sorted(name for name, uids in self._uids.items() if len(uids) > 1)

    def partial(self) -> list[str]:
        """The gangs that are bound in part right now."""
        with self.lock:
            return sorted(self._since)

    def longest_s(self) -> float:
        """The longest time that any gang was partial, those that still are included."""
        now = self._clock.now()
        with self.lock:
            running = [now - since for since in self._since.values()]
            return max([*self._longest.values(), *running], default=0.0)

    def wait_bound(self, count: int, *, timeout_s: float) -> None:
        """Wait until that many pods are bound in all."""
        wait_until(lambda: self.bound() >= count, timeout_s=timeout_s, what=f"{count} pods bound")

    def fire_at(self, count: int, act: Callable[[], object], *, timeout_s: float) -> None:
        """Call `act` the moment that many pods are bound, and wait until that is over.

        It is called by the thread that watches, so a gang that is just being bound stays in part.
        """
        with self.lock:
            self._trigger = (count, act)
        assert self._fired.wait(timeout_s), f"{count} pods bound: not within {timeout_s:g} s"

    def wait_one_whole(self, *, timeout_s: float) -> list[str]:
        """Wait until a gang has its minimum; returns the gangs, that one first."""
        wait_until(
            lambda: any(map(self.is_whole, self._minimums)),
            timeout_s=timeout_s,
            what="one gang is bound whole",
        )
        return sorted(self._minimums, key=lambda group: not self.is_whole(group))

    def wait_whole(self, *, timeout_s: float) -> None:
        """Wait until every gang has its minimum."""
        wait_until(
            lambda: all(map(self.is_whole, self._minimums)),
            timeout_s=timeout_s,
            what=f"all of {', '.join(self._minimums)} whole",
        )

    def listed(self, items: Sequence[Object]) -> None:
        for members in self._bound.values():
            members.clear()
        for pod in items:
            self._take(Event("ADDED", pod))
        self._judge()

    def changed(self, event: Event) -> None:
        self._take(event)
        self._judge()
        self._fire()

    def _fire(self) -> None:
        if self._trigger is None or sum(map(len, self._bound.values())) < self._trigger[0]:
            return
        act, self._trigger = self._trigger[1], None
        act()
        self._fired.set()

    def _take(self, event: Event) -> None:
        members = self._bound.get(_group_of(event.object))
        if members is None:
            return
        name = event.object["metadata"]["name"]
        self._uids.setdefault(name, set()).add(event.object["metadata"]["uid"])
        if event.kind != "DELETED" and workloads.node_of(event.object):
            members[name] = workloads.role_of(event.object)
        else:
            members.pop(name, None)

    def _judge(self) -> None:
        now = self._clock.now()
        for group in self._minimums:
            if self._bound[group] and self._lacks(group):
                self._since.setdefault(group, now)
            elif group in self._since:
                lasted = now - self._since.pop(group)
                self._longest[group] = max(lasted, self._longest.get(group, 0.0))

    def _lacks(self, group: str) -> bool:
        bound = Counter(self._bound[group].values())
        if bound.total() < self._minimums[group]:
            return True
        return any(bound[role] < least for role, least in self._roles.get(group, {}).items())


def _group_of(pod: Object) -> str:
    name: str = pod["metadata"].get("annotations", {}).get(workloads.GROUP, "")
    return name
