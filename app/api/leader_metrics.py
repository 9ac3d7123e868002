"""What the collectors have in common whose metrics tell of the cluster."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from app.cache.cluster import ClusterCache
from app.service.cycle.parts import PlanningParts


class LeaderMetrics(Collector, ABC):
    """Families that the replica tells of that leads; to be scraped in the event loop's thread."""

    def __init__(self, cache: ClusterCache, planning: PlanningParts) -> None:
        self._cache = cache
        self._planning = planning

    def collect(self) -> Iterator[Metric]:
        """All families; a replica that does not lead has none."""
        if self._planning.leadership.activity.active:
            yield from self._families()

    @abstractmethod
    def _families(self) -> Iterator[Metric]:
        """The families as they are now."""
