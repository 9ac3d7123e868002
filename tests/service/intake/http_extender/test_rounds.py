"""A slow server keeps its answers about groups and queues fresh, and many groups have their turn."""

import pytest

from app.model.http_extender import Verb
from app.service.intake.http_extender import follower
from tests.builders import make_shape
from tests.service.intake.http_extender.judging import Json, JudgedRig, advance, conf

YES: Json = {"code": 0}


async def test_a_server_that_takes_long_for_many_groups_refuses_no_queue_by_that() -> None:
    rig = JudgedRig(conf(Verb.OVERUSED, Verb.PREDICATE))
    rig.judge.takes_s = 0.9
    rig.judge.says(Verb.OVERUSED, {"overused": False})
    rig.judge.says(Verb.PREDICATE, {"code": 2, "status": "too warm"})
    rig.node("n1", "n2", cpu=8000)
    for number in range(90):
        rig.gang(f"g{number:02}", size=1, gated=True, shape=make_shape(cpu=100 + number))
    with rig.at_work():
        await advance(75)
        assert len(rig.judge.nodes()) > 100  # the first round is not over before that
        rig.judge.says(Verb.PREDICATE, YES)
        await advance(3)
        assert not any("used up" in rig.why(key.partition("/")[2]) for key in rig.refusals)
    assert len(rig.judge.asked[Verb.OVERUSED]) in range(3, 6)


async def test_a_queue_keeps_its_answer_while_very_many_groups_are_voted_on() -> None:
    rig = JudgedRig(conf(Verb.OVERUSED, Verb.READY))
    rig.judge.takes_s = 0.9
    rig.judge.says(Verb.OVERUSED, {"overused": False})
    rig.judge.says(Verb.READY, {"status": False})
    rig.node("n1", cpu=8000)
    for number in range(300):
        rig.pod(f"p{number}")
    with rig.at_work():
        await advance(70)
    assert len(rig.judge.asked[Verb.READY]) < 1400
    assert len(rig.judge.asked[Verb.OVERUSED]) == 4


async def test_a_vote_is_asked_for_again_while_nodes_are_asked_about() -> None:
    rig = JudgedRig(conf(Verb.READY, Verb.PREDICATE))
    rig.judge.takes_s = 0.9
    rig.judge.says(Verb.READY, {"status": True})
    rig.judge.says(Verb.PREDICATE, {"code": 2, "status": "too warm"})
    rig.node("n1", cpu=8000)
    for number in range(90):
        rig.gang(f"g{number:02}", size=1, gated=True, shape=make_shape(cpu=100 + number))
    with rig.at_work():
        await advance(75)
        first = [each for each in rig.judge.asked[Verb.READY] if each["job"]["Name"] == "g00"]
        assert len(first) >= 3
        assert not any("the group is not ready" in rig.why(f"g{n:02}") for n in range(90))


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
        for _ in range(40):
            await advance(1)
            most = max(most, len(rig.cache.http_extender.nodes))
    asked = {each["task"]["Name"] for each in rig.judge.asked[Verb.PREDICATE]}
    assert most == 4
    assert len(asked) == 11
