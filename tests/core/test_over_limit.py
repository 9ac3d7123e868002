"""What is given back when queues hold more than their limits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.faults import MOST_FAULTS, PlanningFault
from app.core.over_limit import GivenBack, give_back
from app.core.policy import Hooks, Policies
from app.core.tiers import build
from app.model.conf import PluginConf, SchedulerConf
from app.model.ids import QueueName
from app.model.plan import Revocable
from app.model.resources import Vector
from app.model.snapshot import Snapshot
from app.model.workload import Queue, QueueState
from tests.builders import make_gang, make_node, make_queue, make_snapshot
from tests.core.plugins.sessions import amounts_of, room

NODES = (make_node("n", cpu=100_000, pods=1000),)
TREE = PluginConf("capacity", switches={"enableHierarchy": True})
PLUGINS = {
    "proportion": PluginConf("proportion"),
    "capacity": PluginConf("capacity"),
    "tree": TREE,
}
PARENTS = {"top": "", "left": "top", "right": "top", "alone": ""}
LEAVES = ("left", "right", "alone")


def policies(*plugins: str | PluginConf) -> Policies:
    tier = tuple(PluginConf(p) if isinstance(p, str) else p for p in plugins)
    return build(SchedulerConf(actions=("allocate",), tiers=(tier,)))


@dataclass(frozen=True)
class Placed:
    """A gang that holds ``cpu`` cores and ``gib``: reserved at ``since``, or fixed without."""

    name: str
    cpu: int
    since: float | None = None
    queue: str = "q"
    gib: int = 0
    priority: int = 0

    @property
    def held(self) -> Vector:
        return room(cpu=self.cpu, gib=self.gib, pods=1)


def world(placed: Sequence[Placed], *queues: Queue) -> Snapshot:
    gangs = [
        make_gang(p.name, queue=QueueName(p.queue), allocated=p.held, priority=p.priority)
        for p in placed
    ]
    return make_snapshot(nodes=NODES, gangs=tuple(gangs), queues=queues)


def reservations_of(placed: Sequence[Placed], snapshot: Snapshot) -> list[Revocable]:
    keys = {gang.name: key for key, gang in snapshot.gangs.items()}
    return [
        Revocable(keys[p.name], (f"uid-{p.name}",), p.held, p.since, whole=True)
        for p in placed
        if p.since is not None
    ]


def decide(placed: Sequence[Placed], snapshot: Snapshot, by: Policies) -> GivenBack:
    has_reservations = reservations_of(placed, snapshot)
    queue_of = {each.gang: snapshot.gangs[each.gang].queue for each in has_reservations}
    return give_back(
        snapshot,
        by,
        queues=set(queue_of.values()),
        reservations_in=lambda queues: [
            each for each in has_reservations if queue_of[each.gang] in queues
        ],
        now=0.0,
    )


def goes(
    placed: Sequence[Placed], *queues: Queue, plugin: str | PluginConf = "capacity"
) -> list[str] | None:
    """The names of those that go, in order; None: no queue holds too much."""
    decided = decide(placed, world(placed, *queues), policies("priority", plugin))
    names = [each.gang.partition("/")[2] for each in decided.given_back]
    return names if decided.over else None


def limited(name: str, cpu: int | None, **fields: Any) -> Queue:
    """A queue that may hold so many cores; None: what there is."""
    capability = () if cpu is None else (("cpu", cpu * 1000),)
    return make_queue(name, capability=capability, **fields)


def q(cpu: int, **fields: Any) -> Queue:
    return limited("q", cpu, **fields)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_nothing_goes_while_all_fits(plugin: str) -> None:
    placed = [Placed("runs", 2), Placed("a", 2, since=1.0), Placed("b", 1, since=2.0)]
    assert goes(placed, q(5), plugin=PLUGINS[plugin]) is None
    assert goes(placed, make_queue("q"), plugin=PLUGINS[plugin]) is None


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_latest_goes_and_no_more_than_must(plugin: str) -> None:
    placed = [Placed("c", 1, since=3.0), Placed("a", 2, since=1.0), Placed("b", 1, since=2.0)]
    assert goes(placed, q(3), plugin=PLUGINS[plugin]) == ["c"]
    assert goes(placed, q(2), plugin=PLUGINS[plugin]) == ["b", "c"]
    assert goes(placed, q(0), plugin=PLUGINS[plugin]) == ["a", "b", "c"]


def test_one_that_fits_beside_those_that_stay_does_not_go_in_vain() -> None:
    placed = [Placed("big", 3, since=1.0), Placed("little", 1, since=2.0)]
    assert goes(placed, q(1)) == ["big"]


def test_of_places_reserved_together_those_of_the_lower_rank_go() -> None:
    placed = [Placed("a", 1, since=1.0), Placed("b", 1, since=1.0, priority=1)]
    assert goes(placed, q(1)) == ["a"]


def test_one_that_has_nothing_of_what_there_is_too_much_of_stays() -> None:
    placed = [Placed("runs", 3), Placed("a", 1, since=1.0), Placed("b", 0, gib=4, since=2.0)]
    assert goes(placed, q(2)) == ["a"]


def test_what_cannot_be_taken_back_stays_though_it_is_too_much() -> None:
    placed = [Placed("runs", 3), Placed("b", 0, gib=4, since=2.0)]
    assert goes(placed, q(2)) == []


def test_what_a_queue_deserves_or_the_cluster_has_is_no_limit() -> None:
    placed = [Placed("a", 120, since=1.0), Placed("rival", 10, queue="other")]
    others = (make_queue("other", deserved=amounts_of(cpu=90), weight=9),)
    for plugin in ("proportion", "capacity"):
        assert goes(placed, q(120, deserved=amounts_of(cpu=1)), *others, plugin=plugin) is None


def test_a_closed_queue_keeps_what_it_may_hold() -> None:
    placed = [Placed("a", 1, since=1.0), Placed("b", 1, since=2.0)]
    assert goes(placed, q(2, state=QueueState.CLOSED)) is None
    assert goes(placed, q(1, state=QueueState.CLOSED)) == ["b"]


def test_limits_that_nobody_can_tell_take_nothing() -> None:
    placed = [Placed("a", 2, since=1.0), Placed("lost", 2, since=1.0, queue="missing")]
    assert goes(placed, q(1, parent=QueueName("missing")), plugin=TREE) is None
    assert goes(placed, q(1)) == ["a"]
    assert goes(placed, q(1), plugin="gang") is None
    off = PluginConf("capacity", switches={"enabledAllocatable": False})
    assert goes(placed, q(1), plugin=off) is None


def test_a_limit_above_counts_for_all_below_it() -> None:
    top = limited("top", 3)
    left, right = (make_queue(name, parent=QueueName("top")) for name in ("left", "right"))
    placed = [
        Placed("a", 2, since=1.0, queue="left"),
        Placed("b", 2, since=2.0, queue="right"),
        Placed("c", 1, since=3.0, queue="left"),
    ]
    assert goes(placed, top, left, right, plugin=TREE) == ["b"]
    assert goes(placed, top, left, right) is None, "without the tree it is a queue like others"


def failing(at: str, point: str = "excess") -> Policies:
    """A plugin that fails at that queue, or at that gang, and another that sets limits."""
    by = policies("priority", "capacity")

    def fails(argument: Any) -> Any:
        if getattr(argument, "name", argument) == at:
            raise KeyError(at)
        return room() if point == "excess" else 0

    hooks: dict[str, Any] = {"excess" if point == "excess" else "gang_order": fails}
    return replace(by, tiers=[[(PluginConf("broken"), lambda _: Hooks(**hooks))], *by.tiers])


def test_a_queue_that_a_plugin_fails_at_keeps_what_is_reserved_and_others_give_back() -> None:
    placed = [Placed("a", 2, since=1.0, queue="bad"), Placed("b", 2, since=1.0, queue="q")]
    snapshot = world(placed, limited("bad", 1), q(1))
    decided = decide(placed, snapshot, failing("bad"))
    assert [each.gang for each in decided.given_back] == ["default/b"]
    assert decided.over == {"q"}
    assert [fault.queue for fault in decided.faults if isinstance(fault, PlanningFault)] == ["bad"]


def test_a_gang_that_a_plugin_fails_at_keeps_what_is_reserved_and_others_give_back() -> None:
    placed = [Placed("a", 2, since=2.0), Placed("b", 2, since=1.0)]
    decided = decide(placed, world(placed, q(1)), failing("a", "gang_order"))
    assert [each.gang for each in decided.given_back] == ["default/b"]
    assert [fault.place.partition(":")[0] for fault in decided.faults] == [
        "KeyError in tests.core.test_over_limit"
    ]


def test_nothing_goes_where_a_plugin_cannot_be_opened() -> None:
    def fails(_session: Any) -> Any:
        raise KeyError("a bug")

    placed = [Placed("a", 2, since=1.0)]
    by = policies("capacity")
    broken = replace(by, tiers=[[(PluginConf("broken"), fails)], *by.tiers])
    decided = decide(placed, world(placed, q(1)), broken)
    assert not decided.given_back
    assert [str(fault) for fault in decided.faults] == ["plugin broken"]


def test_a_plugin_that_fails_at_all_queues_is_not_asked_about_each() -> None:
    placed = [Placed(f"g{i}", 2, since=1.0, queue=f"q{i}") for i in range(20)]
    asked: list[str] = []

    def fails(queue: str) -> Any:
        asked.append(queue)
        raise KeyError(queue)

    by = policies("capacity")
    tier = [(PluginConf("broken"), lambda _: Hooks(excess=fails))]
    snapshot = world(placed, *(limited(f"q{i}", 1) for i in range(20)))
    with pytest.raises(PlanningFault):
        decide(placed, snapshot, replace(by, tiers=[tier, *by.tiers]))
    assert len(asked) == MOST_FAULTS + 1


LIMIT = st.one_of(st.none(), st.integers(0, 8))
PLACED = st.builds(
    Placed,
    name=st.just(""),
    cpu=st.integers(0, 3),
    since=st.one_of(st.none(), st.integers(0, 3).map(float)),
    queue=st.sampled_from(LEAVES),
    gib=st.integers(0, 2),
)


@pytest.mark.parametrize("plugin", PLUGINS)
@given(
    drawn=st.lists(PLACED, max_size=8),
    limits=st.fixed_dictionaries(dict.fromkeys(PARENTS, LIMIT)),
)
def test_what_stays_is_within_the_limits_or_could_not_be_taken_back(
    plugin: str, drawn: list[Placed], limits: dict[str, int | None]
) -> None:
    placed = [replace(each, name=f"g{i}") for i, each in enumerate(drawn)]
    queues = [limited(name, cpu, parent=QueueName(PARENTS[name])) for name, cpu in limits.items()]
    decided = decide(placed, world(placed, *queues), policies(PLUGINS[plugin]))
    gone = {each.gang.partition("/")[2] for each in decided.given_back}
    fixed = [each for each in placed if each.since is None]
    stay = [each for each in placed if each.name not in gone]

    def up_from(leaf: str) -> tuple[str, ...]:
        return (leaf, PARENTS[leaf]) if plugin == "tree" else (leaf,)

    def too_much(of: Sequence[Placed], leaf: str) -> int:
        """By how many cores a queue on the way up from ``leaf`` holds more than its limit."""
        held = {n: sum(each.cpu for each in of if n in up_from(each.queue)) for n in up_from(leaf)}
        most = {name: limits.get(name) for name in held}
        return max(0, *(held[name] - cpu for name, cpu in most.items() if cpu is not None), 0)

    assert all(each.since is not None for each in placed if each.name in gone)
    of_reservations = {each.queue for each in placed if each.since is not None}
    assert decided.over == {leaf for leaf in of_reservations if too_much(placed, leaf)}
    for leaf in LEAVES:
        assert too_much(stay, leaf) <= too_much(fixed, leaf)
    for each in placed:
        if each.name in gone:
            first = [e for e in stay if e.since is None or e.since <= (each.since or 0.0)]
            assert each.cpu, "it has nothing of what there is too much of"
            assert too_much([*first, each], each.queue), "it fits with those before it"
