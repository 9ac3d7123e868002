"""Frames come across whole, however their bytes come."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from app.model.ids import NodeName, PodUid
from app.wire.front import (
    Frame,
    Frames,
    MessageType,
    PlaceChanges,
    PodPlace,
    Told,
    change_frame,
    decode_change,
    decode_told,
    told_frame,
)

FRAMES = st.builds(
    Frame,
    kind=st.sampled_from(MessageType),
    body=st.binary(max_size=60),
    number=st.integers(0, 2**64 - 1),
    detail=st.integers(0, 999),
)


@given(sent=st.lists(FRAMES, max_size=5), cuts=st.lists(st.integers(0, 1000), max_size=8))
def test_frames_are_whole_at_their_ends_and_not_before(sent: list[Frame], cuts: list[int]) -> None:
    data = b"".join(frame.encode() for frame in sent)
    at = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    ends = list(itertools.accumulate(len(frame.encode()) for frame in sent))
    frames, received = Frames(), []
    for start, end in itertools.pairwise(at):
        received += frames.feed(data[start:end])
        assert len(received) == sum(frame_end <= end for frame_end in ends)
    assert received == sent


def test_what_both_tell_each_other_is_read_as_it_was_written() -> None:
    change = PlaceChanges({PodUid("u"): PodPlace(NodeName("n\n1"), 7)}, [PodUid("v")], 3)
    for told in (
        Told(PodUid("u"), NodeName("n1"), 0.5),
        Told(PodUid("u"), NodeName("n1"), 0.5, 3, PodUid("w")),
    ):
        first, second = Frames().feed(change_frame(change) + told_frame(told))
        assert (first.kind, decode_change(first.body)) == (MessageType.CHANGE, change)
        assert (second.kind, decode_told(second.body)) == (MessageType.TOLD, told)
