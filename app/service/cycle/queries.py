"""What the planner would say at this moment, asked without deciding anything."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Member
from app.cache.snapshots.snapshotter import Snapshotter
from app.core.bearable import bearable
from app.core.figures import QueueFigures, queue_figures
from app.core.funnels import funnels
from app.core.ordering import LinePosition, line_position
from app.core.placement.statics import ShapeCache
from app.core.preview import CapabilityPreview, preview_capability
from app.model.amounts import Amounts
from app.model.funnel import Funnel
from app.model.gang import Gang
from app.model.ids import NodeName, PodUid, QueueName
from app.service.configuration import Configuration
from app.service.cycle.rating import rated
from app.service.cycle.what_if import WhatIf
from app.service.ports import Clock


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Each query is answered from a snapshot of its own; ``shapes`` is the planner's cache."""

    cache: ClusterCache
    configuration: Configuration
    snapshotter: Snapshotter
    shapes: ShapeCache
    clock: Clock

    def best_of(
        self, member: Member, names: Sequence[NodeName], *, least: int = 1
    ) -> NodeName | None:
        """The best of the offered nodes (which passed the stock filters) that has room for it.

        None if fewer than ``least`` have.
        """
        node_usage, packs = self.cache.node_usage, self.configuration.packs
        return node_usage.best_of(names, member.task.request, pack=packs, least=least)

    def rate(self, member: Member, names: Sequence[NodeName]) -> list[tuple[NodeName, int]]:
        """The policies' scores of ``names`` for it, spread over 0 to 10."""
        snapshot, policies = self.snapshotter.snapshot(), self.configuration.policies
        return rated(
            names,
            member.task,
            snapshot,
            policies,
            gang=snapshot.gangs[member.group],
            now=self.clock(),
            shapes=self.shapes,
        )

    def queue_figures(self) -> dict[QueueName, QueueFigures]:
        """What the queues hold and deserve."""
        snapshot = self.snapshotter.snapshot()
        return queue_figures(snapshot, self.configuration.policies, now=self.clock())

    def funnels(self, gang: Gang) -> tuple[Funnel, ...]:
        """How the nodes narrow down for the members that ``gang`` lacks."""
        snapshot, policies = self.snapshotter.snapshot(), self.configuration.policies
        return funnels(snapshot, policies, gang=gang, now=self.clock(), shapes=self.shapes)

    def line_position(self, gang: Gang) -> LinePosition:
        """Where ``gang``, which waits, stands in the line of its queue."""
        snapshot, policies = self.snapshotter.snapshot(), self.configuration.policies
        return line_position(snapshot, policies, gang=gang, now=self.clock())

    def bearable(self, gang: Gang) -> dict[str, int]:
        """By role: how many more members of ``gang`` its queue could hold."""
        snapshot, policies = self.snapshotter.snapshot(), self.configuration.policies
        return bearable(snapshot, policies, gang=gang, now=self.clock())

    def preview_capability(self, queue: QueueName, capability: Amounts | None) -> CapabilityPreview:
        """What ``queue`` would give up with that ``capability`` (None: its own).

        Raises ``KeyError`` for a queue that does not exist.
        """
        return preview_capability(
            self.snapshotter.snapshot(running=True),
            self.configuration.policies,
            queue=queue,
            capability=capability,
            now=self.clock(),
        )

    def what_if(self, *, gone: Collection[PodUid]) -> WhatIf:
        """What the planner would say if pods were evicted, these in any case."""
        snapshot, policies = self.snapshotter.snapshot(running=True), self.configuration.policies
        return WhatIf(snapshot, policies, gone=gone, now=self.clock())
