"""Holders of what a refused group lacks: the groups that hold or may claim most of it.

They are looked up for refusals only. What groups hold is taken from the snapshot once per queue and
resource; groups that the cycle admits since are followed through :attr:`Ledger.admitted`, so a
thousand refusals in a row cost one look at the groups.

A group that asks for admission is not kept out by what others hold beyond their minimums, so no
holder of that is named to it.
"""

from dataclasses import dataclass
from typing import Protocol

from app.core.ledger import Ledger
from app.model.gang import Gang
from app.model.ids import GroupKey, QueueName
from app.model.reason import Holder

_MOST = 3


class _Count(Protocol):
    """How much of the resource at that position of the axis a group has."""

    def __call__(self, gang: Gang, position: int, *, admitted: bool) -> int: ...


@dataclass(slots=True, eq=False)
class _Ranking:
    """The biggest holders so far, the same as values, and how many admissions it has seen."""

    amounts: dict[GroupKey, int]
    count: _Count
    holders: tuple[Holder, ...] = ()
    seen: int = -1


class Holders:
    """The holders of one cycle; ``queue`` None stands for the whole cluster."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._below: dict[QueueName | None, list[Gang]] | None = None
        self._rankings: dict[tuple[QueueName | None, str, bool], _Ranking] = {}

    def most(
        self, queue: QueueName | None, resource: str, *, of_minimum: bool = False
    ) -> tuple[Holder, ...]:
        """The groups that hold most of ``resource`` in the subtree of ``queue``, biggest first.

        ``of_minimum``: without what they hold beyond their ``minResources``.
        """
        ranking = self._rankings.get((queue, resource, of_minimum))
        if ranking is None:
            ranking = self._first_look(queue, resource, of_minimum=of_minimum)
            self._rankings[queue, resource, of_minimum] = ranking
        if ranking.seen != len(self._ledger.admitted):
            self._follow(ranking, queue, resource)
        return ranking.holders

    def _first_look(self, queue: QueueName | None, resource: str, *, of_minimum: bool) -> _Ranking:
        position = self._ledger.snapshot.axis.index[resource]
        gangs = self._gangs_below().get(queue, [])
        count = _held_of_minimum if of_minimum else _held
        held = {gang.key: count(gang, position, admitted=gang.claims) for gang in gangs}
        return _Ranking(amounts=_biggest(held), count=count)

    def _follow(self, ranking: _Ranking, queue: QueueName | None, resource: str) -> None:
        position = self._ledger.snapshot.axis.index[resource]
        admitted = self._ledger.admitted
        for gang in admitted[max(ranking.seen, 0) :]:
            if queue is None or queue in self._ledger.path(gang.queue):
                ranking.amounts[gang.key] = ranking.count(gang, position, admitted=True)
        ranking.amounts = _biggest(ranking.amounts)
        ranking.holders = tuple(
            Holder(who=self._called(key), resource=resource, amount=amount)
            for key, amount in ranking.amounts.items()
        )
        ranking.seen = len(admitted)

    def _called(self, key: GroupKey) -> str:
        gang = self._ledger.snapshot.gangs.get(key)
        return key if gang is None else gang.called

    def _gangs_below(self) -> dict[QueueName | None, list[Gang]]:
        if self._below is None:
            self._below = {None: []}
            for gang in self._ledger.snapshot.gangs.values():
                if gang.claims or gang.allocated.any():
                    for queue in (None, *self._ledger.path(gang.queue)):
                        self._below.setdefault(queue, []).append(gang)
        return self._below


def _held(gang: Gang, position: int, *, admitted: bool) -> int:
    held = int(gang.allocated[position])
    if not admitted or gang.min_request is None:
        return held
    return max(held, int(gang.min_request[position]) - int(gang.gated_request[position]))


def _held_of_minimum(gang: Gang, position: int, *, admitted: bool) -> int:
    if gang.min_request is None:
        return 0
    return min(_held(gang, position, admitted=admitted), int(gang.min_request[position]))


def _biggest(held: dict[GroupKey, int]) -> dict[GroupKey, int]:
    ranked = sorted((-amount, key) for key, amount in held.items() if amount > 0)
    return {key: -amount for amount, key in ranked[:_MOST]}
