"""Admitted groups without places whose claims count for others, and since when.

Which these are is for each plan to say (:mod:`app.core.actions.unplaced_claims`).
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from app.cache.gangs.groups import Group
from app.cache.gangs.registry import Registry
from app.model.ids import GroupKey


@dataclass(frozen=True, slots=True, eq=False)
class UnplacedClaims:
    """The groups are those of the last whole plan."""

    _registry: Registry
    _groups: set[GroupKey] = field(default_factory=set)

    def keep(self, keys: Collection[GroupKey], *, now: float) -> None:
        """The claims of these groups count from now on, or as before, and no others do."""
        for key in self._groups.difference(keys):
            self._count(key, since=0.0)
        for key in keys:
            self._count(key, since=now)
        self._groups.clear()
        self._groups.update(keys)

    def stale(self, *, before: float) -> list[Group]:
        """Groups whose claims have counted since before that time."""
        groups = (self._registry.groups.get(key) for key in self._groups)
        return [group for group in groups if group and 0.0 < group.claim_since < before]

    def _count(self, key: GroupKey, *, since: float) -> None:
        group = self._registry.groups.get(key)
        if group is not None and bool(group.claim_since) is not bool(since):
            group.claim_since = since
            self._registry.changed(group, replan=not since, asks_alike=True)
