"""Asking the planner again what it was asked before, and how two plans differ.

A plan depends on the snapshot, the policies and the clock only, so the same question has the same
answer, in another process too. With other policies, or with a change of the snapshot, the answer is
what would have been decided at that moment; what would have followed from it is not told.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from app.core.planner import EVICTING, finish, plan_around_faults, plan_gang
from app.core.policy import Policies
from app.core.simulation import NO_CHANGE, ClusterChange, changed
from app.core.tiers import build
from app.model.ids import GroupKey
from app.model.plan import Plan
from app.model.recorded import PlanCall, Recorded

NOTHING: Final = "nothing"


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of ``group`` by one plan, and by another, in words."""

    group: GroupKey
    before: str
    after: str


def replayed(
    recorded: Recorded, policies: Policies | None = None, *, change: ClusterChange = NO_CHANGE
) -> Plan:
    """The answer to a recorded question, by other ``policies`` or with a ``change`` if given.

    Raises ``KeyError`` with the name of a node that is not there.
    """
    by = policies or build(recorded.conf)
    snapshot = changed(recorded.snapshot, change)
    if recorded.call is PlanCall.GANG and recorded.key is not None:
        return plan_gang(snapshot, by, key=recorded.key, now=recorded.now, shapes=None)
    return finish(plan_around_faults(snapshot, by, now=recorded.now, shapes=None)).plan


def able(recorded: Recorded, policies: Policies) -> Policies:
    """``policies`` without what a recorded snapshot cannot answer.

    It tells what runs only where the configuration of then evicts: else no other one can.
    """
    actions = policies.conf.actions
    told = any(name in EVICTING for name in recorded.conf.actions) or len(recorded.snapshot.running)
    if told or not any(name in EVICTING for name in actions):
        return policies
    giving = tuple(name for name in actions if name not in EVICTING)
    return build(replace(policies.conf, actions=giving))


def differences(before: Plan, after: Plan) -> tuple[Difference, ...]:
    """The groups that fare otherwise by ``after``, in the order of their names."""
    one, other = fates(before), fates(after)
    return tuple(
        Difference(key, one.get(key, NOTHING), other.get(key, NOTHING))
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    )


def fates(decided: Plan) -> Mapping[GroupKey, str]:
    """What a plan does with each group that it decides about, in words."""
    said: dict[GroupKey, list[str]] = {}
    for key in decided.admitted:
        said.setdefault(key, []).append("is admitted")
    for placed in decided.placed:
        nodes = _counted(each.node for each in placed.placements)
        said.setdefault(placed.gang, []).append(f"is placed on {nodes}")
    for each in decided.evictions:
        victims = ", ".join(sorted(f"{v.namespace}/{v.name}" for v in each.victims)) or "no pod"
        nodes = _counted(place.node for place in each.places)
        where = f" for places on {nodes}" if nodes else ""
        said.setdefault(each.preemptor, []).append(f"{each.action} evicts {victims}{where}")
    for key, refusal in decided.refused.items():
        never = f", never: {refusal.never.value}" if refusal.never is not None else ""
        said.setdefault(key, []).append(f"waits: {refusal.cause.value}{never}")
    return {key: ", ".join(told) for key, told in said.items()}


def _counted(nodes: Iterable[str]) -> str:
    counts = sorted(Counter(nodes).items())
    return ", ".join(name if count == 1 else f"{name} ({count})" for name, count in counts)
