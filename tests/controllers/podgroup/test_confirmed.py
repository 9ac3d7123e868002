"""What was there a moment ago: for how long that is believed, and how much is kept."""

from app.controllers.podgroup.confirmed import KEPT_S, Confirmed


class Watch:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.confirmed = Confirmed(clock=lambda: self.now)


def test_it_is_believed_for_a_moment_from_the_answer_on() -> None:
    watch = Watch()
    watch.confirmed.note("a", asked_at=90)
    assert watch.confirmed.is_there("a")
    assert not watch.confirmed.is_there("b")
    watch.now += KEPT_S
    assert not watch.confirmed.is_there("a")


def test_a_clock_that_is_set_back_makes_it_last_no_longer() -> None:
    watch = Watch()
    watch.confirmed.note("a", asked_at=100)
    watch.now = 50
    assert not watch.confirmed.is_there("a")


def test_what_was_removed_is_not_there_be_the_answer_late() -> None:
    watch = Watch()
    watch.confirmed.note("a", asked_at=100)
    watch.confirmed.removed("a")
    assert not watch.confirmed.is_there("a")
    watch.confirmed.note("a", asked_at=99.9)
    assert not watch.confirmed.is_there("a")


def test_no_more_is_kept_than_is_asked_for_in_that_time() -> None:
    watch = Watch()
    for number in range(1000):
        watch.now += KEPT_S / 10
        watch.confirmed.note(f"u{number}", asked_at=watch.now)
    assert len(watch.confirmed) <= 11
