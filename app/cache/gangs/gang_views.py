"""The planner's views of groups by key: of all, and of the few that it asks about again and again.

A plan on demand is for one gang, whatever else waits: it must not walk through all that do.
"""

from dataclasses import dataclass, field, fields
from typing import TypeVar

import numpy as np

from app.core.placement.taints import bears_cordon
from app.model.gang import Gang
from app.model.ids import GroupKey
from app.model.resources import Vector
from app.model.snapshot import MemberPlace

Views = dict[GroupKey, Gang]

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class GangViews:
    """Parts as in :class:`~app.model.snapshot.Snapshot`."""

    all: Views = field(default_factory=dict)
    pending: Views = field(default_factory=dict)
    awaited: Views = field(default_factory=dict)
    torn: Views = field(default_factory=dict)
    shown: Views = field(default_factory=dict)
    nominated: Views = field(default_factory=dict)
    """Pending ones of no more than one, with a member that others may have been evicted for."""
    pods_with_rules: Views = field(default_factory=dict)
    """Pending ones of which some role has a rule about other pods."""
    bearing: Views = field(default_factory=dict)
    """Pending ones of which some role may go to cordoned nodes."""
    affine: Views = field(default_factory=dict)
    """Groups that have a ``topologyAffinity``."""
    places: dict[GroupKey, tuple[MemberPlace, ...]] = field(default_factory=dict)
    """Of groups whose members' nodes matter: see :class:`~app.model.snapshot.Snapshot`."""

    def put(
        self, view: Gang, *, pending: bool, places: tuple[MemberPlace, ...] | None = None
    ) -> None:
        """Add or replace; ``pending``: it needs a decision. ``places`` None: they do not matter."""
        if places is None:
            self.places.pop(view.key, None)
        else:
            self.places[view.key] = places
        self.all[view.key] = view
        file_under(self.pending, view.key, view, wanted=pending)
        file_under(self.awaited, view.key, view, wanted=pending and view.is_awaited)
        file_under(self.torn, view.key, view, wanted=pending and view.partial)
        shown = pending and any(task.shown for task in view.queue_first)
        file_under(self.shown, view.key, view, wanted=shown)
        nominated = pending and view.is_of_one and any(t.nominated for t in view.waiting)
        file_under(self.nominated, view.key, view, wanted=nominated)
        pods_with_rules = pending and any(
            shape.looks_at_pods for shape in view.role_shapes.values()
        )
        file_under(self.pods_with_rules, view.key, view, wanted=pods_with_rules)
        file_under(self.affine, view.key, view, wanted=view.affinity is not None)
        bearing = pending and any(map(bears_cordon, view.role_shapes.values()))
        file_under(self.bearing, view.key, view, wanted=bearing)

    def copy(self) -> "GangViews":
        """Copies of all tables, to which other views may be added."""
        return GangViews(*(dict(getattr(self, each.name)) for each in fields(self)))

    @property
    def asked_of_cordoned(self) -> Vector | None:
        """What the ``bearing`` ones ask for, shape ``(R,)``; None: there are none."""
        if not self.bearing:
            return None
        asked: Vector = np.sum([view.unplaced for view in self.bearing.values()], axis=0)
        return asked

    def drop(self, key: GroupKey) -> None:
        """The group is gone."""
        self.places.pop(key, None)
        for part in (
            self.all,
            self.pending,
            self.awaited,
            self.torn,
            self.shown,
            self.nominated,
            self.pods_with_rules,
            self.affine,
            self.bearing,
        ):
            part.pop(key, None)


def file_under(table: dict[GroupKey, T], key: GroupKey, item: T, *, wanted: bool) -> None:
    """Let ``table`` have ``item`` under ``key``, or nothing when it is not ``wanted`` there."""
    if wanted:
        table[key] = item
    else:
        table.pop(key, None)
