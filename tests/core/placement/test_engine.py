"""Following the ledger: increments, order, caches."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.ledger import Ledger
from app.core.placement import engine
from app.core.placement.engine import Placer
from app.core.placement.statics import ShapeCache
from app.core.policy import Predicates, Scoring
from app.model.gang import Gang, Task
from app.model.node import Node
from app.model.shape import HostPort, PodShape, Spread
from app.model.snapshot import Snapshot
from tests.builders import GIB, make_gang, make_node, make_shape, make_snapshot, make_task
from tests.core.placement.rigs import HOST, Rig, app_is, pod_shape
from tests.scale import examples

SCORING = Scoring(
    least_requested=1,
    balanced=1,
    node_affinity=2,
    pod_affinity=2,
    taint_toleration=3,
    topology_spread=2,
    binpack_weight=1,
    binpack={"cpu": 1, "memory": 3},
)
SHAPES = (
    make_shape(cpu=300, memory=GIB // 3),
    make_shape(cpu=700, memory=GIB),
    make_shape(cpu=0, memory=0),
    make_shape(cpu=100, host_ports=(HostPort("", "TCP", 80),)),
    pod_shape("web", cpu=100, spread=(Spread(1, "zone", hard=True, selector=app_is("web")),)),
    pod_shape("web", cpu=200, spread=(Spread(1, HOST, hard=False, selector=app_is("web")),)),
    make_shape(cpu=50, node_selector=(("zone", "z1"),)),
)
COUNT = 40
GANG = make_gang()


def farm() -> tuple[Node, ...]:
    """Enough uneven nodes for single rows to be priced."""
    return tuple(
        make_node(
            f"n{i:02}",
            cpu=1000 + 137 * (i % 5),
            memory=(2 + i % 3) * GIB,
            pods=4,
            labels={HOST: f"n{i:02}", "zone": f"z{i % 3}"},
        )
        for i in range(COUNT)
    )


def placer_on(ledger: Ledger, cache: ShapeCache | None = None) -> Placer:
    return Placer(ledger, predicates=Predicates(), scoring=SCORING, cache=cache)


def make_tasks(shapes: Sequence[PodShape]) -> list[Task]:
    return [make_task(f"t{i}", shape=shape) for i, shape in enumerate(shapes)]


class Walk:
    """Random placements and nested trials on one ledger, each checked against a new placer."""

    def __init__(self, data: st.DataObject, snapshot: Snapshot) -> None:
        self.data = data
        self.ledger = Ledger(snapshot)
        self.placer = placer_on(self.ledger)
        self.gang = make_gang()
        self.tasks = make_tasks(SHAPES)

    def steps(self, depth: int) -> None:
        """A few steps; each looks, then places, opens a trial or does nothing."""
        for _ in range(self.data.draw(st.integers(1, 5))):
            task = self.data.draw(st.sampled_from(self.tasks))
            row = self.look(task)
            if row is not None and self.data.draw(st.booleans()):
                self.ledger.place(self.gang, task, node=row)
            elif depth:
                with self.ledger.trial() as trial:
                    self.steps(depth - 1)
                    if self.data.draw(st.booleans()):
                        trial.keep()

    def look(self, task: Task) -> int | None:
        ranked = self.placer.ranked(GANG, task)
        assert np.array_equal(ranked, placer_on(self.ledger).ranked(GANG, task))
        return self.placer.find(GANG, task)


@pytest.mark.parametrize("singly", [0, engine.SINGLY], ids=["together", "one by one"])
@examples(60)
@given(data=st.data())
def test_followed_scores_equal_scores_from_scratch_bit_for_bit(
    singly: int, data: st.DataObject
) -> None:
    snapshot = make_snapshot(nodes=farm())
    walk = Walk(data, snapshot)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "SINGLY", singly)
        walk.steps(3)
    for task in walk.tasks:
        walk.look(task)
    assert (walk.ledger.idle >= 0).all()


@examples(30)
@given(order=st.permutations(range(COUNT)), picks=st.lists(st.sampled_from(SHAPES), max_size=30))
def test_what_is_found_does_not_depend_on_the_order_of_nodes(
    order: list[int], picks: list[PodShape]
) -> None:
    nodes = farm()
    straight, shuffled = (
        Rig(nodes, scoring=SCORING),
        Rig([nodes[i] for i in order], scoring=SCORING),
    )
    assert [straight.put_found(s) for s in picks] == [shuffled.put_found(s) for s in picks]


def test_ties_go_to_the_first_name() -> None:
    rig = Rig([make_node(name) for name in ("b", "a", "c")], scoring=SCORING)
    assert [rig.put_found() for _ in range(3)] == ["a", "b", "c"]


def test_filling_a_farm_stops_exactly_at_its_limits() -> None:
    rig = Rig(farm(), scoring=SCORING)
    placed = 0
    while rig.put_found(SHAPES[1]):
        placed += 1
    assert (rig.ledger.idle >= 0).all()
    each = np.minimum(rig.snapshot.table.allocatable // rig.task(SHAPES[1]).request.clip(1), 4)
    assert placed == each.min(axis=1).sum()


def test_more_shapes_than_are_kept_are_priced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "KEPT_SHAPES", 2)
    rig = Rig(farm(), scoring=SCORING)
    tasks = make_tasks(SHAPES)
    for _ in range(3):
        for task in tasks:
            row = rig.placer.find(GANG, task)
            assert row is not None
            assert row == placer_on(rig.ledger).find(GANG, task)
            rig.ledger.place(rig.gang, task, node=row)


def fill(snapshot: Snapshot, cache: ShapeCache | None, gang: Gang) -> list[int | None]:
    ledger = Ledger(snapshot)
    placer = placer_on(ledger, cache)
    found = []
    for task in gang.waiting:
        row = placer.find(GANG, task)
        found.append(row)
        if row is not None:
            ledger.place(gang, task, node=row)
    return found


def test_a_kept_cache_answers_like_a_new_one_and_notices_a_new_table() -> None:
    gang = make_gang(waiting=tuple(make_tasks(SHAPES * 4)))
    cache = ShapeCache()
    first = make_snapshot(nodes=farm())
    assert fill(first, cache, gang) == fill(first, None, gang) == fill(first, cache, gang)
    changed = make_snapshot(
        nodes=tuple(replace(n, unschedulable=i < 5) for i, n in enumerate(farm()))
    )
    newer = replace(changed, table=replace(changed.table, generation=2))
    assert fill(newer, cache, gang) == fill(newer, None, gang) != fill(first, cache, gang)


def test_other_weights_do_not_meet_old_scores_in_the_cache() -> None:
    cache = ShapeCache()
    nodes = (make_node("a", images={"x:1": 1 << 30}), make_node("b"))
    shape = make_shape(images=("x:1",))
    heavy = Rig(nodes, scoring=Scoring(image_locality=1), cache=cache)
    light = Rig(nodes, scoring=Scoring(), cache=cache)
    assert heavy.scores(shape)[0] > 0
    assert light.scores(shape) == [0.0, 0.0]


def test_the_cache_forgets_the_oldest_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.core.placement.statics.KEPT_FITS", 2)
    rig = Rig(farm())
    for _ in range(2):
        for zone in ("z0", "z1", "z2"):
            names = rig.names(make_shape(node_selector=(("zone", zone),)))
            assert len(names) in (13, 14)


def test_all_nodes_are_priced_again_when_many_were_touched() -> None:
    rig = Rig(farm(), scoring=SCORING)
    first, second = make_tasks(SHAPES[:2])
    rig.placer.find(GANG, first)
    for row in range(COUNT):
        rig.ledger.place(rig.gang, second, node=row)
    assert np.array_equal(rig.placer.ranked(GANG, first), placer_on(rig.ledger).ranked(GANG, first))
