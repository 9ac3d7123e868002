"""The audit trail: every decision is told, as a value, to what keeps them.

What is told is what was known at that moment; nothing is told twice. With no keeper it costs a
comparison.
"""

from collections.abc import Callable

from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member, Stage
from app.cache.gangs.story import Steps, Stimulus
from app.model.decision import Decision, DecisionKind
from app.model.eviction import Intent, VictimPod
from app.model.ids import NO_NODE, GroupKey, NodeName
from app.model.reason import Refusal

Keeper = Callable[[Decision], None]


class Trail:
    """Tells decisions to ``keeper``; ``clock`` dates them (seconds since the epoch)."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.keeper: Keeper | None = None
        self._clock = clock

    def step(
        self,
        group: Group,
        member: Member,
        after: Stage,
        node: NodeName,
        *,
        by: Stimulus,
        why: str,
        generation: int,
    ) -> None:
        """A member goes from its stage to that one: it gets a place, another one, or loses it."""
        if self.keeper is None:
            return
        had = member.node if member.stage is not Stage.WAITING else NO_NODE
        kind, at = DecisionKind.PLACE, node
        if after is Stage.WAITING:
            kind, at = DecisionKind.RELEASE, had
        elif node == had:
            return
        if at:
            self.of_member(kind, group, member, at, by=by, why=why, generation=generation)

    def of_member(
        self,
        kind: DecisionKind,
        group: Group,
        member: Member,
        node: NodeName,
        *,
        by: Stimulus,
        why: str = "",
        generation: int = 0,
    ) -> None:
        """A decision about one pod, whose story tells of it already; ``why`` in a few words."""
        if self.keeper is None:
            return
        self.keeper(
            Decision(
                self._clock(),
                kind,
                group.key,
                job_of(group),
                group.queue,
                by.value,
                cause=why,
                pod=member.pod.name,
                uid=member.pod.uid,
                node=node,
                generation=generation,
                story=_steps(member.story),
            )
        )

    def of_group(
        self,
        kind: DecisionKind,
        group: Group,
        *,
        by: Stimulus,
        cause: str = "",
        text: str = "",
        generation: int = 0,
        refusal: Refusal | None = None,
    ) -> None:
        """A decision about a whole group; a ``refusal`` brings the cause and the numbers."""
        if self.keeper is None:
            return
        self.keeper(
            Decision(
                self._clock(),
                kind,
                group.key,
                job_of(group),
                group.queue,
                by.value,
                cause=cause if refusal is None else refusal.cause.value,
                text=text,
                generation=generation,
                story=_steps(group.story),
                refusal=refusal,
            )
        )

    def of_refusal(self, group: Group, refusal: Refusal, *, generation: int) -> None:
        """The group waits, for that cause from now on."""
        kind, by = DecisionKind.REFUSE, Stimulus.CYCLE
        self.of_group(kind, group, by=by, generation=generation, refusal=refusal)

    def of_victim(
        self,
        victim: VictimPod,
        intent: Intent,
        group: Group | None,
        member: Member | None,
        *,
        cause: str,
        plan: str,
    ) -> None:
        """A pod is to go, or its eviction has come further; ``group`` and ``member`` if known."""
        if self.keeper is None:
            return
        self.keeper(
            Decision(
                self._clock(),
                DecisionKind.EVICT,
                victim.gang or GroupKey(f"{victim.namespace}/"),
                job_of(group) if group is not None else victim.gang.partition("/")[2],
                victim.queue,
                Stimulus.EVICTION.value,
                cause=cause,
                pod=victim.name,
                uid=victim.uid,
                node=victim.node,
                text=intent.action.value,
                generation=intent.generation,
                story=_steps(member.story) if member is not None else (),
                preemptor=intent.preemptor,
                rule=victim.rule,
                plan=f"{plan}@{intent.decided:.6f}",
                certificate=intent.certificate,
            )
        )


def job_of(group: Group) -> str:
    """The name of the job that owns a group, else that of the group, else that of its pod."""
    name = group.key.partition("/")[2]
    if group.solo:
        return next((m.pod.name for m in group.members.values()), name)
    owner = group.pod_group.owner_uid if group.pod_group is not None else ""
    return name.removesuffix(f"-{owner}") if owner else name


def _steps(steps: Steps | None) -> tuple[tuple[float, str, int, str, str, str, str], ...]:
    return tuple(steps or ())
