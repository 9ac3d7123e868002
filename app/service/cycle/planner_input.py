"""What the planner is asked with: the cluster and the configuration as they are at a moment."""

from dataclasses import dataclass, field

from app.cache.cluster import ClusterCache
from app.cache.snapshots.snapshotter import Snapshotter
from app.core.placement.statics import ShapeCache
from app.service.configuration import Configuration
from app.service.cycle.allowed_victims import AllowedVictims
from app.service.cycle.snapshot_token import SnapshotToken
from app.service.cycle.vetoes import Vetoes


@dataclass(frozen=True, slots=True, eq=False)
class PlannerInput:
    """``shapes`` is the planner's cache, which outlives cycles."""

    cache: ClusterCache
    snapshotter: Snapshotter
    configuration: Configuration
    vetoes: Vetoes
    allowed_victims: AllowedVictims
    shapes: ShapeCache = field(default_factory=ShapeCache)

    def token(self, now: float) -> SnapshotToken:
        """A snapshot with vetoes and the room kept for preemptors, and the policies."""
        snapshot = self.snapshotter.snapshot(
            vetoes=self.vetoes.active(now=now),
            preemptors=self.allowed_victims.preemptors(),
            running=self.configuration.evicts or bool(self.cache.giving_up),
        )
        return SnapshotToken(snapshot, self.configuration.policies)
