"""What becomes of a Binding that is under way, and who may count on it meanwhile."""

import pytest

from app.cache.gangs.members import Answer, Stage
from app.model.ids import NodeName
from tests.builders import make_pod
from tests.cache.rig import KEY, OTHER, Rig


def test_bindings_under_way_become_void_only_if_giving_others_back_is_not_enough() -> None:
    rig = Rig()
    for name in "ab":
        rig.pod(name)
    rig.stage("a", Stage.PLANNED)
    rig.now += 1
    rig.stage("b", Stage.BINDING)
    for number, arrived in ((1, 1), (2, 0)):
        taker = make_pod(f"x{number}", scheduler=OTHER, node=NodeName("n"))
        rig.cache.set_pod(taker, now=rig.now)
        assert rig.where("a", "b") == [(Stage.WAITING, ""), (Stage.BINDING, "n")]
        assert rig.cache.groups[KEY].counted.arrivals.at_bind.total() == arrived


def test_a_binding_that_was_taken_counts_and_stays_whatever_else_is_said() -> None:
    rig = Rig()
    rig.pod("a")
    rig.stage("a", Stage.BINDING)
    rig.cache.drop_node(NodeName("n"))
    group = rig.cache.groups[KEY]
    assert (group.counted.arrivals.at_bind.total(), group.counted.arrivals.unanswered) == (0, 1)
    for answer in (Answer.YES, Answer.NO):
        rig.cache.bind_steps.answered(rig.uid("a"), answer)
        assert (group.counted.arrivals.at_bind.total(), group.counted.arrivals.unanswered) == (1, 0)
        assert group.counted.arrivals.accepted.total() == 1
    rig.cache.bind_steps.unassume(rig.uid("a"), now=rig.now)
    assert rig.where("a") == [(Stage.BINDING, "n")]


@pytest.mark.parametrize("answer", [Answer.OPEN, Answer.NO])
def test_room_is_kept_where_a_pod_may_be_whose_answer_was_lost(answer: Answer) -> None:
    """The API server may have taken it, and its PodGroup is gone: nothing else would keep it."""
    rig = Rig()
    rig.pod("a")
    rig.stage("a", Stage.BINDING)
    rig.cache.bind_steps.sent(rig.uid("a"))
    rig.cache.bind_steps.answered(rig.uid("a"), answer)
    rig.cache.drop_group(KEY)
    rig.cache.bind_steps.unassume(rig.uid("a"), now=rig.now)
    lost = answer is Answer.OPEN
    assert rig.where("a") == ([(Stage.PLANNED, "n")] if lost else [(Stage.WAITING, "")])
    assert rig.used("n") == (1000 if lost else 0)
