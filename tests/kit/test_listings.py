import pytest

from app.kit.listings import Listed, Listings, take_out


def listings() -> Listings[str]:
    return Listings()


def test_what_a_listing_lacks_has_gone() -> None:
    its = listings()
    its.show("pods", "a")
    its.show("pods", "b")
    its.begin("pods")
    its.show("pods", "b")
    its.show("pods", "c")
    assert its.end("pods") == Listed(frozenset("bc"), frozenset("a"))


def test_what_has_gone_is_told_once() -> None:
    its = listings()
    its.show("pods", "a")
    its.begin("pods")
    assert its.end("pods") == Listed(frozenset(), frozenset("a"))
    its.begin("pods")
    assert its.end("pods") == Listed(frozenset(), frozenset())


def test_an_object_that_is_only_named_is_there() -> None:
    its = listings()
    its.show("pods", "a")
    its.begin("pods")
    its.name("pods", "a")
    assert its.end("pods") == Listed(frozenset("a"), frozenset())


def test_what_was_deleted_is_neither_there_nor_newly_gone() -> None:
    its = listings()
    its.show("pods", "a")
    its.begin("pods")
    its.show("pods", "a")
    its.lose("pods", "a")
    assert its.end("pods") == Listed(frozenset(), frozenset())


def test_sources_do_not_answer_for_each_other() -> None:
    its = listings()
    its.show("pods/bound", "a")
    its.begin("pods/waiting")
    assert its.end("pods/waiting") == Listed(frozenset(), frozenset())


def test_a_listing_that_begins_again_forgets_the_broken_one() -> None:
    its = listings()
    its.begin("pods")
    its.show("pods", "a")
    its.begin("pods")
    assert its.end("pods") == Listed(frozenset(), frozenset("a"))


def test_there_is_nothing_to_end_without_a_beginning() -> None:
    its = listings()
    its.show("pods", "a")
    assert its.end("pods") is None
    its.begin("pods")
    its.end("pods")
    assert its.end("pods") is None


def test_what_cannot_be_taken_out_keeps_nothing_else() -> None:
    left = {"a", "c"}
    with pytest.raises(ExceptionGroup) as fault:
        take_out("abcb", left.remove)
    assert left == set()
    assert [str(each) for each in fault.value.exceptions] == ["'b'", "'b'"]
