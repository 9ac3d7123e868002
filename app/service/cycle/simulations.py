"""What if: the planner asked about groups, queues, nodes or a configuration that are not so.

It is asked with what a cycle at this moment would be asked with. Nothing is decided by it, and
nothing is written.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.imagined import Imagined, imagine, on_axis, without_nodes
from app.cache.gangs.views import ToVector
from app.core.policy import Policies
from app.core.simulation import ClusterChange, Fate, Simulated, simulate_steps
from app.kit.turns import Turns
from app.model.ids import GroupKey, NodeName, PodUid, QueueName
from app.model.job import Template
from app.model.pod import Pod
from app.model.snapshot import Snapshot
from app.model.workload import PodGroup, Queue
from app.service.configuration import Configuration, evicting
from app.service.cycle.planner_input import PlannerInput
from app.service.cycle.slices import in_slices
from app.service.limits import Limits
from app.service.ports import Clock

MOST_WAITING: Final = 16
"""Questions, the one that is being answered included."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class NewGroup:
    """A group that is to be imagined: its PodGroup (None: a single pod), and its pods.

    ``templates`` are those of the vcjob that owns it, by role.
    """

    pod_group: PodGroup | None
    pods: Sequence[Pod]
    templates: Mapping[str, Template] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What is otherwise: ``groups`` that come now, ``queues`` as they would be, ``gone`` nodes.

    ``policies`` None: those in force.
    """

    groups: Sequence[NewGroup] = ()
    queues: Mapping[QueueName, Queue] = field(default_factory=dict)
    gone: frozenset[NodeName] = frozenset()
    policies: Policies | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a cycle would do now, ``before`` the change and ``after`` it.

    ``asked`` are the groups that the question brings, ``displaced`` those that lose pods with the
    nodes that are gone; ``groups`` has all of them as they would be. ``otherwise`` is the cluster
    that was asked about.
    """

    before: Simulated
    after: Simulated
    asked: tuple[GroupKey, ...]
    displaced: tuple[GroupKey, ...]
    groups: Mapping[GroupKey, Group]
    otherwise: "Otherwise"


@dataclass(frozen=True, slots=True, eq=False)
class Otherwise:
    """The cluster of a question: groups are in ``snapshot``, the ``change`` is to be made of it."""

    snapshot: Snapshot
    change: ClusterChange
    policies: Policies
    asked: Sequence[Imagined]
    displaced: Sequence[Imagined]


class UnknownNode(LookupError):
    """A node that the question names is not there, or is gone by the time of its turn: which."""


@dataclass(slots=True, eq=False)
class Simulations:
    """Answers such questions from the state of this moment, one after the other.

    Plans are made in slices, so that calls of kube-scheduler are answered in between.
    """

    cache: ClusterCache
    input: PlannerInput
    configuration: Configuration
    limits: Limits
    clock: Clock
    _turns: Turns = field(default_factory=lambda: Turns("questions", most=MOST_WAITING))

    async def fate_of(self, group: NewGroup) -> Fate:
        """What would become of a group that came now. Raises `UnknownResource` and `TooMany`."""
        async with self.turn():
            asked = await self._imagined([group])
            now = self.clock()
            token = self.input.token(now, imagined=asked)
            found = await self.drive(simulate_steps(token.snapshot, token.policies, now=now))
            return found.fates[asked[0].view.key]

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait for the questions before, and have the planner alone; raises `TooMany`."""
        return self._turns.turn()

    async def answer(self, question: Question) -> Answer:
        """What would happen, for a caller that has its :meth:`turn`.

        Raises `UnknownResource`, and `UnknownNode` for a node that is not there.
        """
        otherwise, now = await self.otherwise(question), self.clock()
        token = self.input.token(now, running=evicting(otherwise.policies))
        before = simulate_steps(token.snapshot, token.policies, now=now)
        after = simulate_steps(
            otherwise.snapshot, otherwise.policies, change=otherwise.change, now=now
        )
        imagined = (*otherwise.asked, *otherwise.displaced)
        return Answer(
            await self.drive(before),
            await self.drive(after),
            tuple(each.view.key for each in otherwise.asked),
            tuple(each.view.key for each in otherwise.displaced),
            {each.view.key: each.group for each in imagined},
            otherwise,
        )

    async def otherwise(
        self, question: Question, *, running: bool = False, before: Otherwise | None = None
    ) -> Otherwise:
        """The cluster that is asked about, as it is when this returns.

        ``running``: it tells what runs in any case. ``before`` is what the same question came to,
        of which the groups that are asked about stay the same. Raises as :meth:`answer` does.
        """
        axis = self.cache.node_usage.axis
        if before is not None and before.snapshot.axis is axis:
            asked = before.asked
        else:
            asked = await self._imagined(question.groups)
        now, policies = self.clock(), question.policies or self.configuration.policies
        vector = on_axis(self.cache.node_usage.axis)
        displaced = self._displaced(question.gone, vector)
        for queue in question.queues.values():
            for limits in (queue.capability, queue.deserved, queue.guarantee):
                vector(limits)
        token = self.input.token(
            now, running=running or evicting(policies), imagined=[*displaced, *asked]
        )
        change = ClusterChange(question.queues, gone=question.gone)
        return Otherwise(token.snapshot, change, policies, asked, displaced)

    async def drive(self, steps: Generator[None, None, T]) -> T:
        """Run the steps to their end, giving the loop a turn after each slice of time."""
        return await in_slices(steps, clock=self.clock, slice_s=self.limits.slice_s)

    async def _imagined(self, groups: Sequence[NewGroup]) -> Sequence[Imagined]:
        """The groups as they would be, on the axis of now; what is large takes a while."""
        while True:
            axis = self.cache.node_usage.axis
            found = [await self.drive(_imagine(self.cache, each, on_axis(axis))) for each in groups]
            if self.cache.node_usage.axis is axis:
                return found

    def _displaced(self, gone: frozenset[NodeName], vector: ToVector) -> list[Imagined]:
        cache = self.cache
        keys: dict[GroupKey, None] = {}
        for name in sorted(gone):
            if name not in cache.node_usage.nodes:
                raise UnknownNode(f"no node {name} is known")
            for holder in sorted(cache.node_usage.holders(name)):
                member = cache.members.get(PodUid(holder))
                kept = cache.slots.find(holder) if member is None else None
                if member is not None:
                    keys[member.group] = None
                elif kept is not None:
                    keys[kept[0].key] = None
        groups = (cache.groups[key] for key in keys)
        return [without_nodes(cache.registry, each, gone, vector=vector) for each in groups]


def _imagine(
    cache: ClusterCache, new: NewGroup, vector: ToVector
) -> Generator[None, None, Imagined]:
    return imagine(
        cache.registry,
        pod_group=new.pod_group,
        pods=new.pods,
        templates=new.templates,
        vector=vector,
    )
