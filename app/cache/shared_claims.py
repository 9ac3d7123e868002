"""Which pods are charged for the claims that several pods name.

Each of them has the same devices, so in each queue one pod that has a place is charged, and where
none has one the first member of each group. A change of a group touches the claims that its members
name; the others stay as they are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.cache.gangs.members import PLACED_KINDS, Member, MemberState
from app.cache.gangs.registry import Registry
from app.model.ids import GroupKey, PodUid, QueueName
from app.model.pod import Pod

_WAITING = (MemberState.WAITING, MemberState.GATED)


@dataclass(slots=True, eq=False)
class Shared:
    """A claim that pods name: these pods, and those of them that are charged for it."""

    users: dict[PodUid, None] = field(default_factory=dict)
    charged: frozenset[PodUid] = frozenset()
    before: Mapping[GroupKey, PodUid] = field(default_factory=dict)
    """By group: the member that has to have a place before the others."""


class SharedClaims:
    """Claims by key."""

    def __init__(self, registry: Registry, members: Mapping[PodUid, Member]) -> None:
        self.each: dict[str, Shared] = {}
        self._registry = registry
        self._members = members
        self._named: dict[PodUid, tuple[GroupKey, tuple[str, ...]]] = {}
        """The group of a pod, and the claims that it names."""
        self._in_group: dict[GroupKey, dict[PodUid, None]] = {}
        self._touched: set[str] = set()
        registry.signals.followers.append(self._note)

    def join(self, pod: Pod, keys: Iterable[str]) -> None:
        """``pod`` names these claims, and no others."""
        named = pod.group, tuple(keys)
        if self._named.get(pod.uid, ("", ())) == named:
            return
        self.leave(pod.uid)
        if not named[1]:
            return
        self._named[pod.uid] = named
        self._in_group.setdefault(pod.group, {})[pod.uid] = None
        for key in named[1]:
            self.each.setdefault(key, Shared()).users[pod.uid] = None
        self._touched.update(named[1])

    def leave(self, uid: PodUid) -> None:
        """A pod names no claims any more."""
        group, keys = self._named.pop(uid, (GroupKey(""), ()))
        if not keys:
            return
        del self._in_group[group][uid]
        if not self._in_group[group]:
            del self._in_group[group]
        for key in dict.fromkeys(keys):
            del self.each[key].users[uid]
            if not self.each[key].users:
                del self.each[key]
        self._touched.update(keys)

    def users(self, key: str) -> Iterable[PodUid]:
        """The pods that name the claim."""
        shared = self.each.get(key)
        return () if shared is None else tuple(shared.users)

    def settle(self) -> Iterable[PodUid]:
        """Choose anew for the claims that were touched; the pods that are charged otherwise now."""
        changed: dict[PodUid, None] = {}
        touched, self._touched = self._touched, set()
        for key in sorted(touched & self.each.keys()):
            shared = self.each[key]
            charged, before = self.chosen(shared)
            if (charged, before) != (shared.charged, shared.before):
                shared.charged, shared.before = charged, before
                changed |= shared.users
        return changed

    def chosen(self, shared: Shared) -> tuple[frozenset[PodUid], dict[GroupKey, PodUid]]:
        """The pods that are to be charged for a claim, and the first ones of groups."""
        by_queue: dict[QueueName, list[Member]] = {}
        for uid in shared.users:
            member = self._members.get(uid)
            if member is not None:
                queue = self._registry.groups[member.group].queue
                by_queue.setdefault(queue, []).append(member)
        charged: set[PodUid] = set()
        before: dict[GroupKey, PodUid] = {}
        for members in by_queue.values():
            holders = [each for each in members if each.kind not in _WAITING]
            if holders:
                charged.add(min(holders, key=lambda each: _rank(each, shared.charged)).pod.uid)
                continue
            for each in sorted(members, key=lambda one: _rank(one, frozenset())):
                before.setdefault(each.group, each.pod.uid)
            charged.update(before[each.group] for each in members)
        return frozenset(charged), before

    def _note(self, group: GroupKey) -> None:
        for uid in self._in_group.get(group, ()):
            self._touched.update(self._named[uid][1])


def _rank(member: Member, charged: frozenset[PodUid]) -> tuple[object, ...]:
    """The user of a claim that is charged for it is the first by this: one with a place."""
    kind, pod = member.kind, member.pod
    states = kind not in PLACED_KINDS, kind is MemberState.GATED
    order = -member.task.priority, pod.created, pod.name, pod.uid
    return (*states, pod.uid not in charged, *order)
