"""A slow server keeps its answers about groups and queues fresh, and all groups have turns."""

import pytest

from app.model.http_extender import Verb
from app.model.pod import GATE
from app.model.workload import PriorityClass
from app.service.intake.http_extender import follower
from tests.builders import make_shape
from tests.service.intake.http_extender.judging import JudgedRig, advance, conf


async def test_a_server_that_takes_long_for_many_groups_refuses_no_queue_by_that() -> None:
    rig = JudgedRig(conf(Verb.OVERUSED, Verb.PREDICATE, httpTimeout="20s"))
    rig.judge.takes_s = 9.0
    rig.judge.says(Verb.OVERUSED, {"overused": False})
    rig.judge.says(Verb.PREDICATE, {"code": 2, "status": "too warm"})
    rig.node("n1", "n2", cpu=8000)
    for number in range(12):
        rig.gang(f"g{number:02}", size=1, gated=True, shape=make_shape(cpu=100 + number))
    with rig.at_work():
        await advance(75)
        assert len(rig.judge.nodes()) < 24  # the first round is not over before that
        assert not any("used up" in rig.why(key.partition("/")[2]) for key in rig.refusals)
        facts = rig.cache.http_extender
        assert all(a.fresh(rig.clock()) is False for a in facts.overused.values())
    assert len(rig.judge.asked[Verb.OVERUSED]) in range(3, 5)


async def test_a_queue_keeps_its_answer_while_very_many_groups_are_voted_on() -> None:
    rig = JudgedRig(conf(Verb.OVERUSED, Verb.READY, httpTimeout="20s"))
    rig.judge.takes_s = 14.0
    rig.judge.says(Verb.OVERUSED, {"overused": False})
    rig.judge.says(Verb.READY, {"status": False})
    rig.node("n1", cpu=8000)
    for number in range(80):
        rig.pod(f"p{number}")
    with rig.at_work():
        await advance(76)
        assert len(rig.judge.asked[Verb.READY]) <= 80  # none for the second time
        [queue] = rig.cache.http_extender.overused.values()
        assert queue.fresh(rig.clock()) is False


async def test_a_vote_is_asked_for_again_while_nodes_are_asked_about() -> None:
    rig = JudgedRig(conf(Verb.READY, Verb.PREDICATE, httpTimeout="20s"))
    rig.judge.takes_s = 9.0
    rig.judge.says(Verb.READY, {"status": True})
    rig.judge.says(Verb.PREDICATE, {"code": 2, "status": "too warm"})
    rig.node("n1", cpu=8000)
    for number in range(12):
        rig.gang(f"g{number:02}", size=1, gated=True, shape=make_shape(cpu=100 + number))
    with rig.at_work():
        await advance(75)
        facts = rig.cache.http_extender
        assert all(a.fresh(rig.clock()) for a in facts.ready.values())
        assert not any("the group is not ready" in rig.why(f"g{n:02}") for n in range(12))


async def test_so_many_groups_are_asked_about_at_most_and_each_has_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follower, "MOST_SUBJECTS", 4)
    rig = JudgedRig(conf(Verb.PREDICATE))
    rig.judge.says(Verb.PREDICATE, {"code": 2, "status": "too warm"})
    rig.node("n1", cpu=8000)
    for number in range(11):
        rig.gang(f"g{number:02}", size=1, gated=True)
    most = 0
    with rig.at_work():
        for _ in range(25):
            await advance(1)
            most = max(most, len(rig.cache.http_extender.nodes))
    asked = {each["task"]["Name"] for each in rig.judge.asked[Verb.PREDICATE]}
    assert most == 4
    assert len(asked) == 11


async def test_a_new_group_waits_for_the_turn_of_few_others_before_it_is_asked_about() -> None:
    rig = JudgedRig(conf(Verb.PREDICATE, httpTimeout="20s"))
    rig.judge.takes_s = 5.0
    rig.judge.says(Verb.PREDICATE, {"code": 2, "status": "too warm"})
    rig.node("n1", cpu=8000)
    for number in range(16):
        rig.gang(f"g{number:02}", size=1, gated=True, shape=make_shape(cpu=8000 - number))
    with rig.at_work():
        await advance(12)
        rig.see("priorityclasses", PriorityClass("urgent", 10))
        rig.group("urgent", minimum=1, priority_class="urgent")
        rig.pod("urgent", group="urgent", priority=10, gates=(GATE,), shape=make_shape(cpu=100))
        await advance(follower.ROUND_S + 15)
        asked = [each["task"]["Name"] for each in rig.judge.asked[Verb.PREDICATE]]
        assert "urgent" in asked
        assert len(asked) < 12
