"""Who holds how much, in the order in which they began."""

from app.kit.holdings import Holdings


def test_more_than_all_may_hold_is_seen_until_one_lets_go() -> None:
    held: Holdings[str] = Holdings(most=10)
    held.hold("a", 6)
    held.hold("b", 4)
    assert not held.is_too_much
    held.hold("a", 7)
    assert held.is_too_much
    held.hold("b", 0)
    assert not held.is_too_much


def test_who_began_first_comes_first() -> None:
    held: Holdings[str] = Holdings(most=10)
    for each in ("a", "b", "c", "a"):
        held.hold(each, 1)
    assert list(held) == ["a", "b", "c"]
    held.hold("a", 0)
    held.hold("a", 2)
    assert list(held) == ["b", "c", "a"]


def test_who_holds_nothing_may_let_go() -> None:
    held: Holdings[str] = Holdings(most=0)
    held.hold("a", 0)
    assert not held.is_too_much
