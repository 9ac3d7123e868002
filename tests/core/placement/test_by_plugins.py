"""What plugins say of nodes: rules and scores that know the gang."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.placement import by_plugins
from app.core.policy import NodeRule, NodeScore, NodesNow, Scoring
from app.model.gang import Gang, Task
from app.model.ids import NodeName, QueueName
from app.model.resources import CPU_COLUMN, Mask, Scores
from tests.builders import GIB, make_gang, make_node, make_shape
from tests.core.placement.rigs import Rig
from tests.scale import examples

NODES = tuple(make_node(f"n{i}", cpu=4000, memory=64 * GIB) for i in range(4))
ODD_ONLY = "node(s) were of another queue"


def of_queue(gang: Gang, _task: Task) -> QueueName:
    return gang.queue


def odd_rows(gang: Gang, _task: Task, nodes: NodesNow) -> Mask:
    return np.asarray(nodes.rows % 2 == (gang.queue == "odd"), dtype=np.bool_)


def later_rows(_gang: Gang, _task: Task, nodes: NodesNow) -> Scores:
    return nodes.rows.astype(np.float64)


QUEUES = NodeRule(ODD_ONLY, of_queue, odd_rows)
LATER = NodeScore(of_queue, later_rows)
ODD, EVEN = make_gang("o", queue=QueueName("odd")), make_gang("e", queue=QueueName("even"))


def test_a_rule_knows_the_queue_of_the_gang() -> None:
    rig = Rig(NODES, node_rules=(QUEUES,))
    task = rig.task()
    assert (rig.placer.find(EVEN, task), rig.placer.find(ODD, task)) == (0, 1)
    assert rig.placer.feasible(ODD, task).tolist() == [False, True, False, True]
    assert rig.placer.fits(ODD, task, 1)
    assert not rig.placer.fits(ODD, task, 2)


def test_a_pinned_task_obeys_it_too() -> None:
    rig = Rig(NODES, node_rules=(QUEUES,))
    pinned = rig.task(pinned=NodeName("n1"))
    assert rig.placer.find(ODD, pinned) == 1
    assert rig.placer.find(EVEN, pinned) is None


def test_a_refusal_counts_the_nodes_that_a_rule_forbids() -> None:
    rig = Rig(NODES, node_rules=(QUEUES,))
    rig.put(make_shape(cpu=4000), "n1")
    rig.put(make_shape(cpu=4000), "n3")
    refusal = rig.placer.explain(ODD, rig.task())
    assert {n.text: n.nodes for n in refusal.nodes} == {ODD_ONLY: 2, "Insufficient cpu": 2}


def test_a_score_is_added_to_the_others() -> None:
    rig = Rig(NODES, scoring=Scoring(binpack_weight=1, binpack={"cpu": 1}), node_scores=(LATER,))
    alone = Rig(NODES, scoring=Scoring(binpack_weight=1, binpack={"cpu": 1}))
    assert rig.scores() == [score + row for row, score in enumerate(alone.scores())]
    assert rig.find() == "n3"


def test_a_plugin_without_a_key_for_a_task_has_no_say() -> None:
    rule = NodeRule(ODD_ONLY, lambda *_: None, odd_rows)
    score = NodeScore(lambda *_: None, later_rows)
    rig = Rig(NODES, node_rules=(rule,), node_scores=(score,))
    assert rig.find() == "n0"
    assert rig.scores() == [0.0] * 4


def test_equal_keys_are_asked_once_and_then_for_touched_nodes_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(by_plugins, "FEW", 1)
    asked: list[list[int]] = []

    def noted(gang: Gang, task: Task, nodes: NodesNow) -> Scores:
        asked.append(nodes.rows.tolist())
        return later_rows(gang, task, nodes)

    rig = Rig(NODES, node_scores=(NodeScore(of_queue, noted),))
    rig.placer.find(ODD, rig.task())
    rig.placer.find(ODD, rig.task())
    rig.put(None, "n2")
    rig.placer.find(ODD, rig.task())
    rig.placer.find(EVEN, rig.task())
    assert asked == [[0, 1, 2, 3], [2], [0, 1, 2, 3]]


def cpu_left(_gang: Gang, _task: Task, nodes: NodesNow) -> Scores:
    left: Scores = nodes.free[CPU_COLUMN] / 3.0
    return left


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 39), st.booleans()), max_size=60))
def test_followed_answers_equal_answers_from_scratch(steps: list[tuple[int, bool]]) -> None:
    nodes = tuple(make_node(f"n{i:02}", cpu=90_000, memory=64 * GIB) for i in range(40))
    scores = (NodeScore(of_queue, cpu_left),)
    rig = Rig(nodes, node_scores=scores)
    task = rig.task(make_shape(cpu=700))
    for row, keeps in steps:
        rig.placer.find(rig.gang, task)
        with rig.ledger.trial() as trial:
            rig.ledger.place(rig.gang, task, node=row)
            if keeps:
                trial.keep()
    expected = rig.ledger.idle[:, CPU_COLUMN] / 3.0
    assert rig.placer.ranked(rig.gang, task).tolist() == expected.tolist()
