"""The planner's views of groups by key: of all, and of the few that it asks about again and again.

A plan on demand is for one gang, whatever else waits: it must not walk through all that do.
"""

from dataclasses import dataclass, field

from app.model.gang import Gang
from app.model.ids import GroupKey

Views = dict[GroupKey, Gang]


@dataclass(slots=True, eq=False)
class GangViews:
    """Parts as in :class:`~app.model.snapshot.Snapshot`."""

    all: Views = field(default_factory=dict)
    pending: Views = field(default_factory=dict)
    awaited: Views = field(default_factory=dict)
    torn: Views = field(default_factory=dict)

    def put(self, view: Gang, *, pending: bool) -> None:
        """Add or replace; ``pending``: it needs a decision."""
        self.all[view.key] = view
        _file(self.pending, view, wanted=pending)
        _file(self.awaited, view, wanted=pending and view.is_awaited)
        _file(self.torn, view, wanted=pending and view.partial)

    def drop(self, key: GroupKey) -> None:
        """The group is gone."""
        for part in (self.all, self.pending, self.awaited, self.torn):
            part.pop(key, None)


def _file(part: Views, view: Gang, *, wanted: bool) -> None:
    if wanted:
        part[view.key] = view
    else:
        part.pop(view.key, None)
