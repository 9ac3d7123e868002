"""Victims of shortage: reservations that fall when a node is short while Bindings are under way.

Not all of them must fall: what is left of the room is enough for some. The place of a victim
becomes void. It is chosen by what is lost with it, the least first (:class:`Loss`): one whose gang
stops anyway, then one that its gang can spare, then gangs of which no member is bound, whole and
small ones first, and at last members of gangs that are begun, which have to be planned again before
these are whole. Among equals one whose Binding has not been sent goes before one that the API
server may have taken, and a later reservation before an earlier one.

Whether a gang has its minimum without a member is judged as for victims of eviction
(:mod:`app.core.protection.gang_minimum`). Which members go is another question than there: some
must go, whatever is lost, so there is an order where eviction has a refusal.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member
from app.cache.gangs.victims import victim_gang
from app.core.protection.gang_minimum import keeps_minimum
from app.core.protection.victim import VictimGang
from app.model.ids import GroupKey
from app.model.parts import Part
from app.model.resources import Vector


class Loss(IntEnum):
    """What is lost when a member's reservation falls."""

    NOTHING = 0
    """The member's gang stops anyway."""
    ONE_TO_SPARE = 1
    """The others make up the minimum."""
    A_GANG = 2
    """No member of it is bound, and now none will be."""
    PART_IN_DOUBT = 3
    """The API server may take the Binding of another, or may have taken it."""
    PART = 4
    """A member of it is bound."""


Cost = tuple[Loss, int, bool]


@dataclass(slots=True, eq=False)
class _Gang:
    """A group, and how many of each part fall of the members that it counts on."""

    group: Group
    before: VictimGang
    may_arrive: int
    leaving: Counter[Part] = field(default_factory=Counter)
    _costs: dict[tuple[Part, bool], Cost] = field(default_factory=dict)
    """Of any member by what it is; a node has room for hundreds, and all are compared."""

    @classmethod
    def of(cls, group: Group) -> "_Gang":
        may_arrive = sum(member.may_arrive for member in group.members.values())
        return cls(group, victim_gang(group), may_arrive)

    def lose(self, member: Member) -> None:
        """Note that the member's reservation falls."""
        self.leaving[member.part] += 1
        self._costs.clear()

    def cost(self, member: Member) -> Cost:
        """What the member's fall costs: the less, the sooner it falls."""
        like = member.part, member.may_arrive
        cost = self._costs.get(like)
        if cost is None:
            cost = self._costs[like] = self._cost(*like)
        return cost

    def _cost(self, part: Part, may_arrive: bool) -> Cost:
        loss = self._loss(part, may_arrive)
        size = self.group.counted.arrivals.at_bind.total() if loss is Loss.A_GANG else 0
        return loss, size, may_arrive

    def _loss(self, part: Part, may_arrive: bool) -> Loss:
        """What is lost when a member of ``part`` falls besides."""
        group = self.group
        if not group.known:
            return Loss.NOTHING
        if keeps_minimum(self.before, self.leaving + Counter((part,))):
            return Loss.ONE_TO_SPARE
        if group.begun:
            return Loss.PART
        if self.may_arrive > may_arrive:
            return Loss.PART_IN_DOUBT
        return Loss.A_GANG if keeps_minimum(self.before, self.leaving) else Loss.NOTHING


def victims_of(under_way: Iterable[tuple[Member, Group]], lacking: Vector) -> list[Member]:
    """The members ``under_way`` to one node whose places become void.

    ``lacking`` is what the node has too little of, shape ``(R,)``: of what is not above zero there
    is enough.
    """
    claims = sorted(under_way, key=_age, reverse=True)
    rest = [member for member, _ in claims]
    groups = {group.key: group for _, group in claims}
    gangs = {key: _Gang.of(group) for key, group in groups.items()}
    left, ways = lacking.copy(), []
    while useful := _asking_for(rest, left):
        way = _cheapest(useful, gangs)
        for member in way:
            left -= member.task.request
            gangs[member.group].lose(member)
        rest = [member for member in rest if member not in way]
        ways.append(way)
    return _needed(ways, left)


def _age(claim: tuple[Member, Group]) -> tuple[float, str]:
    member, _ = claim
    return member.since, member.pod.uid


def _asking_for(members: Iterable[Member], lacking: Vector) -> list[Member]:
    """Members that ask for some of what is lacking; as a rule they share a few requests."""
    known: dict[int, bool] = {}
    asking = []
    for member in members:
        request = member.task.request
        asks = known.get(id(request))
        if asks is None:
            asks = known[id(request)] = bool((lacking > 0)[request > 0].any())
        if asks:
            asking.append(member)
    return asking


def _cheapest(useful: Sequence[Member], gangs: dict[GroupKey, _Gang]) -> list[Member]:
    """One member; of a gang that stops with it all, whose room comes free then."""
    first = min(useful, key=lambda member: gangs[member.group].cost(member))
    loss, _, _ = gangs[first.group].cost(first)
    if first.may_arrive or loss is not Loss.A_GANG:
        return [first]
    return [member for member in useful if member.group == first.group]


def _needed(ways: Sequence[Sequence[Member]], left: Vector) -> list[Member]:
    """Without those that a later and larger one has made needless."""
    needed: list[Member] = []
    for way in reversed(ways):
        room = sum(member.task.request for member in way)
        if ((left + room <= 0) | (room == 0)).all():
            left = left + room
        else:
            needed += way
    return needed
