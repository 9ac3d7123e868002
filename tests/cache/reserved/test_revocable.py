"""What can be taken back of reservations, together or one by one, and when to look at that."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.cache.gangs.members import Answer, Stage
from app.cache.reserved.revocable import revocable
from app.model.ids import NodeName, QueueName
from app.model.plan import Revocable
from app.model.pod import GROUP_ANNOTATION, QUEUE_ANNOTATION
from app.model.resources import CPU_COLUMN
from app.model.workload import Namespace
from tests.builders import make_amounts, make_node, make_pod, make_queue, make_shape
from tests.cache.rig import KEY, OTHER, Rig


@pytest.fixture
def rig() -> Rig:
    """The node ``n`` has room for many."""
    rig = Rig()
    rig.cache.set_node(make_node("n", cpu=32_000))
    return rig


def found(rig: Rig) -> list[Revocable]:
    return list(revocable(rig.cache.groups.values(), vector=rig.cache.node_usage.vector))


def told(rig: Rig) -> list[tuple[tuple[str, ...], int, bool]]:
    """Holders, what they take of cpu, and whether that is the whole gang."""
    return [
        (tuple(h.removeprefix("uid-") for h in r.holders), int(r.request[CPU_COLUMN]), r.whole)
        for r in found(rig)
    ]


def test_a_gang_that_has_not_begun_stands_or_falls_together(rig: Rig) -> None:
    rig.see(min_member=3)
    for name in ("a", "b"):
        rig.pod(name)
    rig.place(a="n")
    rig.slot("n", shape=make_shape(cpu=2000))
    rig.now += 5
    rig.stage("b", Stage.ASSUMED)
    [whole] = found(rig)
    assert told(rig) == [((f"{KEY}#1", "a", "b"), 4000, True)]
    assert whole.since == 100.0


def test_nothing_of_a_gang_that_is_being_bound_can_be_taken_back(rig: Rig) -> None:
    for name in ("a", "b", "c"):
        rig.pod(name)
    rig.place(a="n", c="n")
    rig.stage("b", Stage.BINDING)
    assert told(rig) == []
    rig.cache.bind_steps.answered(rig.uid("b"), Answer.YES)
    assert told(rig) == []


def test_those_beyond_a_minimum_that_is_on_its_way_stand_alone(rig: Rig) -> None:
    for name in ("a", "b", "c", "d"):
        rig.pod(name)
    rig.stage("a", Stage.BINDING)
    rig.pod("b", node=NodeName("n"), phase="Running")
    rig.place(c="n")
    rig.stage("d", Stage.ASSUMED)
    assert told(rig) == [(("c",), 1000, False), (("d",), 1000, False)]


def test_one_that_its_minimum_counts_on_does_not(rig: Rig) -> None:
    rig.pod("a", node=NodeName("n"), phase="Running")
    rig.pod("b")
    rig.stage("b", Stage.ASSUMED)
    assert told(rig) == []


def test_who_has_no_place_or_a_node_has_nothing_to_give(rig: Rig) -> None:
    rig.pod("a")
    rig.pod("b", node=NodeName("n"), phase="Running")
    assert told(rig) == []


def test_what_is_taken_back_is_free_and_told(rig: Rig) -> None:
    rig.see(min_member=3)
    rig.pod("a")
    rig.pod("b")
    rig.stage("a", Stage.ASSUMED)
    rig.stage("b", Stage.BINDING)
    rig.slot("n")
    rig.cache.reservations.take_back(["uid-a", "uid-b", f"{KEY}#1", "uid-gone"], why="why")
    assert rig.where("a", "b") == [(Stage.WAITING, ""), (Stage.BINDING, "n")]
    assert rig.slots() == []
    assert rig.lost() == [("a", "why")]


# --- when to look ---------------------------------------------------------------------------------

Event = Callable[[Rig], Any]

LIMIT = make_amounts(cpu=1000)


def a_limit_changes(rig: Rig) -> None:
    rig.cache.set_queue(make_queue("q", capability=LIMIT))


def a_status_is_written(rig: Rig) -> None:
    rig.cache.set_queue(make_queue("q", allocated=LIMIT))


def a_pod_is_there_on_a_node(rig: Rig) -> None:
    rig.pod("new", node=NodeName("n"))


def a_pod_comes(rig: Rig) -> None:
    rig.pod("new")


def others_come(rig: Rig) -> None:
    rig.cache.set_pod(make_pod("new", scheduler=OTHER, node=NodeName("n")), now=rig.now)


def somebody_binds_a_pod(rig: Rig) -> None:
    rig.pod("waits", node=NodeName("n"))


def our_binding_shows(rig: Rig) -> None:
    rig.pod("planned", node=NodeName("n"))


def a_pod_grows(rig: Rig) -> None:
    rig.pod("runs", node=NodeName("n"), phase="Running", shape=make_shape(cpu=1500))


def a_pod_ends(rig: Rig) -> None:
    rig.pod("runs", node=NodeName("n"), phase="Succeeded")


def the_group_moves(rig: Rig) -> None:
    rig.see(queue=QueueName("q"))


def the_group_goes(rig: Rig) -> None:
    rig.see(queue=QueueName("q"))
    rig.cache.signals.overfull = False
    rig.cache.drop_group(KEY)


def the_last_pod_is_gone_that_left_after_its_group(rig: Rig) -> None:
    rig.see(queue=QueueName("q"))
    rig.pod("leaves", node=NodeName("n"), phase="Running", deleting=True)
    rig.cache.drop_group(KEY)
    assert rig.cache.groups[KEY].queue == "q"
    rig.cache.signals.overfull = False
    rig.cache.drop_pod(rig.uid("leaves"))
    assert rig.cache.groups[KEY].queue == "default"


def the_namespace_names_a_queue(rig: Rig) -> None:
    rig.cache.set_namespace(Namespace("default", {}, {QUEUE_ANNOTATION: "q"}))


def a_pod_moves_to_a_group_of_its_queue(rig: Rig) -> None:
    rig.cache.set_pod(alone(rig, group="g"), now=rig.now)


def a_pod_moves_to_another_queue(rig: Rig) -> None:
    rig.see(queue=QueueName("q"))
    rig.cache.signals.overfull = False
    rig.cache.set_pod(alone(rig, group="g"), now=rig.now)


def alone(rig: Rig, group: str = "") -> Any:
    pod = rig.member("alone").pod
    return replace(pod, annotations={GROUP_ANNOTATION: group})


def a_place_is_reserved(rig: Rig) -> None:
    assert rig.place(waits="n")


def a_held_call_ends(rig: Rig) -> None:
    rig.cache.bind_steps.assume(rig.uid("planned"), now=rig.now)
    rig.cache.bind_steps.unassume(rig.uid("planned"), now=rig.now)


def a_binding_fails(rig: Rig) -> None:
    rig.cache.bind_steps.assume(rig.uid("planned"), now=rig.now)
    rig.cache.bind_steps.binding(rig.uid("planned"), now=rig.now)
    rig.cache.bind_steps.unassume(rig.uid("planned"), now=rig.now)


@pytest.mark.parametrize(
    ("happens", "look"),
    [
        (a_limit_changes, True),
        (a_status_is_written, False),
        (a_pod_is_there_on_a_node, True),
        (a_pod_comes, False),
        (others_come, False),
        (somebody_binds_a_pod, True),
        (our_binding_shows, False),
        (a_pod_grows, True),
        (a_pod_ends, False),
        (the_group_moves, True),
        (the_group_goes, True),
        (the_last_pod_is_gone_that_left_after_its_group, True),
        (the_namespace_names_a_queue, True),
        (a_pod_moves_to_a_group_of_its_queue, False),
        (a_pod_moves_to_another_queue, True),
        (a_place_is_reserved, False),
        (a_held_call_ends, False),
        (a_binding_fails, True),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_queue_may_hold_too_much_when(rig: Rig, happens: Event, look: bool) -> None:
    rig.cache.set_queue(make_queue("q"))
    rig.cache.set_pod(make_pod("alone", node=NodeName("n"), phase="Running"), now=rig.now)
    rig.pod("runs", node=NodeName("n"), phase="Running")
    rig.pod("waits")
    rig.pod("planned")
    assert rig.place(planned="n")
    rig.cache.signals.overfull = False
    happens(rig)
    assert rig.cache.signals.overfull is look
