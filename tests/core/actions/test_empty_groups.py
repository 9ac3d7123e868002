"""A group whose pods are too few is told that it lacks them, not that its queue is used up."""

from app.model.gang import Counts
from app.model.reason import Cause, Shortfall
from app.model.workload import GroupPhase
from tests.builders import make_gang
from tests.core.actions.rigs import HELM, cores, cycle, policies, vector


def test_a_group_that_nobody_made_pods_for_lacks_members_in_a_queue_that_deserves_nothing() -> None:
    empty = make_gang("empty", min_member=4, phase=GroupPhase.INQUEUE, counts=Counts())
    outcome = cycle(empty, nodes=cores(4), by=policies(HELM))
    refusal = outcome.refusal("empty")
    assert refusal.cause is Cause.NOT_ENOUGH_TASKS
    assert refusal.shortfalls == (Shortfall("pods", asked=4, free=0),)


def test_a_group_with_a_failed_member_lacks_it_in_a_queue_that_holds_all_it_deserves() -> None:
    held = vector(cpu=2, pods=2)
    torn = make_gang(
        "torn",
        phase=GroupPhase.RUNNING,
        counts=Counts(running=2, failed=1),
        min_member=3,
        min_request=vector(cpu=3, pods=3),
        allocated=held,
    )
    refusal = cycle(torn, nodes=cores(4), by=policies(HELM)).refusal("torn")
    assert refusal.cause is Cause.NOT_ENOUGH_TASKS
    assert refusal.shortfalls == (Shortfall("pods", asked=3, free=2),)
