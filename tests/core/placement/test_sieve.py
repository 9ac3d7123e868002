"""What the quick look lets pass, and that it never holds back what counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.placement.placed_pods import Carried, Identity, Matching, Question, Seen
from app.core.placement.sieve import Traits, named_by
from app.core.placement.terms import Side
from app.model.shape import LabelSelector, Operator, PodShape, PodTerm, Requirement
from app.model.workload import Namespace
from tests.core.placement.rigs import HOST, app_is, pod_shape
from tests.core.placement.strategies import KEYS, Theme, pod_terms, shapes

EXISTS = LabelSelector((Requirement("app", Operator.EXISTS),))
NAMESPACES = {"other": Namespace("other", {"team": "red"}, {})}


def term(selector: LabelSelector | None) -> PodTerm:
    return PodTerm(HOST, selector, ("default",))


@pytest.mark.parametrize(
    ("selectors", "named"),
    [
        ((app_is("web", "db"),), {("app", "web"), ("app", "db")}),
        ((app_is("web"), app_is("db")), {("app", "web"), ("app", "db")}),
        ((app_is("web"), EXISTS), None),
        ((LabelSelector(),), None),
        ((None,), set()),
        ((), set()),
    ],
    ids=["one", "two", "one that names none", "everything", "nothing", "no terms"],
)
def test_the_labels_that_terms_name(
    selectors: tuple[LabelSelector | None, ...], named: set[tuple[str, str]] | None
) -> None:
    assert named_by([term(selector) for selector in selectors]) == named


def test_pods_of_other_labels_are_held_back() -> None:
    web, db = pod_shape("web"), pod_shape("db", pod_anti_affinity=(term(app_is("web")),))
    about_web = Matching((term(app_is("web")),)).sieve()
    assert about_web.passes(Traits.of(web, [("app", "web")]))
    assert not about_web.passes(Traits.of(db, [("app", "db")]))
    repelled = Carried(Side.REPELS, Identity("default", (("app", "web"),)), HOST).sieve()
    assert repelled.passes(Traits.of(db, [("app", "db")]))
    assert not repelled.passes(Traits.of(web, [("app", "web")]))


identities = st.builds(
    Identity,
    st.sampled_from(("default", "other")),
    st.sampled_from(((), (("app", "web"),), (("app", "db"),))),
)
questions: st.SearchStrategy[Question] = st.one_of(
    st.builds(Matching, st.lists(pod_terms, min_size=1, max_size=2).map(tuple)),
    st.builds(Carried, st.sampled_from(Side), identities, st.sampled_from(KEYS)),
)


@given(question=questions, shape=shapes(Theme.PODS))
def test_nothing_that_counts_is_held_back(question: Question, shape: PodShape) -> None:
    assert shape.spread_identity is not None
    identity = Identity(*shape.spread_identity)
    if question.of(Seen(shape, identity), NAMESPACES):
        assert question.sieve().passes(Traits.of(shape, identity.labels))
