"""Terms that placed pods carry are found by label, and kept from one snapshot to the next."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.core.placement.placed_pods import Carried, Identity, Seen
from app.core.placement.statics import ShapeCache
from app.core.placement.terms import Side, TermBooks, TermIndex
from app.model.placed_pods import Codes, PlacedPods, frozen
from app.model.shape import LabelSelector, PodShape, PodTerm
from tests.builders import make_node, make_snapshot
from tests.core.placement.rigs import HOST, app_is
from tests.core.placement.strategies import APPS, KEYS, NAMESPACES, pod_terms

NODES = tuple(make_node(name) for name in ("a", "b"))
NOBODY_AT = len(NODES)

term_lists = st.lists(pod_terms, max_size=2).map(tuple)
weighted = st.tuples(st.sampled_from((1, -2)), pod_terms)
carriers = st.builds(
    PodShape,
    requests=st.just(()),
    pod_affinity=term_lists,
    pod_anti_affinity=term_lists,
    preferred_pods=st.lists(weighted, max_size=1).map(tuple),
)
places = st.lists(st.tuples(st.integers(0, 6), st.integers(0, NOBODY_AT)), max_size=5)
questions = st.builds(
    Carried,
    st.sampled_from(Side),
    st.builds(
        Identity,
        st.sampled_from(NAMESPACES),
        st.sampled_from(((), *((("app", app),) for app in APPS))),
    ),
    st.sampled_from(KEYS),
)


def placed_pods(known: list[PodShape], there: list[tuple[int, int]]) -> PlacedPods:
    """Pods with the terms of these numbers, on the nodes of these rows."""
    codes = [min(number, len(known) - 1) for number, _ in there]
    nowhere = Codes(frozen([-1] * len(there)), dict[str, int]())
    return PlacedPods(
        rows=frozen([row for _, row in there]),
        homes=nowhere,
        leaving=Codes(nowhere.codes, dict[bool, int]()),
        terms=Codes(frozen(codes), {shape: code for code, shape in enumerate(known)}),
    )


@given(
    shapes=st.lists(carriers, min_size=1, max_size=6, unique=True),
    later=st.lists(st.tuples(st.integers(1, 6), st.booleans(), places), min_size=1, max_size=4),
    question=questions,
)
def test_what_is_kept_between_snapshots_changes_no_answer(
    shapes: list[PodShape], later: list[tuple[int, bool, list[tuple[int, int]]]], question: Carried
) -> None:
    """``later``: of how many terms the cluster knows then, whether they have other codes now."""
    cache = ShapeCache()
    for count, renumbered, there in later:
        known = shapes[:count][::-1] if renumbered else shapes[:count]
        snapshot = make_snapshot(nodes=NODES, placed_pods=placed_pods(known, there))
        index = cache.placed_pods(snapshot)
        expected, keys = np.zeros(len(NODES), dtype=np.int64), set[str]()
        for code, row in zip(
            snapshot.placed_pods.terms.codes, (row for _, row in there), strict=True
        ):
            if row != NOBODY_AT:
                expected[row] += question.of(Seen(known[code], question.target), {})
                keys |= {term.topology_key for _, term in question.side.terms(known[code])}
        assert index.counts(question).tolist() == expected.tolist()
        assert set(index.topology_keys(question.side)) == keys


def repelling(*selectors: LabelSelector) -> PodShape:
    terms = tuple(PodTerm(HOST, selector, ("default",)) for selector in selectors)
    return PodShape(requests=(), pod_anti_affinity=terms)


def test_only_terms_that_name_a_label_of_the_pod_are_looked_at() -> None:
    index = TermIndex(Side.REPELS)
    index.add([repelling(app_is(f"app-{number}")) for number in range(100)])
    index.add([repelling(LabelSelector()), repelling(app_is("app-7", "web"))])
    assert index.looking_for([("app", "app-7"), ("tier", "1")]) == {7, 100, 101}
    assert index.looking_for([]) == {100}


def test_terms_that_are_known_are_not_read_again() -> None:
    books, shapes = TermBooks(), [repelling(app_is(f"app-{number}")) for number in range(3)]
    first = books.of(Side.REPELS, Codes.of(shapes[:2]))
    assert books.of(Side.REPELS, Codes.of(shapes)) is first
    assert first.shapes == shapes
    assert books.of(Side.REPELS, Codes.of(shapes[1:])) is not first
