"""What changed since the scheduling cycle last looked.

The cache notes changes here, and so do services, by the methods only: the fields are for reading.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from app.model.ids import GroupKey


@dataclass(slots=True, eq=False)
class Signals:
    """Drained by the scheduling cycle."""

    dirty: bool = False
    """Something that planning depends on: a group wants what no group wanted before."""
    freed: bool = False
    """Room, or a claim to some, was given back: news only for groups that wait for room."""
    overfull: bool = False
    """A queue may hold more than its limit: that changed, or a pod is there that no reservation of
    ours brought there. Not taken up with the others (:meth:`looked_for_overfull`)."""
    groups: set[GroupKey] = field(default_factory=set)
    """Groups whose counts, phase or spec changed."""
    followers: list[Callable[[GroupKey], None]] = field(default_factory=list)
    """Called with each group that changed, at once."""

    @property
    def may_place(self) -> bool:
        """Whether a pod may get a place that could not before."""
        return self.dirty or self.freed

    def note_dirty(self, *, when: bool = True) -> None:
        """Something that planning depends on changed, ``when`` that is so."""
        if when:
            self.dirty = True

    def note_freed(self, *, when: bool = True) -> None:
        """Room was given back, ``when`` that is so."""
        if when:
            self.freed = True

    def note_overfull(self, *, when: bool = True) -> None:
        """A queue may hold more than its limit, ``when`` that is so."""
        if when:
            self.overfull = True

    def note_group(self, key: GroupKey) -> None:
        """Note that the group changed."""
        self.groups.add(key)
        for follower in self.followers:
            follower(key)

    def note_groups(self, keys: Iterable[GroupKey]) -> None:
        """Note that the groups changed."""
        self.groups.update(keys)

    def taken_up(self) -> None:
        """What was said of planning so far is planned with: it is no news any more."""
        self.dirty = self.freed = False

    def take_groups(self) -> set[GroupKey]:
        """The groups that changed, which are no news from now on."""
        groups, self.groups = self.groups, set()
        return groups

    def looked_for_overfull(self, *, again: bool) -> None:
        """What queues held over their limits was given back; ``again``: more of it may come."""
        self.overfull = again
