"""Pods that stand alone are in the queue of their namespace, as their PodGroups will be."""

import pytest

from app.cache.gangs.members import Stage
from app.model.ids import NodeName, QueueName
from app.model.pod import GROUP_ANNOTATION, QUEUE_ANNOTATION
from app.model.workload import Namespace
from tests.builders import make_pod
from tests.cache.rig import Rig
from tests.cache.unwalkable import Unwalkable

SMALL = QueueName("small")


@pytest.fixture
def rig() -> Rig:
    """Its namespace names the queue ``small``."""
    rig = Rig()
    name_queue(rig, SMALL)
    return rig


def name_queue(rig: Rig, queue: str) -> None:
    rig.cache.set_namespace(Namespace("default", {}, {QUEUE_ANNOTATION: queue} if queue else {}))


def alone(rig: Rig, queue: str = "") -> None:
    """The pod ``a``, with a place on ``n``."""
    annotations = {QUEUE_ANNOTATION: queue} if queue else {}
    rig.cache.set_pod(make_pod("a", annotations=annotations), now=rig.now)
    assert rig.cache.reservations.move(rig.uid("a"), NodeName("n"), now=rig.now)


@pytest.mark.parametrize(
    ("named", "queue"), [("", "small"), ("default", "small"), ("other", "other")]
)
def test_what_the_pod_names_goes_before_it_unless_that_is_the_default(
    rig: Rig, named: str, queue: str
) -> None:
    alone(rig, named)
    assert rig.cache.groups[rig.member("a").group].queue == queue
    assert rig.cache.registry.usage()[QueueName(queue)].allocated.any()


def test_a_pod_keeps_its_place_in_the_pod_group_that_admission_puts_there(rig: Rig) -> None:
    alone(rig)
    rig.see(min_member=1, queue=SMALL)
    rig.cache.set_pod(make_pod("a", annotations={GROUP_ANNOTATION: "g"}), now=rig.now)
    assert rig.where("a") == [(Stage.PLANNED, "n")]


@pytest.mark.parametrize("queue", ["another", ""])
def test_places_are_given_back_when_the_namespace_gets_another_queue(rig: Rig, queue: str) -> None:
    alone(rig)
    name_queue(rig, queue)
    assert rig.where("a") == [(Stage.WAITING, "")]
    assert rig.lost() == [("a", "namespace got another queue")]
    assert SMALL not in rig.cache.registry.usage()


def test_it_is_forgotten_with_the_namespace(rig: Rig) -> None:
    alone(rig)
    rig.cache.drop_namespace("default")
    assert rig.where("a") == [(Stage.WAITING, "")]
    assert SMALL not in rig.cache.registry.usage()


@pytest.mark.parametrize("named", ["", "default"])
def test_a_pod_waits_for_its_namespace_which_the_watch_may_show_later(rig: Rig, named: str) -> None:
    rig.cache.drop_namespace("default")
    rig.cache.set_pod(make_pod("a", annotations={QUEUE_ANNOTATION: named}), now=rig.now)
    key = rig.member("a").group
    assert not rig.cache.groups[key].known
    assert key not in rig.cache.registry.pending
    name_queue(rig, SMALL)
    assert rig.cache.groups[key].queue == SMALL
    assert key in rig.cache.registry.pending


def test_a_pod_that_names_a_queue_needs_no_namespace(rig: Rig) -> None:
    rig.cache.drop_namespace("default")
    alone(rig, "other")
    assert rig.where("a") == [(Stage.PLANNED, "n")]


def test_whoever_names_a_queue_keeps_the_place(rig: Rig) -> None:
    alone(rig, "other")
    name_queue(rig, "another")
    assert rig.where("a") == [(Stage.PLANNED, "n")]


def test_groups_elsewhere_are_not_looked_at(rig: Rig) -> None:
    """There are thousands of both when the extender starts."""
    alone(rig)
    rig.cache.set_pod(make_pod("b", namespace="late"), now=rig.now)
    rig.cache.registry.groups = Unwalkable(rig.cache.groups)
    rig.cache.set_namespace(Namespace("late", {}, {QUEUE_ANNOTATION: "other"}))
    assert rig.cache.groups[rig.member("b").group].queue == "other"
