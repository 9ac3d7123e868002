"""PodDisruptionBudgets allow so many evictions, those for other preemptors included."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from app.core.protection.victim import Victim
from app.model.disruption import DisruptionBudget
from app.model.ids import PodUid


class BudgetInUse(NamedTuple):
    """A budget, and the pods covered by it whose evictions its status does not show yet."""

    budget: DisruptionBudget
    evicted: Collection[PodUid] = ()


def exceed_a_budget(victims: Iterable[Victim], budgets: Iterable[BudgetInUse]) -> bool:
    """Whether a budget allows too few evictions for ``victims`` and those evicted before.

    A pod that is being deleted takes nothing from a budget any more.
    """
    going = [victim for victim in victims if not victim.deleting]
    return any(_exceed(going, budget, evicted) for budget, evicted in budgets)


def _exceed(
    going: Collection[Victim], budget: DisruptionBudget, evicted: Collection[PodUid]
) -> bool:
    if len(evicted) + len(going) <= budget.allowed:
        return False  # whichever of them it covers: comparing labels costs the most
    mine = {victim.uid for victim in going if budget.covers(victim)}
    return bool(mine) and len(mine.union(evicted)) > budget.allowed
