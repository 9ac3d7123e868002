"""What the planner is asked with: the cluster and the configuration as they are at a moment."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.cache.cluster import ClusterCache
from app.cache.gangs.imagined import Imagined
from app.cache.snapshots.snapshotter import Snapshotter
from app.core.placement.statics import ShapeCache
from app.service.configuration import Configuration
from app.service.cycle.allowed_victims import AllowedVictims
from app.service.cycle.faulty_groups import FaultyGroups
from app.service.cycle.ring import Ring
from app.service.cycle.snapshot_token import SnapshotToken
from app.service.cycle.vetoes import Vetoes


@dataclass(frozen=True, slots=True, eq=False)
class PlannerInput:
    """``shapes`` is the planner's cache, which outlives cycles; ``ring`` has its last calls.

    Groups that are ``faulty`` are left out for a while.
    """

    cache: ClusterCache
    snapshotter: Snapshotter
    configuration: Configuration
    vetoes: Vetoes
    allowed_victims: AllowedVictims
    faulty: FaultyGroups
    shapes: ShapeCache = field(default_factory=ShapeCache)
    ring: Ring = field(default_factory=Ring)

    def token(
        self, now: float, *, running: bool = False, imagined: Sequence[Imagined] = ()
    ) -> SnapshotToken:
        """A snapshot with vetoes and the room kept for preemptors, and the policies.

        ``running``: it tells what runs though no action in force evicts. ``imagined`` are groups as
        they would be.
        """
        snapshot = self.snapshotter.snapshot(
            vetoes=self.vetoes.active(now=now),
            preemptors=self.allowed_victims.preemptors(),
            running=running or self.configuration.evicts or bool(self.cache.giving_up),
            imagined=imagined,
        )
        snapshot = self.faulty.without(snapshot, now=now)
        return SnapshotToken(snapshot, self.configuration.policies)
