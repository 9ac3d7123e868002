"""Long texts keep both ends."""

from hypothesis import given
from hypothesis import strategies as st

from app.kit.shortening import shortened


def test_a_short_text_is_told_as_it_is() -> None:
    assert shortened("ten digits", 10) == "ten digits"


def test_a_long_text_loses_its_middle() -> None:
    text = f"queue {'q' * 500}: no such queue"
    assert shortened(text, 60) == "queue qqqqqqqqqqqqq...[521 characters]...qqqq: no such queue"


@given(st.text(max_size=300), st.integers(30, 200))
def test_it_is_never_longer_than_asked(text: str, most: int) -> None:
    assert len(shortened(text, most)) <= max(most, len(f"...[{len(text)} characters]..."))
