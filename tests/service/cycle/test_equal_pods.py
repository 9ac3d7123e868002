"""Pods that come alone, one like the other, have places without a plan for each; and no others."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from app.cache.snapshots.snapshotter import Snapshotter
from app.core.planner import plan
from app.model.ids import NodeName, PodUid, QueueName
from app.model.pod import QUEUE_ANNOTATION
from app.model.shape import HostPort, NodeTerm, Operator, PodShape, Requirement
from app.model.workload import GroupPhase
from app.service.calls.filtering import Chosen
from app.service.cycle.equal_pods import COUNTS
from app.wire.filter_by_name import SAMPLE_FLOOR
from app.wire.scheduler_conf import DEFAULT_CONF
from tests.builders import ALONE, make_amounts, make_pod, make_queue, make_shape
from tests.scale import examples
from tests.service.cycle.test_planning_cycle import TREE
from tests.service.rig import Rig

NODES = [f"n{number:03}" for number in range(2 * SAMPLE_FLOOR)]
SAMPLE = NODES[:SAMPLE_FLOOR]
CORE = make_shape(cpu=1000)
STRICT = DEFAULT_CONF.replace(
    "- name: proportion", "- name: proportion\n    arguments: {borrowing: false}"
)


def rig_of(nodes: list[str] = NODES, *, cores: int = 4) -> Rig:
    rig = Rig(by=lambda: 0.0)
    rig.planning.leadership.deciding.set()
    rig.node(*nodes, cpu=cores * 1000)
    for name in "ab":
        rig.queue(make_queue(name))
    return rig


def limit(rig: Rig, queue: str, cores: int) -> None:
    rig.queue(make_queue(queue, capability=make_amounts(cpu=cores * 1000)))


def comes(
    rig: Rig, name: str, *, queue: str = "a", shape: PodShape = CORE, created: float = 0.0
) -> None:
    rig.pod(name, annotations={QUEUE_ANNOTATION: queue}, shape=shape, created=created)


def ask(rig: Rig, name: str) -> bool:
    """Whether the pod has a place, which is one of the sample."""
    answer = rig.filter(name, SAMPLE)
    if isinstance(answer, Chosen):
        assert answer.node in SAMPLE
        assert rig.place(name) == answer.node
    return isinstance(answer, Chosen)


def taught(rig: Rig) -> Rig:
    """The same after a cycle, and a pod for which there was a plan."""
    asyncio.run(rig.cycle())
    comes(rig, "first")
    assert ask(rig, "first")
    assert rig.planning.log.at_once == 0
    return rig


def test_pods_like_the_last_have_a_place_at_once() -> None:
    rig = taught(rig_of())
    for number in range(5):
        comes(rig, f"p{number}")
        assert ask(rig, f"p{number}")
    assert (rig.planning.log.on_demand, rig.planning.log.at_once) == (1, 5)


def test_as_many_as_their_queue_bears_and_no_more() -> None:
    rig = rig_of()
    limit(rig, "a", 1 + COUNTS[1])
    taught(rig)
    had = []
    for number in range(COUNTS[1] + 3):
        comes(rig, f"p{number}")
        had.append(ask(rig, f"p{number}"))
    assert had == [True] * COUNTS[1] + [False] * 3
    assert rig.planning.log.at_once == COUNTS[1]


def test_the_last_that_is_borne_has_who_waits_longer() -> None:
    rig = rig_of()
    limit(rig, "a", 1 + COUNTS[1])
    taught(rig)
    for number in range(COUNTS[1] - 1):
        comes(rig, f"p{number}")
        assert ask(rig, f"p{number}")
    comes(rig, "older", created=1.0)
    comes(rig, "younger", created=2.0)
    assert not ask(rig, "younger")
    assert ask(rig, "older")


def test_the_last_room_of_a_sample_has_who_waits_longer() -> None:
    rig = rig_of(cores=1)
    for name in NODES[2:]:
        rig.pod(f"on-{name}", shape=CORE, node=NodeName(name))
    taught(rig)
    comes(rig, "older", created=1.0)
    comes(rig, "younger", created=2.0)
    assert not ask(rig, "younger")
    assert ask(rig, "older")


def test_the_only_node_for_a_pod_is_left_to_it_if_it_waits_longer() -> None:
    rig = rig_of(cores=1)
    rig.node(only := NODES[0], cpu=1000, labels={"disk": "fast"})
    rig.pod("on-another", shape=CORE, node=NodeName(NODES[1]))
    asyncio.run(rig.cycle())
    comes(rig, "first")
    assert rig.filter("first", NODES[1:]) != Chosen(NodeName(only))
    comes(rig, "older", shape=replace(CORE, node_selector=(("disk", "fast"),)), created=1.0)
    comes(rig, "younger", created=2.0)
    assert ask(rig, "younger")
    assert rig.place("younger") != only
    assert rig.filter("older", [only]) == Chosen(NodeName(only))


def test_room_that_is_given_back_has_who_was_refused_before() -> None:
    rig = taught(rig_of(cores=1))
    for name in NODES:
        if name != rig.place("first"):
            rig.pod(f"on-{name}", shape=CORE, node=NodeName(name))
    asyncio.run(rig.cycle())
    comes(rig, "older", created=1.0)
    assert not ask(rig, "older")
    asyncio.run(rig.cycle())
    rig.delete(f"on-{SAMPLE[-1]}")
    comes(rig, "younger", created=2.0)
    assert not ask(rig, "younger")
    assert ask(rig, "older")


def test_nobody_has_one_on_a_node_without_room() -> None:
    rig = taught(rig_of(cores=1))
    names = [f"p{number}" for number in range(SAMPLE_FLOOR + 1)]
    for name in names:
        comes(rig, name)
        ask(rig, name)
    places = [place for name in (*names, "first") if (place := rig.place(name))]
    assert len(places) == len(set(places))


@pytest.mark.parametrize("nodes", [SAMPLE[:-1], NODES], ids=["few", "many"])
def test_where_all_nodes_are_offered_the_policies_choose(nodes: list[str]) -> None:
    rig = rig_of(nodes)
    rig.node(nodes[-1], cpu=4000, labels={"disk": "fast"})
    taught(rig)
    fast = NodeTerm((Requirement("disk", Operator.IN, ("fast",)),))
    for number in range(3):
        comes(rig, f"p{number}", shape=replace(CORE, preferred_terms=((100, fast),)))
        assert rig.filter(f"p{number}") == Chosen(NodeName(nodes[-1]))
    assert rig.planning.log.at_once == 0


def test_a_cycle_that_reserves_something_leaves_them_known() -> None:
    rig = taught(rig_of())
    comes(rig, "planned")
    asyncio.run(rig.cycle())
    assert rig.place("planned")
    comes(rig, "p")
    assert ask(rig, "p")
    assert (rig.planning.log.on_demand, rig.planning.log.at_once) == (1, 1)


def test_what_is_reserved_for_a_gang_meanwhile_is_counted() -> None:
    rig = rig_of()
    limit(rig, "a", 10)
    taught(rig)
    rig.group("gang", minimum=5, queue=QueueName("a"))
    for number in range(5):
        rig.pod(f"gang-{number}", group="gang", shape=CORE)
    assert ask(rig, "gang-0")
    names = [f"p{number}" for number in range(6)]
    for name in names:
        comes(rig, name)
    assert sum(ask(rig, name) for name in names) == 4


def test_a_limit_counts_from_the_moment_it_is_lowered() -> None:
    rig = taught(rig_of())
    limit(rig, "a", 1)
    asyncio.run(rig.cycle())
    comes(rig, "p")
    assert not ask(rig, "p")


def test_what_others_bound_counts_after_a_cycle_too() -> None:
    rig = rig_of()
    limit(rig, "a", 3)
    taught(rig)
    for name in ("x", "y"):
        rig.pod(name, annotations={QUEUE_ANNOTATION: "a"}, shape=CORE, node=NodeName(NODES[-1]))
    asyncio.run(rig.cycle())
    comes(rig, "p")
    assert not ask(rig, "p")


def test_nobody_has_a_place_for_a_queue_that_is_gone() -> None:
    rig = taught(rig_of())
    rig.unsee("queues", rig.cache.queues[QueueName("a")])
    comes(rig, "p")
    assert not ask(rig, "p")


def test_a_pod_that_is_held_off_waits_its_time() -> None:
    rig = taught(rig_of())
    comes(rig, "p")
    rig.cache.decisions.cool_down(rig.member("p").group, until=1.0)
    assert not ask(rig, "p")


def test_a_pod_that_others_are_evicted_for_has_its_plan() -> None:
    rig = taught(rig_of())
    comes(rig, "p")
    rig.planning.allowed_victims.add(
        PodUid("uid-p"), NodeName(NODES[0]), [rig.api.pods["default/first"]]
    )
    comes(rig, "q")
    assert ask(rig, "q")
    assert rig.planning.log.at_once == 0


def test_a_resource_that_nobody_named_before_stops_no_cycle() -> None:
    rig = taught(rig_of())
    rig.node("new", extra={"example.com/fpga": 1})
    comes(rig, "planned")
    asyncio.run(rig.cycle())
    assert rig.place("planned")
    comes(rig, "p")
    assert ask(rig, "p")
    comes(rig, "q")
    assert ask(rig, "q")
    assert (rig.planning.log.on_demand, rig.planning.log.at_once) == (2, 1)


def test_pods_that_ask_for_nothing_are_planned() -> None:
    rig = taught(rig_of())
    for name in ("p", "q", "r"):
        comes(rig, name, shape=make_shape(cpu=0, memory=0))
        assert ask(rig, name)
    assert rig.planning.log.at_once == 0


def test_another_configuration_is_asked_first() -> None:
    rig = taught(rig_of())
    assert rig.parts.configuration.load(TREE)
    comes(rig, "p")
    assert ask(rig, "p")
    assert rig.planning.log.at_once == 0


CHANGES: dict[str, Callable[[Rig], object]] = {
    "another waits": lambda rig: comes(rig, "other", shape=make_shape(cpu=2000)),
    "one of another queue waits": lambda rig: comes(rig, "other", queue="b"),
    "one that ranks higher waits": lambda rig: rig.pod(
        "other", annotations={QUEUE_ANNOTATION: "a"}, shape=CORE, priority=1
    ),
    "a gang waits": lambda rig: rig.gang("gang", size=2),
    "a limit": lambda rig: limit(rig, "a", 100),
    "another queue": lambda rig: rig.queue(make_queue("c")),
    "another node": lambda rig: rig.node("new"),
    "a cordon": lambda rig: rig.node(NODES[0], unschedulable=True),
    "somebody bound one of ours": lambda rig: rig.pod(
        "theirs", annotations={QUEUE_ANNOTATION: "b"}, shape=CORE, node=NodeName(NODES[-1])
    ),
    "a rule about who may be beside whom": lambda rig: rig.store(
        make_pod(
            "lonely",
            scheduler="default",
            shape=make_shape(cpu=1, pod_anti_affinity=(ALONE,)),
            node=NodeName(NODES[-1]),
        )
    ),
    "one of others is nominated": lambda rig: rig.store(
        make_pod("claimant", scheduler="default", nominated=NodeName(NODES[-1]))
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_after_any_other_change_there_is_a_plan_first(change: Callable[[Rig], object]) -> None:
    rig = taught(rig_of())
    change(rig)
    comes(rig, "p")
    assert ask(rig, "p")
    assert (rig.planning.log.on_demand, rig.planning.log.at_once) == (2, 0)


def bind_by_others(rig: Rig, name: str, *, cores: int, **fields: Any) -> None:
    """A pod that takes so much of the last node, which may be more than that has."""
    rig.pod(name, shape=make_shape(cpu=cores * 1000), node=NodeName(NODES[-1]), **fields)


def run_one(rig: Rig, queue: str, *, claims: int = 0) -> None:
    """A group that has all it waits for, and may claim so many cores all the same."""
    amounts = make_amounts(cpu=claims * 1000)
    name, phase = QueueName(queue), GroupPhase.RUNNING
    rig.group("runs", minimum=1, queue=name, phase=phase, min_resources=amounts)
    bind_by_others(rig, "runs-0", cores=1, group="runs", phase="Running")


def hold_half(rig: Rig) -> None:
    """With strict shares: what nobody else could use would be lent to the queue."""
    rig.parts.configuration.load(STRICT)
    bind_by_others(rig, "half", cores=len(NODES) // 2, annotations={QUEUE_ANNOTATION: "a"})


def bind_many(rig: Rig, queue: str) -> None:
    """One pod that takes nearly as much as one queue may hold."""
    limit(rig, "a", 1 + COUNTS[1])
    bind_by_others(rig, "many", cores=COUNTS[1], annotations={QUEUE_ANNOTATION: queue})


def bind_some_alike(rig: Rig, queue: str) -> None:
    """As many as one queue may hold, but for one."""
    limit(rig, "a", 2 + COUNTS[1])
    for number in range(COUNTS[1]):
        bind_by_others(rig, f"alike{number}", cores=1, annotations={QUEUE_ANNOTATION: queue})


def grow_tree(rig: Rig) -> None:
    rig.parts.configuration.load(TREE)
    rig.queue(make_queue("top"))
    rig.queue(make_queue("a", parent=QueueName("top")))


ALL_CORES = make_shape(cpu=len(NODES) * 1000)
DEMANDS: dict[str, tuple[Callable[[Rig], object], Callable[[Rig], object]]] = {
    "a pod behind a gate": (
        hold_half,
        lambda rig: rig.pod(
            "gated", annotations={QUEUE_ANNOTATION: "b"}, shape=ALL_CORES, gates=("its.own/gate",)
        ),
    ),
    "a pod of a group that does not show yet": (
        hold_half,
        lambda rig: rig.pod("early", group="late", shape=ALL_CORES),
    ),
    "a group that runs and claims more": (
        lambda rig: run_one(rig, "a"),
        lambda rig: run_one(rig, "a", claims=len(NODES)),
    ),
    "a pod that moves to the queue": (
        lambda rig: bind_many(rig, "b"),
        lambda rig: bind_many(rig, "a"),
    ),
    "pods like it that move to the queue": (
        lambda rig: bind_some_alike(rig, "b"),
        lambda rig: bind_some_alike(rig, "a"),
    ),
    "a group in a queue above": (
        grow_tree,
        lambda rig: rig.pod(
            "gated", annotations={QUEUE_ANNOTATION: "top"}, shape=CORE, gates=("its.own/gate",)
        ),
    ),
    "a pod that is over in a queue above": (
        grow_tree,
        lambda rig: bind_by_others(
            rig, "over", cores=1, annotations={QUEUE_ANNOTATION: "top"}, phase="Succeeded"
        ),
    ),
}


@pytest.mark.parametrize(("before", "change"), DEMANDS.values(), ids=DEMANDS)
def test_who_waits_for_no_plan_may_ask_for_room_too(
    before: Callable[[Rig], object], change: Callable[[Rig], object]
) -> None:
    """By what others ask for and claim, the queue may hold less."""
    rig = rig_of(cores=1)
    before(rig)
    taught(rig)
    comes(rig, "p")
    assert ask(rig, "p")
    assert rig.planning.log.at_once == 1
    change(rig)
    comes(rig, "q")
    assert not ask(rig, "q")


def test_room_that_others_take_is_not_overcommitted() -> None:
    rig = rig_of(cores=1)
    run_one(rig, "b", claims=len(NODES) * 3 // 4)
    taught(rig)
    comes(rig, "p")
    assert ask(rig, "p")
    assert rig.planning.log.at_once == 1
    shape = make_shape(cpu=len(NODES) * 1000 // 2)
    rig.store(make_pod("theirs", scheduler="default", shape=shape, node=NodeName(NODES[-1])))
    comes(rig, "q")
    assert not ask(rig, "q")


def test_what_runs_on_nodes_that_are_not_ready_is_of_the_cluster_as_long_as_it_runs() -> None:
    """What others are guaranteed is taken from that: less is left when it has gone."""
    rig = rig_of(cores=1)
    rig.node("away", cpu=100_000, ready=False)
    shape = make_shape(cpu=100_000)
    rig.store(make_pod("theirs", scheduler="default", shape=shape, node=NodeName("away")))
    rig.queue(make_queue("b", guarantee=make_amounts(cpu=(len(NODES) - 2) * 1000)))
    taught(rig)
    comes(rig, "p")
    assert ask(rig, "p")
    assert rig.planning.log.at_once == 1
    rig.delete("theirs")
    comes(rig, "q")
    assert not ask(rig, "q")


ODD: dict[str, dict[str, Any]] = {
    "pinned": {"pinned": NodeName(NODES[0])},
    "nominated": {"nominated": NodeName(NODES[0])},
    "with a port": {"shape": replace(CORE, host_ports=(HostPort("", "TCP", 80),))},
    "that looks at others": {"shape": make_shape(cpu=1000, pod_anti_affinity=(ALONE,))},
    "that asks for more": {"shape": make_shape(cpu=1001)},
    "of another priority": {"priority": 1},
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_pod_that_is_not_like_the_last_is_planned(odd: dict[str, Any]) -> None:
    rig = taught(rig_of())
    rig.pod("p", annotations={QUEUE_ANNOTATION: "a"}, **({"shape": CORE} | odd))
    assert ask(rig, "p")
    assert rig.planning.log.at_once == 0


class Coming(RuleBasedStateMachine):
    """Whoever has a place at once would have had one by a plan of that moment."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = taught(rig_of(cores=1))
        self.names: list[str] = []
        self.last = 0

    def name(self, kind: str) -> str:
        self.last += 1
        return f"{kind}{self.last}"

    @initialize(cores=st.integers(1, 12))
    def begin(self, cores: int) -> None:
        limit(self.rig, "a", cores)

    @rule(queue=st.sampled_from("aaab"), some=st.integers(1, 3))
    def come(self, queue: str, some: int) -> None:
        for _ in range(some):
            comes(self.rig, name := self.name("p"), queue=queue)
            self.names.append(name)

    @rule(queue=st.sampled_from("aaab"))
    def comes_to_be_asked_for(self, queue: str) -> None:
        self.come(queue, 1)
        self.asked(len(self.names))

    @rule(number=st.integers(0))
    def asked(self, number: int) -> None:
        waiting = [name for name in self.names if not self.rig.place(name)]
        if not waiting:
            return
        name = waiting[number % len(waiting)]
        group, before = self.rig.member(name).group, self.rig.planning.log.at_once
        snapshot = Snapshotter(self.rig.cache).snapshot()
        policies = self.rig.parts.configuration.policies
        by_plan = plan(snapshot, policies, now=0.0, shapes=None)
        ask(self.rig, name)
        if self.rig.planning.log.at_once > before:
            assert group in [placed.gang for placed in by_plan.placed]

    @rule()
    def cycle(self) -> None:
        asyncio.run(self.rig.cycle())

    @rule(number=st.integers(0))
    def bound(self, number: int) -> None:
        placed = [name for name in self.names if self.rig.place(name)]
        if placed:
            self.rig.land(placed[number % len(placed)])
            self.rig.show_bindings()

    @rule(number=st.integers(0))
    def go(self, number: int) -> None:
        if self.names:
            self.rig.delete(self.names.pop(number % len(self.names)))

    @rule(cores=st.integers(1, 12), queue=st.sampled_from("ab"))
    def limited(self, queue: str, cores: int) -> None:
        limit(self.rig, queue, cores)

    @rule(queue=st.sampled_from("ab"), size=st.integers(1, 3))
    def gang_comes(self, queue: str, size: int) -> None:
        name = self.name("gang")
        self.rig.group(name, minimum=size, queue=QueueName(queue))
        for number in range(size):
            self.rig.pod(f"{name}-{number}", group=name, shape=CORE)

    @rule(queue=st.sampled_from("ab"))
    def bound_by_others(self, queue: str) -> None:
        where = {QUEUE_ANNOTATION: queue}
        self.rig.pod(self.name("x"), annotations=where, shape=CORE, node=NodeName(NODES[-1]))

    @rule(queue=st.sampled_from("ab"), cores=st.integers(1, len(NODES)))
    def comes_behind_a_gate(self, queue: str, cores: int) -> None:
        where, shape = {QUEUE_ANNOTATION: queue}, make_shape(cpu=cores * 1000)
        name, gate = self.name("g"), "its.own/gate"
        self.rig.pod(name, annotations=where, shape=shape, gates=(gate,))

    @rule(cores=st.integers(1, len(NODES)))
    def others_take_room(self, cores: int) -> None:
        shape, node = make_shape(cpu=cores * 1000), NodeName(NODES[-1])
        self.rig.store(make_pod(self.name("o"), scheduler="default", shape=shape, node=node))

    @rule(queue=st.sampled_from("ab"), claims=st.integers(0, len(NODES)))
    def claims_change(self, queue: str, claims: int) -> None:
        run_one(self.rig, queue, claims=claims)

    @rule(number=st.integers(0), cordoned=st.booleans())
    def node_changes(self, number: int, cordoned: bool) -> None:
        self.rig.node(NODES[number % len(SAMPLE)], cpu=1000, unschedulable=cordoned)


Coming.TestCase.settings = examples(25, stateful_step_count=60)
TestComing = Coming.TestCase
