"""The engine against the obvious implementation, on random clusters.

For every task of a random sequence, placed or rolled back at random: the same nodes are feasible,
the same scores come out, and the node found is a best one.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from app.core.ledger import Ledger
from app.core.placement.engine import Placer
from app.core.policy import NodeRule, Predicates
from app.model.gang import Gang, Task
from app.model.ids import NodeName
from app.model.snapshot import Snapshot
from tests.builders import make_gang
from tests.core.placement.reference import Reference
from tests.core.placement.strategies import Theme, scorings, shapes, snapshots, tasks_of
from tests.scale import examples


def check(placer: Placer, reference: Reference, gang: Gang, task: Task) -> int | None:
    """Compare all that is said of ``task``; return the row found."""
    rows = range(len(reference.nodes))
    feasible = [row for row in rows if reference.feasible(task, row)]
    assert [row for row in rows if placer.feasible(gang, task)[row]] == feasible
    assert [row for row in rows if placer.fits(gang, task, row)] == feasible
    scores = reference.scores(task)
    assert placer.scores(gang, task, rows).tolist() == pytest.approx(scores, abs=1e-6)
    found = placer.find(gang, task)
    assert (found is None) == (not feasible)
    if found is not None:
        assert found in feasible
        assert scores[found] == pytest.approx(max(scores[row] for row in feasible), abs=1e-6)
    else:
        assert sum(n.nodes for n in placer.explain(gang, task).nodes) >= len(reference.nodes)
    return found


def only(rows: Sequence[int]) -> NodeRule:
    """A rule that refuses all nodes but those of ``rows``."""
    return NodeRule(
        "node(s) were not among them", lambda *_: True, lambda _, __, now: np.isin(now.rows, rows)
    )


def table_names(snapshot: Snapshot) -> list[NodeName]:
    return [node.name for node in snapshot.table.nodes]


@examples(
    30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@pytest.mark.parametrize("theme", Theme, ids=lambda theme: theme.name.lower())
@given(data=st.data())
def test_the_engine_agrees_with_the_obvious_implementation(
    data: st.DataObject, theme: Theme
) -> None:
    known = data.draw(st.lists(shapes(theme), min_size=1, max_size=3))
    snapshot = data.draw(snapshots(theme, known))
    scoring = data.draw(scorings)
    ledger = Ledger(snapshot)
    placer = Placer(ledger, predicates=Predicates(), scoring=scoring)
    reference = Reference(snapshot, scoring)
    gang = make_gang(axis=snapshot.axis)
    for number in range(data.draw(st.integers(1, 6))):
        shape = data.draw(st.sampled_from(known))
        pinned = data.draw(st.sampled_from((*[""] * 6, *table_names(snapshot))))
        task = tasks_of(shape, snapshot, f"t{number}", pinned=NodeName(pinned))
        found = check(placer, reference, gang, task)
        if found is None:
            continue
        with ledger.trial() as trial:
            ledger.place(gang, task, node=found)
            reference.placed.append((gang, task, found))
            check(placer, reference, gang, task)
            if data.draw(st.booleans()):
                trial.keep()
        if not trial.kept:
            reference.placed.pop()


@examples(
    12,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@pytest.mark.parametrize("theme", Theme, ids=lambda theme: theme.name.lower())
@given(data=st.data())
def test_a_search_within_some_nodes_is_one_where_all_others_are_refused(
    data: st.DataObject, theme: Theme
) -> None:
    known = data.draw(st.lists(shapes(theme), min_size=1, max_size=3))
    snapshot, scoring = data.draw(snapshots(theme, known)), data.draw(scorings)
    names, gang = table_names(snapshot), make_gang(axis=snapshot.axis)
    nodes = range(len(names))
    ledger, reference = Ledger(snapshot), Reference(snapshot, scoring)
    placer = Placer(ledger, predicates=Predicates(), scoring=scoring)
    for number in range(data.draw(st.integers(1, 6))):
        wish = data.draw(st.sampled_from(("pinned", "nominated")))
        node = data.draw(st.sampled_from((*[""] * 6, *names)))
        shape = data.draw(st.sampled_from(known))
        task = tasks_of(shape, snapshot, f"t{number}", **{wish: NodeName(node)})
        some = sorted(data.draw(st.sets(st.sampled_from(nodes))) if nodes else ())
        refusing = Placer(ledger, predicates=Predicates(), scoring=scoring, node_rules=[only(some)])
        found = placer.find(gang, task, within=np.array(some, dtype=np.intp))
        assert found == refusing.find(gang, task)
        feasible = [row for row in some if reference.feasible(task, row)]
        assert (found is None) == (not feasible)
        if found is None:
            continue
        scores = reference.scores(task)
        if not task.nominated:
            assert scores[found] == pytest.approx(max(scores[r] for r in feasible), abs=1e-6)
        ledger.place(gang, task, node=found)
        reference.placed.append((gang, task, found))
