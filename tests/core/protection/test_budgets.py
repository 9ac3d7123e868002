"""PodDisruptionBudgets hold for all evictions together."""

from hypothesis import given
from hypothesis import strategies as st

from app.core.protection.budgets import BudgetInUse, exceed_a_budget
from app.core.protection.victim import Victim
from app.model.disruption import DisruptionBudget
from app.model.ids import PodUid
from app.model.shape import LabelSelector, Operator, Requirement
from tests.core.protection.builders import make_victim
from tests.scale import examples


def budget(allowed: int, *, app: str = "") -> DisruptionBudget:
    """Of the pods with that label, or of all."""
    requirements = (Requirement("app", Operator.IN, (app,)),) if app else ()
    return DisruptionBudget("default", "b", LabelSelector(requirements), allowed)


def test_victims_and_those_of_others_take_from_the_same_budget() -> None:
    others = {PodUid("uid-other")}
    assert not exceed_a_budget([make_victim()], [BudgetInUse(budget(2), others)])
    assert exceed_a_budget([make_victim()], [BudgetInUse(budget(1), others)])


def test_the_same_victim_takes_from_it_once() -> None:
    victim = make_victim()
    assert not exceed_a_budget([victim], [BudgetInUse(budget(1), {victim.uid})])


def test_a_victim_that_is_being_deleted_takes_nothing() -> None:
    assert exceed_a_budget([make_victim()], [BudgetInUse(budget(0))])
    assert not exceed_a_budget([make_victim(deleting=True)], [BudgetInUse(budget(0))])


def test_a_budget_that_is_used_up_speaks_only_for_those_it_covers() -> None:
    used_up = BudgetInUse(budget(0, app="db"), {PodUid("uid-other")})
    assert not exceed_a_budget([make_victim(labels={"app": "web"})], [used_up])
    assert exceed_a_budget([make_victim(labels={"app": "db"})], [used_up])


@given(
    apps=st.lists(st.sampled_from("abc"), min_size=1, max_size=6),
    allowed=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    data=st.data(),
)
@examples(100)
def test_no_budget_is_ever_exceeded(
    apps: list[str], allowed: list[int], data: st.DataObject
) -> None:
    """One budget has all pods, others those of one label; preemptors ask in turn."""
    pods = [make_victim(f"v{n}", labels={"app": app}) for n, app in enumerate(apps)]
    budgets = [budget(n, app=app) for n, app in zip(allowed, ("", *"abc"), strict=True)]
    evicted: dict[PodUid, Victim] = {}

    def taken(of: DisruptionBudget) -> set[PodUid]:
        return {uid for uid, pod in evicted.items() if of.covers(pod)}

    for going in data.draw(st.lists(st.lists(st.sampled_from(pods), max_size=3), max_size=5)):
        if not exceed_a_budget(going, [BudgetInUse(each, taken(each)) for each in budgets]):
            evicted |= {pod.uid: pod for pod in going}
    assert all(len(taken(each)) <= each.allowed for each in budgets)
