"""What plugins say of a gang binds the actions: valid, ready, allocatable."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.core.actions import lineage
from app.core.actions.allocate import allocate
from app.core.actions.cycle import Cycle
from app.core.actions.lower_gangs import LowerGangs
from app.core.ledger import Ledger
from app.core.placement.engine import Placer
from app.core.policy import NodeRule, NodesNow
from app.core.tiers import open_policies
from app.model.gang import Counts, Gang, Task
from app.model.ids import QueueName
from app.model.parts import Policies, SubGroupPolicy
from app.model.reason import Cause, Refusal
from app.model.resources import Mask
from app.model.workload import GroupPhase
from tests.builders import make_gang, make_snapshot
from tests.core.actions.rigs import Outcome, cores, gang_of, members, policies

PAIRS = (SubGroupPolicy("pair", keys=("pair",), size=2),)


def allocated(*gangs: Gang, cpu: int = 20, **hooks: Any) -> Outcome:
    """``allocate`` with some answers of the plugins replaced."""
    snapshot = make_snapshot(nodes=cores(cpu), gangs=gangs)
    by, ledger = policies(), Ledger(snapshot)
    opened = open_policies(by, ledger, now=0.0)
    vars(opened).update(borrows=False, **hooks)
    finder = Placer(
        ledger,
        predicates=opened.predicates,
        scoring=opened.scoring,
        node_rules=opened.node_rules,
    )
    cycle = Cycle(
        snapshot=snapshot,
        pending=snapshot.pending,
        actions=by.conf.actions,
        now=0.0,
        ledger=ledger,
        opened=opened,
        finder=finder,
        open_ahead=lambda: finder,
        begun={},
        line=lineage.lines(ledger, by.conf),
        holders=None,
    )
    for _ in allocate(cycle, LowerGangs(cycle)):
        pass
    placed = sum(len(decided.placements) for decided in cycle.plan().placed)
    assert len(ledger.journal) == placed
    return Outcome(cycle.plan())


def test_a_gang_that_is_not_valid_is_not_tried() -> None:
    no = Refusal(Cause.NOT_ENOUGH_TASKS, where="default/g", detail="not now")
    outcome = allocated(
        gang_of("g", 2), gang_of("h", 2), gang_valid=lambda gang: no if gang.name == "g" else None
    )
    assert outcome.order == ["h"]
    assert outcome.refusal("g") is no


def test_groups_that_lack_members_take_no_turns() -> None:
    asked: list[QueueName] = []
    empty = make_gang("g", min_member=3, counts=Counts(), phase=GroupPhase.INQUEUE)
    outcome = allocated(empty, overused=asked.append)
    assert outcome.refusal("g").cause is Cause.NOT_ENOUGH_TASKS
    assert asked == []


@pytest.mark.parametrize("policies", [(), PAIRS], ids=["whole", "in pairs"])
def test_a_gang_that_no_plugin_calls_ready_is_kept_back_whole(policies: Policies) -> None:
    gang = replace(gang_of("g", 2), sub_groups=policies)
    outcome = allocated(gang, gang_ready=lambda _: False)
    assert outcome.order == []
    assert outcome.text("g") == "a plugin does not call the group ready"


@pytest.mark.parametrize("policies", [(), PAIRS], ids=["whole", "in pairs"])
def test_one_that_has_its_minimum_and_is_kept_back_lacks_nobody(policies: Policies) -> None:
    gang = replace(gang_of("g", 2), sub_groups=policies, min_member=0)
    outcome = allocated(gang, gang_ready=lambda _: False)
    assert outcome.refusal("g").lacking == 0


def test_one_gang_that_is_kept_back_says_nothing_of_equal_ones() -> None:
    gangs = gang_of("g", 2), gang_of("h", 3, created=1.0)
    outcome = allocated(*gangs, gang_ready=lambda gang: gang.name == "h")
    assert outcome.order == ["h"]


def test_one_gang_that_a_rule_keeps_off_all_nodes_says_nothing_of_equal_ones() -> None:
    def allows(gang: Gang, _task: Task, nodes: NodesNow) -> Mask:
        return np.full(len(nodes.rows), gang.name == "h")

    rule = NodeRule("node(s) were not for it", lambda gang, _task: gang.key, allows)
    first, equal = gang_of("g", 2), gang_of("h", 2, created=1.0)
    shape = first.waiting[0].shape
    first, equal = (
        replace(gang, waiting=tuple(replace(task, shape=shape) for task in gang.waiting))
        for gang in (first, equal)
    )
    outcome = allocated(first, equal, node_rules=[rule])
    assert outcome.order == ["h"]
    assert outcome.refusal("g").cause is Cause.NO_NODE_FITS


def test_a_plugin_may_ask_for_more_than_the_minimum() -> None:
    gang = replace(gang_of("g", 4), min_member=2)
    asked: list[int] = []

    def ready(_gang: Gang) -> bool:
        asked.append(1)
        return len(asked) >= 3

    outcome = allocated(gang, gang_ready=ready)
    assert outcome.decisions("g")[0].whole
    assert len(outcome.members("g")) == 4


def test_a_member_that_its_queue_may_not_have_stops_its_equals_alone() -> None:
    no = Refusal(Cause.QUEUE_QUOTA, where="default")
    big = members("g", 2, cpu=5, role="big")
    gang = replace(gang_of("g", 4), waiting=big + members("g", 2, role="small"), min_member=2)
    outcome = allocated(gang, allocatable=lambda _queue, task: no if task.role == "big" else None)
    assert set(outcome.members("g")) == {"g-small-0", "g-small-1"}
    assert outcome.refusal("g") is no
