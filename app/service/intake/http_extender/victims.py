"""Whether pods may be evicted: asked of the HTTP extender before the intent is stored.

The planner names the victims, so they are asked about when a plan has them: it is dropped, and the
next one goes by the answers, which spare some pods or let the same ones go.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from app.cache.cluster import ClusterCache
from app.model.eviction import EvictionAction, EvictionPlan
from app.model.http_extender import HttpExtenderConf, Verb
from app.model.ids import GroupKey, PodUid
from app.model.pod import Pod
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
    """``evictor`` is a member that waits; ``victims`` are the pods to go for its gang."""

    verb: Verb
    evictor: Pod
    victims: tuple[PodUid, ...]


@dataclass(frozen=True, slots=True, eq=False)
class AskedVictims:
    """``open`` are the questions that the follower is to ask, by preemptor."""

    cache: ClusterCache
    configuration: Configuration
    open: dict[GroupKey, Question] = field(default_factory=dict)
    told: list[Callable[[], None]] = field(default_factory=list)
    """Told that there is a question."""

    def may_go(self, plan: EvictionPlan, *, now: float) -> bool:
        """Whether the victims of ``plan`` may go; they are asked about if that is not known."""
        conf = self.configuration.http_extender
        question = None if conf is None else self._question(conf, plan)
        if question is None:
            return True
        known = self.cache.http_extender.victims.get(plan.preemptor, {})
        answers = [known[uid].fresh(now) if uid in known else None for uid in question.victims]
        if all(answers):
            return True
        if None in answers:
            self.open[plan.preemptor] = question
            for tell in self.told:
                tell()
        return False

    def _question(self, conf: HttpExtenderConf, plan: EvictionPlan) -> Question | None:
        """What is to be asked about the plan; None: nothing."""
        verb = Verb.RECLAIMABLE if plan.action.reclaims else Verb.PREEMPTABLE
        if plan.action not in _ASKED_ABOUT or not plan.victims or not conf.asks(verb):
            return None
        members = (self.cache.members.get(place.task.uid) for place in plan.places)
        pods = (member.pod for member in members if member is not None)
        evictor = next((pod for pod in pods if conf.minds(pod.shape)), None)
        if evictor is None:
            return None
        return Question(verb, evictor, tuple(victim.uid for victim in plan.victims))
