"""Lines out of pieces."""

from hypothesis import given
from hypothesis import strategies as st

from app.kube.lines import LineSplitter


@given(
    lines=st.lists(st.binary(min_size=1).filter(lambda b: b"\n" not in b)),
    cuts=st.lists(st.integers(min_value=1, max_value=7)),
)
def test_lines_come_out_whole_wherever_the_pieces_end(lines: list[bytes], cuts: list[int]) -> None:
    text = b"".join(line + b"\n" for line in lines)
    splitter = LineSplitter()
    got: list[bytes] = []
    for cut in cuts:
        got += splitter.feed(text[:cut])
        text = text[cut:]
    got += splitter.feed(text)
    assert got == lines


def test_an_unfinished_line_stays_inside() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"a") == []
    assert splitter.feed(b"b\n\nc") == [b"ab"]
    assert splitter.feed(b"\n") == [b"c"]
