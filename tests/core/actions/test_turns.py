"""Whose turn it is, against looking at all queues before every turn."""

from collections.abc import Iterator
from functools import cmp_to_key

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.actions.backlog import Backlog
from app.core.actions.lineage import lines
from app.core.actions.turns import Turns
from app.core.ledger import Ledger
from app.core.points import Opened
from app.core.tiers import build, open_policies
from app.model.conf import PluginConf, SchedulerConf
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.snapshot import Snapshot
from app.model.workload import Queue
from tests.builders import GIB, make_gang, make_node, make_queue, make_snapshot
from tests.core.plugins.sessions import amounts_of, sized_task
from tests.scale import examples

NODES = (make_node("n", cpu=100_000, memory=1000 * GIB, pods=1000),)
TREE = {"top": "", "left": "top", "right": "top", "far": "", "a": "left", "b": "left", "c": "right"}
LEAVES = ("a", "b", "c", "far")
CONFIGURED = {
    "capacity": PluginConf("capacity"),
    "tree": PluginConf("capacity", switches={"enableHierarchy": True}),
    "hdrf": PluginConf("drf", switches={"enableHierarchy": True}),
    "proportion": PluginConf("proportion"),
}


class Table:
    """Turns on a ledger, where every gang that is taken gets all its members."""

    def __init__(self, conf: SchedulerConf, snapshot: Snapshot) -> None:
        self.ledger = Ledger(snapshot)
        self.opened: Opened = open_policies(build(conf), self.ledger, now=0.0)
        self.turns: Turns[Backlog] = Turns(self.opened, lines(self.ledger, conf))
        for gang in snapshot.pending:
            self.turns.add(Backlog(gang))
        self.turns.start()

    def give(self, gang: Gang) -> None:
        for task in gang.waiting:
            self.ledger.place(gang, task, node=0)

    def serve(self) -> Iterator[str]:
        while (queue := self.turns.queue()) is not None:
            gang = self.turns.take(queue).gang
            self.give(gang)
            self.turns.done(queue)
            yield gang.name

    def serve_naively(self) -> Iterator[str]:
        left = list(self.ledger.snapshot.pending)
        while left:
            queue = min({g.queue for g in left}, key=cmp_to_key(self.opened.queue_order))
            gang = min((g for g in left if g.queue == queue), key=self.opened.gang_key)
            left.remove(gang)
            self.give(gang)
            yield gang.name


def conf_of(name: str) -> SchedulerConf:
    return SchedulerConf(actions=("allocate",), tiers=((CONFIGURED[name],),))


def path_of(name: str) -> str:
    parent = TREE[name]
    return f"{path_of(parent)}/{name}" if parent else f"root/{name}"


def queue(name: str, *, deserved: int, weights: str) -> Queue:
    annotations = {
        "volcano.sh/hierarchy": path_of(name),
        "volcano.sh/hierarchy-weights": weights,
    }
    return make_queue(
        name,
        parent=QueueName(TREE[name]),
        deserved=amounts_of(cpu=deserved),
        annotations=annotations if name in LEAVES else {},
    )


def gang(i: int, leaf: str, cpu: int) -> Gang:
    task = sized_task(f"g{i:02}-0", cpu=cpu, gib=0)
    return make_gang(f"g{i:02}", queue=QueueName(leaf), waiting=(task,), created=float(i))


def served(name: str, asked: list[tuple[str, int]], deserved: dict[str, int]) -> list[str]:
    queues = tuple(queue(n, deserved=deserved.get(n, 1), weights="1/1/1/1") for n in TREE)
    gangs = tuple(gang(i, leaf, cpu) for i, (leaf, cpu) in enumerate(asked))
    snapshot = make_snapshot(nodes=NODES, queues=queues, gangs=gangs)
    taken = list(Table(conf_of(name), snapshot).serve())
    assert taken == list(Table(conf_of(name), snapshot).serve_naively())
    return taken


@pytest.mark.parametrize("name", CONFIGURED)
@examples(60)
@given(
    asked=st.lists(st.tuples(st.sampled_from(LEAVES), st.integers(1, 4)), max_size=14),
    deserved=st.dictionaries(st.sampled_from(tuple(TREE)), st.integers(0, 5)),
)
def test_the_queue_that_comes_first_as_they_stand_has_the_turn(
    name: str, asked: list[tuple[str, int]], deserved: dict[str, int]
) -> None:
    served(name, asked, deserved)


@pytest.mark.parametrize("name", ["tree", "hdrf"])
def test_what_one_queue_gets_counts_against_its_siblings(name: str) -> None:
    """``a`` moves ``left``, so ``b`` has to wait until ``far`` has as much."""
    asked = [("a", 1), ("a", 1), ("b", 1), ("b", 1), ("far", 1), ("far", 1), ("far", 1)]
    assert served(name, asked, {"top": 1, "far": 1, "left": 1}) == [
        "g00",
        "g04",
        "g02",
        "g05",
        "g01",
        "g06",
        "g03",
    ]


def test_gangs_of_a_queue_take_turns_by_their_key() -> None:
    conf = SchedulerConf(actions=("allocate",), tiers=((PluginConf("priority"),),))
    low, high = make_gang("low"), make_gang("high", priority=5, created=1.0)
    table = Table(conf, make_snapshot(nodes=NODES, gangs=(low, high)))
    assert list(table.serve()) == ["high", "low"]


def test_a_dropped_queue_has_no_more_turns() -> None:
    conf = conf_of("tree")
    queues = tuple(queue(n, deserved=1, weights="1") for n in TREE)
    gangs = tuple(gang(i, leaf, 1) for i, leaf in enumerate(("a", "a", "b", "far")))
    table = Table(conf, make_snapshot(nodes=NODES, queues=queues, gangs=gangs))
    at = table.turns.queue()
    assert at == "a"
    assert {backlog.gang.name for backlog in table.turns.drop(at)} == {"g00", "g01"}
    table.turns.done(at)
    assert list(table.serve()) == ["g02", "g03"]


def test_nobody_waits_nobody_has_a_turn() -> None:
    table = Table(conf_of("tree"), make_snapshot(nodes=NODES))
    assert table.turns.queue() is None
