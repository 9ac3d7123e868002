"""Run times of gangs, learned as they end; and what is known of those that run or wait.

A gang runs from when its minimum is bound until no member of it has room any more. It is learned
under several keys, from the most exact to the broadest: namespace, queue, owner and shape; owner;
namespace and shape; queue and shape; namespace; queue. The owner is its kind and the stem of its
name: ``nightly`` of the job ``nightly-28493040``. Keys are hashes, so no name is kept. A gang that
pods were evicted of did not run to its end, and nothing is learned of it.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, NamedTuple

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.members import MemberState
from app.cache.gangs.trail import job_of
from app.core.eta.run_times import KEY_BYTES, RunTime, Sketches
from app.core.protection.run_time import declared_run_time
from app.model.ids import GroupKey
from app.service.ports import Clock
from app.wire.evicted import EVICTED

Keys = tuple[bytes, ...]
"""Of sketches, the most exact first."""
Started = Callable[[GroupKey, float], None]
"""Told of a gang that has started, and when (seconds since the epoch)."""

_SUFFIX: Final = re.compile(r"-?(?:[0-9]+|[bcdfghjklmnpqrstvwxz2456789]{5}|[0-9a-f]{8,10})\Z")
"""What owners add to names: numbers, and letters that Kubernetes rolls."""
_SUFFIXES: Final = 2
_RUNS: Final = (MemberState.BOUND, MemberState.RUNNING)
_GOING: Final = (MemberState.RELEASING, MemberState.RELEASING_PLACED)
_LEFT: Final = (MemberState.WAITING, MemberState.GATED, MemberState.PLACED)


class _Run(NamedTuple):
    began: float
    keys: Keys
    evicted: bool = False


@dataclass(slots=True, eq=False)
class RunTimes:
    """Follows the groups of a cache; ``started`` are told of each gang that starts.

    ``gone`` are told of groups that there are no more.
    """

    cache: ClusterCache
    clock: Clock
    sketches: Sketches = field(default_factory=Sketches)
    started: list[Started] = field(default_factory=list)
    gone: list[Callable[[GroupKey], None]] = field(default_factory=list)
    learned: int = 0
    """Runs, since this process began."""
    _runs: dict[GroupKey, _Run] = field(default_factory=dict)

    def after_cycle(self, changed: Collection[GroupKey]) -> None:
        """Look at the groups that changed."""
        for key in changed:
            self._look(key)

    def stand_by(self) -> None:
        """Another replica leads, and learns."""
        self._runs.clear()

    def began(self, key: GroupKey) -> float | None:
        """When a gang that runs began; None: it does not run."""
        run = self._runs.get(key)
        return None if run is None else run.began

    def known(self, group: Group) -> RunTime:
        """What is known of how long a group runs."""
        run = self._runs.get(group.key)
        keys = keys_of(group) if run is None else run.keys
        found = (self.sketches.of(key) for key in keys)
        deadline = _deadline(group)
        return RunTime(
            declared=_declared(group),
            limit=deadline or None,
            learned=tuple(counts for counts in found if counts is not None),
        )

    def _look(self, key: GroupKey) -> None:
        group, run = self.cache.groups.get(key), self._runs.get(key)
        if group is None:
            if run is not None:
                self._end(key, run)
            for tell in self.gone:
                tell(key)
        elif run is None:
            self._begin(group)
        else:
            self._follow(group, run)

    def _begin(self, group: Group) -> None:
        kinds = group.counted.kinds
        if not (group.reached_minimum and any(kinds[kind] for kind in _RUNS)):
            return
        began = _began(group) or self.clock()
        self._runs[group.key] = _Run(began, keys_of(group))
        for tell in self.started:
            tell(group.key, began)

    def _follow(self, group: Group, run: _Run) -> None:
        kinds = group.counted.kinds
        if any(kinds[kind] for kind in _GOING) and not run.evicted and _is_evicted(group):
            run = self._runs[group.key] = run._replace(evicted=True)
        if any(kinds[kind] for kind in (*_RUNS, *_GOING)):
            return
        if any(kinds[kind] for kind in _LEFT):
            del self._runs[group.key]  # it begins anew
            return
        self._end(group.key, run)

    def _end(self, key: GroupKey, run: _Run) -> None:
        del self._runs[key]
        if run.evicted:
            return
        self.learned += 1
        for each in run.keys:
            self.sketches.feed(each, self.clock() - run.began)


def keys_of(group: Group) -> Keys:
    """The keys of the sketches that tell of a group."""
    kind, stem = _owner(group)
    queue, namespace, shape = group.queue, group.namespace, tuple(_shape(group))
    return tuple(
        blake2b(repr(each).encode(), digest_size=KEY_BYTES).digest()
        for each in (
            ("exact", namespace, queue, kind, stem, shape),
            ("owner", namespace, kind, stem),
            ("namespace and shape", namespace, queue, shape),
            ("queue and shape", queue, shape),
            ("namespace", namespace, queue),
            ("queue", queue),
        )
    )


def stem_of(name: str) -> str:
    """A name without what its owner has added to tell it from others of the kind."""
    for _ in range(_SUFFIXES):
        shorter = _SUFFIX.sub("", name)
        if not shorter or shorter == name:
            break
        name = shorter
    return name


def _owner(group: Group) -> tuple[str, str]:
    for member in group.members.values():
        owner = member.pod.owner
        if owner is not None:
            return owner.kind, stem_of(owner.name)
    kind = "Pod" if group.pod_group is None else group.pod_group.owner_kind
    return kind, stem_of(job_of(group))


def _shape(group: Group) -> Iterator[object]:
    yield group.min_member
    described = {role: each.shape.requests for role, each in group.templates.items()}
    seen = {role: shape.requests for role, shape in group.role_shapes.items()}
    yield sorted((described | seen).items())


def _began(group: Group) -> float:
    """When the last member of the minimum came to its node, as pods say; 0: they do not yet."""
    started = sorted(
        member.pod.started
        for member in group.members.values()
        if member.kind in _RUNS and member.pod.started
    )
    least = max(group.min_member, 1)
    return started[least - 1] if len(started) >= least else 0.0


def _is_evicted(group: Group) -> bool:
    return any(
        member.pod.preempted or EVICTED in member.pod.annotations
        for member in group.members.values()
        if member.kind in _GOING
    )


def _declared(group: Group) -> float | None:
    said = None if group.pod_group is None else declared_run_time(group.pod_group.annotations)
    if said is not None:
        return said
    of_pods = (declared_run_time(m.pod.annotations) for m in group.members.values())
    return next((each for each in of_pods if each is not None), None)


def _deadline(group: Group) -> float:
    """The longest of its pods, where all of them have one; else 0."""
    pods = [member.pod.deadline for member in group.members.values()]
    pods += [template.deadline for template in group.templates.values()]
    return max(pods) if pods and all(pods) else 0.0
