"""Who may not be a victim, whatever else is evicted."""

import pytest

from app.core.protection.rules import is_kept_by_queue, is_of_the_system, refuses_preemption
from app.core.protection.victim import Victim
from app.model.ids import QueueName
from tests.builders import make_queue
from tests.core.protection.builders import make_member, make_victim

MINE, KEPT = QueueName("mine"), QueueName("kept")
QUEUES = {MINE: make_queue(MINE), KEPT: make_queue(KEPT, reclaimable=False)}


def is_kept(victim: Victim, *, preemptor_queue: QueueName = MINE) -> bool:
    return is_kept_by_queue(victim, preemptor_queue=preemptor_queue, queues=QUEUES)


@pytest.mark.parametrize(
    "fields",
    [
        {"namespace": "kube-system"},
        {"priority_class": "system-cluster-critical"},
        {"priority_class": "system-node-critical"},
    ],
)
def test_pods_of_the_system_are_not_evicted(fields: dict[str, str]) -> None:
    assert is_of_the_system(make_victim(**fields))


def test_other_pods_are_not_of_the_system_however_important_they_are() -> None:
    assert not is_of_the_system(make_victim(priority=2_000_000_000, priority_class="high"))


def test_a_pod_that_refuses_preemption_is_not_evicted() -> None:
    assert refuses_preemption(make_member(preemptable=False))
    assert not refuses_preemption(make_member())


def test_a_queue_that_is_not_reclaimable_gives_nothing_to_others() -> None:
    assert is_kept(make_member(queue=KEPT))
    assert not is_kept(make_member(queue=MINE), preemptor_queue=KEPT)


def test_a_preemptor_of_the_same_queue_may_have_the_place() -> None:
    assert not is_kept(make_member(queue=KEPT), preemptor_queue=KEPT)


def test_a_victim_of_no_queue_or_an_unknown_one_is_kept_by_none() -> None:
    assert not is_kept(make_victim())
    assert not is_kept(make_member(queue=QueueName("gone")))
