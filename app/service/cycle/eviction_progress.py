"""Follows the plans of evictions that have begun: from what the watch shows to their end.

When all victims of a plan have gone and the room is there, its places are reserved as those of any
gang, all at once, and the gang is admitted if the plan says so. It is looked at after each batch of
events, and after each cycle, as time alone can end a plan:

* a victim that does not go, long after its grace period, or that a PodDisruptionBudget or the API
  server keeps, is left alone: the plan is given up, and the planner looks for others. Once only:
  the second time the gang waits;
* places that their queue, or one above it, may hold only when its terminating pods are gone wait
  for these, but no longer than for a victim;
* room that a pod of another scheduler took, or that a node lost, is not waited for: what was
  evicted was in vain, and no pods are evicted for the gang for a while.
"""

from dataclasses import dataclass
from typing import Final

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.cache.gangs.story import Stimulus
from app.cache.gangs.views import asks_like
from app.model.eviction import VictimPod
from app.model.ids import NodeName, PodUid
from app.model.names import plain
from app.model.plan import GangPlacement
from app.service.activity import Activity
from app.service.cycle.begun_eviction import KEPT_FOR_NOW, BegunEviction, Fate, Step
from app.service.cycle.evictions import GROUP_GONE, Evictions
from app.service.cycle.publishing import Publisher
from app.service.limits import Limits
from app.service.ports import Clock

_NAMED: Final = 3


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class EvictionProgress:
    """Moves the plans on, if this replica leads."""

    cache: ClusterCache
    evictions: Evictions
    activity: Activity
    limits: Limits
    clock: Clock
    publisher: Publisher

    def settle(self) -> None:
        """See how far each plan has come."""
        if not (self.activity.active and self.evictions.loaded):
            return
        evictions = self.evictions
        searched = evictions.had_second_search
        if not (evictions.plans or evictions.stuck or evictions.pauses or searched):
            return
        now = self.clock()
        for begun in evictions.under_way():
            self._follow(begun, now)
        for uid in [uid for uid in evictions.stuck if uid not in self.cache.members]:
            del evictions.stuck[uid]
        for key in [key for key in searched if key not in self.cache.groups]:
            del searched[key]
        evictions.pauses.tidy(self.cache.groups, now=now)
        pipelined = self.cache.pipelined
        pipelined.stuck = frozenset(evictions.stuck)
        pipelined.paused = frozenset(evictions.pauses.active(now=now))

    def _follow(self, begun: BegunEviction, now: float) -> None:
        key = begun.intent.preemptor
        group = self.cache.groups.get(key)
        if key and (group is None or group.deleting or not group.known):
            self.evictions.give_up(begun, GROUP_GONE, now=now)
        elif group is not None and begun.step is Step.PLACED:
            self._follow_placed(begun, group, now)
        elif group is not None and begun.gang is not None and not asks_like(group, begun.gang):
            self.evictions.give_up(begun, "the group asks for something else", now=now)
        elif group is not None and not self._has_places_to_wait_for(begun, group):
            self.evictions.give_up(begun, "its members are not those of the plan", now=now)
        else:
            self._follow_victims(begun, group, now)

    def _has_places_to_wait_for(self, begun: BegunEviction, group: Group) -> bool:
        pipelined = self.cache.pipelined
        followed = pipelined.follow(begun.name)
        return followed and not group.placed_minimum and bool(pipelined.placements(begun.name))

    def _follow_placed(self, begun: BegunEviction, group: Group, now: float) -> None:
        if group.reached_minimum:
            self.evictions.on_bound(begun, now=now)
        elif not group.has_reservations:
            self.evictions.give_up(begun, "its places were given back", now=now, wasted="unused")

    def _follow_victims(self, begun: BegunEviction, group: Group | None, now: float) -> None:
        going = self.cache.pipelined.going(begun.name)
        if not going:
            self._take_room(begun, group, now)
            return
        for victim in going:
            member = self.cache.members.get(victim.uid)
            if member is not None and member.pod.deleting:
                begun.meets(victim.uid, Fate.GOING, now=now)
        if begun.step is Step.DECIDED and now - begun.since > self.limits.intent_s:
            self.evictions.give_up(begun, "the plan could not be stored", now=now)
            return
        late = [victim for victim in going if self._is_late(begun, victim, now)]
        if late:
            self._leave_alone(begun, late, now)

    def _is_late(self, begun: BegunEviction, victim: VictimPod, now: float) -> bool:
        fate, since = begun.fates[victim.uid], begun.fate_since[victim.uid]
        if fate is Fate.GOING:
            member = self.cache.members.get(victim.uid)
            grace_s = 0.0 if member is None else member.pod.grace
            return now - since > grace_s + self.limits.victim_s
        if fate in KEPT_FOR_NOW:
            return now - since > self.limits.victim_s
        return fate is Fate.REFUSED

    def _leave_alone(self, begun: BegunEviction, late: list[VictimPod], now: float) -> None:
        searched, intent = self.evictions.had_second_search, begun.intent
        if intent.preemptor and searched.get(intent.preemptor) == intent.uid:
            begun.late.update(victim.uid for victim in late)
            return
        if intent.preemptor:
            searched[intent.preemptor] = intent.uid
        for victim in late:
            self.evictions.leave_alone(victim.uid, now=now)
        self.evictions.give_up(begun, _do_not_go(late), now=now)

    def _take_room(self, begun: BegunEviction, group: Group | None, now: float) -> None:
        """All victims have gone: reserve the places, or see why that cannot be."""
        if group is None:
            self.evictions.on_bound(begun, now=now)
            return
        placements = self.cache.pipelined.placements(begun.name)
        decided = GangPlacement(group.key, placements, whole=True)
        generation = begun.intent.generation
        queue = self.publisher.queue_waits_for(decided, now=now)
        if queue is not None:
            if now - self._gone_since(begun) > self.limits.victim_s:
                why = f"pods of queue {queue} do not terminate, and with them it is at its limit"
                self.evictions.give_up(begun, why, now=now, wasted="queue")
            return
        if self.publisher.take(decided, now=now, by=Stimulus.EVICTION, generation=generation):
            if begun.intent.admits:
                self.cache.decisions.admit(group.key)
            self.evictions.on_placed(begun, now=now)
            return
        is_to_come = self.cache.pipelined.bears(self.cache.pipelined.plan(begun.name))
        if is_to_come and now - self._gone_since(begun) <= self.limits.victim_s:
            return  # other pods are terminating there still
        why, wasted = self._who_has_it(begun)
        self.evictions.give_up(begun, why, now=now, wasted=wasted)

    def _gone_since(self, begun: BegunEviction) -> float:
        return max([begun.since, *begun.fate_since.values()])

    def _who_has_it(self, begun: BegunEviction) -> tuple[str, str]:
        """Why there is not the room that was to be free, in words and as a label."""
        usage = self.cache.node_usage
        placements = self.cache.pipelined.placements(begun.name)
        nodes = dict.fromkeys(placement.node for placement in placements)
        for placement in placements:
            if not usage.takes(placement.node, placement.task.shape):
                return f"node {placement.node} does not take pods any more", "node"
        takers = [pod for node in nodes for pod in self._newcomers(node, begun)]
        if takers:
            more = f" and {len(takers) - _NAMED} more" if len(takers) > _NAMED else ""
            return f"the room was taken by {', '.join(sorted(takers)[:_NAMED])}{more}", "taken"
        return f"there is too little room on {', '.join(sorted(nodes)[:_NAMED])}", "room"

    def _newcomers(self, node: NodeName, begun: BegunEviction) -> list[str]:
        """Foreign pods on the node that were not there when the plan began."""
        pods = (
            self.cache.pods.foreign.get(PodUid(holder))
            for holder in self.cache.node_usage.holders(node) - begun.there
        )
        return [
            f"pod {pod.key} of scheduler {plain(pod.scheduler)}" for pod in pods if pod is not None
        ]


def _do_not_go(late: list[VictimPod]) -> str:
    named = ", ".join(f"{victim.namespace}/{victim.name}" for victim in late[:_NAMED])
    return f"{named} {'does' if len(late) == 1 else 'do'} not go"
