"""The nodes that the HTTP extender is asked about are those that can help the group."""

import pytest

from app.model.http_extender import Verb
from app.model.node import Taint
from app.model.shape import LabelSelector, Operator, PodTerm, Requirement, Toleration
from app.model.workload import QueueState
from app.service.intake.http_extender.nodes import ENOUGH
from tests.builders import make_queue, make_shape
from tests.service.intake.http_extender.judging import Json, JudgedRig, advance, conf

YES: Json = {"code": 0}
POOL_B = make_shape(cpu=1000, node_selector=(("pool", "b"),))
FRIENDS = LabelSelector((Requirement("app", Operator.IN, ("friend",)),))
BESIDE_FRIEND = make_shape(cpu=1000, pod_affinity=(PodTerm("pool", FRIENDS, ("default",)),))
ANYWHERE = make_shape(cpu=1000, tolerations=(Toleration(exists=True),))
TAINT = Taint("pool", "a", "NoSchedule")


def pools(rig: JudgedRig, *, taints: tuple[Taint, ...] = ()) -> None:
    """Two hundred nodes ``a*``, and ten ``b*`` after them."""
    rig.judge.says(Verb.PREDICATE, YES)
    rig.node(
        *(f"a{number:03}" for number in range(2 * ENOUGH)),
        cpu=8000,
        labels={"pool": "a"},
        taints=taints,
    )
    rig.node(*(f"b{number}" for number in range(10)), cpu=8000, labels={"pool": "b"})


async def test_a_gang_is_asked_about_the_nodes_that_its_selector_names_only() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    pools(rig)
    members = rig.gang("g", size=2, gated=True, shape=POOL_B)
    with rig.at_work():
        await advance(2)
        assert set(rig.places(*members)) == {"b0"}
    assert {name[0] for name in rig.judge.nodes()} == {"b"}


async def test_a_gang_is_not_asked_about_nodes_whose_taints_it_does_not_tolerate() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    pools(rig, taints=(TAINT,))
    members = rig.gang("g", size=2, gated=True)
    with rig.at_work():
        await advance(2)
        assert set(rig.places(*members)) == {"b0"}
    assert {name[0] for name in rig.judge.nodes()} == {"b"}


async def test_more_nodes_are_asked_about_where_the_allowed_ones_give_the_gang_no_place() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    pools(rig)
    rig.pod("friend", node="b3", phase="Running", labels={"app": "friend"})
    members = rig.gang("g", size=1, gated=True, shape=BESIDE_FRIEND)
    with rig.at_work():
        await advance(15)
        assert rig.places(*members) == ["b0"]


async def test_answers_that_are_old_are_not_renewed_before_other_nodes_had_their_turn() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE, httpTimeout="60s"))
    pools(rig)
    rig.judge.takes_s = 4.0
    rig.pod("friend", node="b3", phase="Running", labels={"app": "friend"})
    members = rig.gang("g", size=1, gated=True, shape=BESIDE_FRIEND)
    with rig.at_work():
        await advance(75)
        assert rig.places(*members) == ["b0"]


async def test_no_more_nodes_are_asked_about_for_a_gang_that_its_queue_keeps_waiting() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    rig.queue(make_queue("default", state=QueueState.CLOSED))
    pools(rig)
    rig.gang("g", size=1, gated=True)
    with rig.at_work():
        await advance(15)
        assert "queue" in rig.why("g")
    assert len(set(rig.judge.nodes())) <= ENOUGH + 16


async def test_a_gang_that_bears_cordons_is_asked_about_cordoned_nodes() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    rig.judge.says(Verb.PREDICATE, YES)
    rig.node("n1", cpu=8000, unschedulable=True)
    rig.gang("g", size=1, gated=True)
    rig.gang("bears", size=1, gated=True, shape=ANYWHERE)
    with rig.at_work():
        await advance(2)
        assert rig.places("g-0", "bears-0") == ["", "n1"]
    assert {each["task"]["Name"] for each in rig.judge.asked[Verb.PREDICATE]} == {"bears-0"}


@pytest.mark.parametrize(("switched", "asked"), [("true", {"b"}), ("false", {"a"})])
async def test_a_rule_that_is_switched_off_leaves_no_node_out(
    switched: str, asked: set[str]
) -> None:
    rig = JudgedRig(
        conf(Verb.PREDICATE).replace(
            "- name: predicates",
            f"- name: predicates\n    arguments: {{predicate.NodeAffinityEnable: '{switched}'}}",
        )
    )
    pools(rig)
    rig.gang("g", size=1, gated=True, shape=POOL_B)
    with rig.at_work():
        await advance(0.5)
    assert {name[0] for name in rig.judge.nodes()} == asked


async def test_a_pod_with_rules_about_other_pods_leaves_the_answers_of_others_as_they_are() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE))
    rig.judge.says(Verb.PREDICATE, YES)
    rig.node("n1", cpu=8000, labels={"pool": "a"})
    rig.pod("friend", node="n1", phase="Running", labels={"app": "friend"})
    rig.pod("close", shape=BESIDE_FRIEND)
    members = rig.gang("g", size=2, gated=True)
    with rig.at_work():
        await advance(2)
        assert rig.places("close", *members) == ["n1"] * 3
