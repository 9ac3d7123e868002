"""Classes of places: what narrows them, and which may be exchanged."""

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from app.model.exchange import ANY_EQUAL, NO_EXCHANGE, Exchange

CLASSES = st.one_of(
    st.just(NO_EXCHANGE),
    st.sets(st.sampled_from(["east", "west", "gang"])).map(
        lambda names: reduce(Exchange.within, sorted(names), ANY_EQUAL)
    ),
)


@given(CLASSES, CLASSES, CLASSES)
def test_a_class_is_narrowed_by_others_in_any_order(
    one: Exchange, two: Exchange, three: Exchange
) -> None:
    assert one.narrowed(two) == two.narrowed(one)
    assert one.narrowed(two).narrowed(three) == one.narrowed(two.narrowed(three))
    assert one.narrowed(one) == one.narrowed(ANY_EQUAL) == one
    assert one.narrowed(NO_EXCHANGE) == NO_EXCHANGE


@given(CLASSES, CLASSES)
def test_places_of_equal_classes_are_exchanged_but_of_one(one: Exchange, two: Exchange) -> None:
    assert one.allows(two) == (one == two != NO_EXCHANGE)
    assert one.is_open == (one == ANY_EQUAL)


@given(CLASSES, CLASSES)
def test_what_is_narrowed_alike_is_exchanged_no_wider(one: Exchange, two: Exchange) -> None:
    assert one.within("rack").allows(two.within("rack")) == one.allows(two) or (
        one.inside is not None and two.inside is not None
    )
    assert not one.allows(two) or one.within("rack").allows(two.within("rack"))
