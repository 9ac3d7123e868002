"""Plugins and code that fail at one group, at one queue, or when they open: the rest goes on."""

from collections.abc import Callable
from dataclasses import fields, replace
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from app.core.confirm import confirmed
from app.core.faults import (
    MOST_FAULTS,
    LookingAt,
    Planned,
    PlanningFault,
    Upkeep,
    UpkeepFault,
    doing,
)
from app.core.ledger import Ledger
from app.core.planner import finish, plan, plan_around_faults, plan_gang
from app.core.plugins.catalogue import PLUGINS, PREFERENCES
from app.core.policy import ABSTAIN, Hooks, NodeRule, NodeScore, Policies, Session
from app.core.victim_rules import EvictionRule, RevokedPods, VictimTasks
from app.model.conf import PluginConf
from app.model.exchange import ANY_EQUAL
from app.model.gang import Gang
from app.model.ids import QueueName, group_key
from app.model.reason import Cause
from app.model.snapshot import Snapshot
from app.model.topology import HyperNode
from app.model.workload import EVICT_OVER_CAPABILITY, GroupPhase
from tests.builders import make_gang, make_queue, make_snapshot, make_table
from tests.core.actions.rigs import Outcome, cores, gang_of, members, policies, vector
from tests.core.contended import running_gang
from tests.running import make_running
from tests.topology import hard, make_domains, node_names

BAD, GOOD = group_key("default", "bad"), group_key("default", "good")
BY = policies(
    (("priority", "gang", "conformance"), ("overcommit", "predicates", "proportion", "nodeorder")),
    ("enqueue", "allocate", "preempt", "reclaim", "backfill"),
)
QUEUES = tuple(make_queue(name) for name in ("bad", "good", "full", "fuller"))


def is_bad(argument: object) -> bool:
    """Whether the argument is the bad gang, its queue, or a preemptor of it."""
    key = getattr(getattr(argument, "gang", argument), "key", None)
    return key == BAD or (isinstance(argument, str) and argument == "bad")


def fails_or(answer: Any) -> Callable[..., Any]:
    """A hook that fails at the bad gang, and says ``answer`` otherwise."""

    def hook(*arguments: object) -> Any:
        if any(map(is_bad, arguments)):
            raise KeyError("a bug")
        return answer

    return hook


def fails(*_: object) -> Any:
    """A hook that is asked about no gang, and fails."""
    raise KeyError("a bug")


def yes(_gang: object, _task: object, nodes: Any) -> Any:
    """Every node is allowed."""
    return np.ones(len(nodes.rows), dtype=bool)


def even(_gang: object, _task: object, nodes: Any) -> Any:
    """Every node is as good."""
    return np.zeros(len(nodes.rows))


BROKEN: dict[str, Any] = {
    "gang_order": fails_or(0),
    "task_order": fails_or(None),
    "queue_order": fails_or(0),
    "gang_valid": fails_or(None),
    "enqueueable": fails_or(ABSTAIN),
    "admissible": fails_or(ABSTAIN),
    "enqueued": fails_or(None),
    "allocatable": fails_or(None),
    "borrowable": fails_or(None),
    "permitted": fails_or(None),
    "overused": fails_or(None),
    "is_below_share": fails_or(True),
    "patience": fails_or(5.0),
    "gang_ready": fails_or(True),
    "node_rules": (NodeRule("broken", fails_or(0), yes),),
    "node_score": NodeScore(fails_or(0), even),
    "node_area": fails_or(None),
    "domain_score": fails_or(np.zeros(1)),
    "place_class": fails_or(ANY_EQUAL),
    "starving": fails_or(True),
    "pipelined": fails_or(ABSTAIN),
    "preemptable": EvictionRule("broken", fails_or(None), "spared by a bug"),
    "reclaimable": EvictionRule("broken", fails_or(None), "spared by a bug"),
    "preemptive": fails_or(None),
    "victim_order": fails,
    "victim_queue_order": fails_or(0),
}
OF_NO_GROUP = {
    "excess": "asked about queues that hold too much, before anything is planned",
    "queue_shares": "asked for an upkeep, about what queues hold, whether their groups wait or not",
    "victim_tasks": "asked for an upkeep, about pods that run",
    "revoked": "asked for an upkeep, about pods that run",
    "unified_evictable": "asked by gangpreempt and gangreclaim in the place of the other two",
}
VALUES = {"borrowing", "scoring", "predicates", "most_domains"}


def broken(point: str) -> Policies:
    """The configuration with one more plugin, which is broken at that point."""
    tier = [(PluginConf("broken"), lambda _session: Hooks(**{point: BROKEN[point]}))]
    return replace(BY, tiers=[tier, *BY.tiers])


def asks(name: str, count: int, **fields: Any) -> Gang:
    """A gang of ``count`` cores in the queue of its name."""
    given: dict[str, Any] = {
        "waiting": members(name, count),
        "phase": GroupPhase.PENDING,
        "min_request": vector(cpu=count),
    } | fields
    return make_gang(name, queue=QueueName(name), **given)


def with_room(*more: Gang) -> Snapshot:
    """Both have room: the bad one in one rack, with a member beyond its minimum that is gated."""
    nodes = cores(8, 8, 8)
    shown = tuple(replace(task, shown=False) for task in members("bad", 30))
    bad = asks("bad", 30, topology=hard(1), waiting=shown, queue_first=shown[:1])
    tree = (HyperNode("a", 1, members=node_names("n0", "n1", "n2")),)
    return make_snapshot(
        nodes=nodes,
        gangs=(bad, asks("good", 1), *more),
        queues=QUEUES,
        domains=make_domains(nodes, tree),
    )


def small(*more: Gang) -> Snapshot:
    """All fit."""
    return make_snapshot(
        nodes=cores(8, 8),
        gangs=(asks("bad", 2, topology=hard(1)), asks("good", 1), *more),
        queues=QUEUES,
        domains=make_domains(cores(8, 8), (HyperNode("a", 1, members=node_names("n0", "n1")),)),
    )


def full(*queues: str) -> Snapshot:
    """Eleven cores are held by these queues: the bad gang evicts, and the good one has the last."""
    nodes = cores(4, 4, 4)
    held = [
        running_gang(f"low{i}", [i % 3], queue=queue)
        for i, queue in zip(range(11), cycle(queues), strict=False)
    ]
    runs = [one for each in held for one in each.runs]
    used = np.zeros_like(make_table(nodes).allocatable)
    for one in runs:
        used[one.node] += one.request
    waiting = (asks("bad", 2, priority=10), asks("good", 1))
    return make_snapshot(
        nodes=nodes,
        gangs=(*waiting, *(each.gang for each in held)),
        pending=waiting,
        queues=QUEUES,
        used=used,
        running=make_running(runs),
    )


SCENES = (with_room(), small(), full("full", "fuller"), full("bad"))


def planned(snapshot: Snapshot, by: Policies, *, now: float = 1000.0) -> Planned:
    """The plan at a time when the bad one has waited long, as a rule."""
    return finish(plan_around_faults(snapshot, by, now=now, shapes=None))


def test_each_extension_point_is_known_here() -> None:
    assert {each.name for each in fields(Hooks)} == BROKEN.keys() | OF_NO_GROUP.keys() | VALUES


@pytest.mark.parametrize("point", BROKEN)
def test_a_plugin_that_fails_at_one_group_costs_the_others_nothing(point: str) -> None:
    asked = [planned(scene, broken(point), now=now) for scene in SCENES for now in (1.0, 1000.0)]
    failed = [each for each in asked if each.faults]
    assert failed
    for each in failed:
        assert each.faults.keys() == {BAD}
        assert set(Outcome(each.plan).nodes("good")) == {"good-0"}


def test_the_plan_without_the_group_is_that_of_a_cluster_where_it_does_not_wait() -> None:
    found = planned(small(), broken("place_class"))
    by_itself = replace(small(), pending=(asks("good", 1),))
    assert Outcome(found.plan).nodes("good") == Outcome(
        plan(by_itself, BY, now=1000.0, shapes=None)
    ).nodes("good")
    assert BAD not in found.plan.refused
    assert found.snapshot.pending == tuple(g for g in found.snapshot.pending if g.key != BAD)


def test_a_fault_tells_the_error_and_where_it_is_and_nothing_of_what_it_says() -> None:
    fault = planned(small(), broken("enqueued")).faults[BAD]
    assert isinstance(fault.__cause__, KeyError)
    assert fault.place.startswith("KeyError in tests.core.test_faults:")


def test_after_some_faults_all_groups_of_their_queues_are_left_out() -> None:
    many = [
        gang_of(f"g{i}", 1, queue=QueueName("bad"), phase=GroupPhase.PENDING) for i in range(20)
    ]

    def hook(gang: Gang) -> None:
        if gang.queue == "bad":
            raise KeyError("a bug")

    tier = [(PluginConf("broken"), lambda _session: Hooks(gang_valid=hook))]
    found = planned(small(*many), replace(BY, tiers=[tier, *BY.tiers]))
    assert len({id(fault) for fault in found.faults.values()}) == MOST_FAULTS + 1
    assert len(found.faults) == len(many) + 1
    assert set(Outcome(found.plan).nodes("good")) == {"good-0"}


def unopenable(name: str) -> Policies:
    """The configuration, in which the plugin of that name is one that cannot be opened."""
    tiers = [
        [(conf, fails if conf.name == name else opens) for conf, opens in tier] for tier in BY.tiers
    ]
    assert any(opens is fails for tier in tiers for _, opens in tier)
    return replace(BY, tiers=tiers)


@pytest.mark.parametrize("name", ["proportion", "predicates", "overcommit", "gang", "conformance"])
def test_without_a_plugin_that_has_a_say_no_group_gets_a_place_and_each_is_told_why(
    name: str,
) -> None:
    for scene in (small(), full("full"), full("bad")):
        found = planned(scene, unopenable(name))
        assert found.unopened.keys() == {name}
        outcome = found.plan
        assert not (outcome.admitted)
        assert not (outcome.placed)
        assert not (outcome.evictions)
        assert not (outcome.set_aside)
        assert not (found.faults)
        assert not (found.left_out)
        assert outcome.refused.keys() == {BAD, GOOD}
        [told] = {refusal.detail for refusal in outcome.refused.values()}
        assert told.startswith(f"plugin {name} failed (KeyError in tests.core.test_faults:")
        assert {each.cause for each in outcome.refused.values()} == {Cause.PLANNING_FAILED}


def test_no_group_gets_a_place_on_demand_either_or_is_confirmed_in_one() -> None:
    by = unopenable("proportion")
    scene = small()
    alone = plan_gang(scene, by, key=GOOD, now=1000.0, shapes=None)
    assert not alone.placed
    assert alone.refused[GOOD].cause is Cause.PLANNING_FAILED
    decided = plan(scene, BY, now=1000.0, shapes=None)
    assert decided.placed
    assert not confirmed(decided, by, snapshot=scene, now=1000.0).placed


def test_planning_does_without_a_plugin_that_only_says_what_is_better() -> None:
    found = planned(small(), unopenable("nodeorder"))
    [fault] = found.unopened.values()
    assert (fault.plugin, fault.needed) == ("nodeorder", False)
    assert set(Outcome(found.plan).nodes("good")) == {"good-0"}


def test_a_plugin_that_may_be_left_out_forbids_nothing() -> None:
    preferring = {
        "victim_tasks",
        "task_order",
        "scoring",
        "most_domains",
        "node_score",
        "domain_score",
        "place_class",
    }
    session = Session(ledger=Ledger(small()), conf=BY.conf, now=1000.0)
    for name in PREFERENCES:
        hooks = PLUGINS[name](PluginConf(name))(session)
        taken = {each.name for each in fields(Hooks) if getattr(hooks, each.name) is not None}
        assert taken <= preferring, name


MOVING = replace(BY, conf=replace(BY.conf, actions=(*BY.conf.actions, "shuffle")))


@pytest.mark.parametrize(
    ("hooks", "upkeep"),
    [
        (Hooks(revoked=RevokedPods("broken", fails)), {Upkeep.REVOKE}),
        (Hooks(victim_tasks=VictimTasks("broken", fails, fails, fails)), {Upkeep.SHUFFLE}),
        (Hooks(queue_shares=fails), {Upkeep.OVER_CAPABILITY, Upkeep.LOANS}),
    ],
    ids=["revoked", "victim_tasks", "queue_shares"],
)
def test_upkeep_that_fails_is_left_out_and_groups_have_their_places(
    hooks: Hooks, upkeep: set[Upkeep]
) -> None:
    gives_up = make_queue("full", annotations={EVICT_OVER_CAPABILITY: "true"})
    scene = full("full")
    good = tuple(gang for gang in scene.pending if gang.key == GOOD)
    queues = {**scene.queues, gives_up.name: gives_up}
    scene = replace(scene, queues=queues, pending=good)
    tier = [(PluginConf("broken"), lambda _session: hooks)]
    by = replace(MOVING, tiers=[tier, *MOVING.tiers])
    found = planned(scene, by)
    assert found.left_out.keys() == upkeep
    assert not found.faults
    places = {fault.place.partition(":")[0] for fault in found.left_out.values()}
    assert places == {"KeyError in tests.core.test_faults"}
    assert set(Outcome(found.plan).nodes("good")) == {"good-0"}
    assert Outcome(found.plan).nodes("good") == Outcome(planned(scene, MOVING).plan).nodes("good")


def test_a_fault_of_a_group_that_runs_is_one_of_the_upkeep_that_looked_at_it() -> None:
    runs = asks("bad", 1)
    with pytest.raises(UpkeepFault) as caught, doing(Upkeep.SHUFFLE), LookingAt(runs):
        raise ValueError
    assert caught.value.upkeep is Upkeep.SHUFFLE
    assert caught.value.place.startswith("ValueError in tests.core.test_faults:")


def test_the_innermost_group_is_to_blame() -> None:
    inner, outer = asks("bad", 1), asks("good", 1)
    with pytest.raises(PlanningFault) as caught, LookingAt(outer), LookingAt(inner):
        raise ValueError
    assert caught.value.group == inner.key
