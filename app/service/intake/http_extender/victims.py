"""Whether pods may be evicted: asked of the HTTP extender before the intent is stored.

The planner names the victims, so they are asked about when a plan has them: it is dropped, and the
next one goes by the answers, which spare some pods or let the same ones go.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from app.cache.cluster import ClusterCache
from app.model.eviction import EvictionAction, EvictionPlan
from app.model.gang import Task
from app.model.http_extender import HttpExtenderConf, Verb, VictimsAsked
from app.model.ids import NO_NODE, GroupKey, PodUid
from app.model.pod import GROUP_ANNOTATION, TASK_SPEC, Pod
from app.service.configuration import Configuration

_ASKED_ABOUT = frozenset(
    {
        EvictionAction.PREEMPT,
        EvictionAction.GANG_PREEMPT,
        EvictionAction.RECLAIM,
        EvictionAction.GANG_RECLAIM,
    }
)
"""Actions that evict for a gang."""


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """``evictor`` is a member that waits, or will; ``victims`` are the pods to go for its gang."""

    verb: Verb
    evictor: Pod
    victims: tuple[PodUid, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AskedVictims:
    """``open`` are the questions that the follower is to ask."""

    cache: ClusterCache
    configuration: Configuration
    open: dict[VictimsAsked, Question] = field(default_factory=dict)
    told: list[Callable[[], None]] = field(default_factory=list)
    """Told that there is a question."""

    def may_go(self, plan: EvictionPlan, *, now: float) -> bool:
        """Whether the victims of ``plan`` may go; they are asked about if that is not known."""
        conf = self.configuration.http_extender
        question = None if conf is None else self._question(conf, plan)
        if question is None:
            return True
        asked = VictimsAsked(plan.preemptor, question.verb)
        known = self.cache.http_extender.victims.get(asked, {})
        answers = [known[uid].fresh(now) if uid in known else None for uid in question.victims]
        if all(answers):
            return True
        if None in answers:
            self.open[asked] = question
            for tell in self.told:
                tell()
        return False

    def _question(self, conf: HttpExtenderConf, plan: EvictionPlan) -> Question | None:
        """What is to be asked about the plan; None: nothing."""
        verb = Verb.RECLAIMABLE if plan.action.reclaims else Verb.PREEMPTABLE
        if plan.action not in _ASKED_ABOUT or not plan.victims or not conf.asks(verb):
            return None
        tasks = [place.task for place in plan.places if conf.minds(place.task.shape)]
        if not tasks:
            return None
        member = next((m for t in tasks if (m := self.cache.members.get(t.uid))), None)
        evictor = _pod_of(plan.preemptor, tasks[0]) if member is None else member.pod
        return Question(verb, evictor, tuple(victim.uid for victim in plan.victims))


def _pod_of(key: GroupKey, task: Task) -> Pod:
    """What is known of the pod that will come for a slot of a PodGroup."""
    namespace, _, name = key.partition("/")
    return Pod(
        uid=task.uid,
        namespace=namespace,
        name=task.name,
        resource_version="",
        scheduler="",
        shape=task.shape,
        node=NO_NODE,
        phase="Pending",
        created=task.created,
        labels={},
        annotations={GROUP_ANNOTATION: name} | ({TASK_SPEC: task.role} if task.role else {}),
        priority=task.priority,
    )
