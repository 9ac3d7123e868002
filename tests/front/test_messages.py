"""Where calls end, however their bytes come."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.front.messages import COLLECTED, HEAD, PIECES, Requests, Seen

BODIES = st.binary(max_size=60)
PATHS = st.sampled_from(["/filter", "/v1/filter", "/bind", "/preempt?x=1"])


def call(
    path: str, body: bytes, *headers: str, version: str = "1.1", method: str = "POST"
) -> bytes:
    lines = [f"{method} {path} HTTP/{version}", "Host: x", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """``data`` cut at these places."""
    at = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(at)]


@given(
    calls=st.lists(st.tuples(PATHS, BODIES), min_size=1, max_size=4),
    cuts=st.lists(st.integers(0, 1000), max_size=6),
)
def test_calls_are_whole_at_their_ends_and_not_before(
    calls: list[tuple[str, bytes]], cuts: list[int]
) -> None:
    requests = Requests()
    for path, body in calls:
        sent = call(path, body)
        *first, last = pieces(sent, cuts)
        assert [requests.feed(piece) for piece in first] == [Seen.PART] * len(first)
        assert requests.feed(last) is Seen.WHOLE
        assert (requests.path, requests.body, requests.raw) == (path.encode(), body, sent)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
        b"not HTTP at all\r\n\r\n",
        call("/filter", b"{}", version="1.0"),
        call("/filter", b"{}", "Connection: keep-alive", version="1.0"),
        call("/filter", b"{}", "Connection: close"),
        call("/filter", b"{}", "Expect: 100-continue"),
        call("/filter", b"{}", method="PUT"),
        call("/filter", b"{}") + call("/bind", b"{}"),
        call("/filter", b"{}", "Connection: upgrade", "Upgrade: websocket"),
        call("/filter", b"x" * (COLLECTED + 1)),
        b"POST /filter HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /filter HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"POST /filter HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
        b"POST /filter HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    ],
)
@pytest.mark.parametrize("size", [7, 10**9])
def test_everything_else_is_something_else_and_nothing_of_it_is_lost(
    sent: bytes, size: int
) -> None:
    requests = Requests()
    assert requests.feed(before := call("/bind", b"{}")) is Seen.WHOLE
    assert requests.raw == before
    for start in range(0, len(sent), size):
        seen = requests.feed(sent[start : start + size])
        assert requests.raw == sent[: start + size]
        if seen is Seen.OTHER:
            return
        assert seen is Seen.PART
    pytest.fail("it was taken for a call")


def test_a_second_call_that_comes_with_the_end_of_the_first_is_something_else() -> None:
    requests, first = Requests(), call("/filter", b"{}")
    assert requests.feed(first[:-1]) is Seen.PART
    assert requests.feed(first[-1:] + b"POST") is Seen.OTHER
    assert requests.raw == first + b"POST"


@pytest.mark.parametrize(
    "sent",
    [
        b"POST /" + b"x" * 2 * HEAD,
        b"POST /filter HTTP/1.1\r\nX: " + b"x" * 2 * HEAD,
        b"POST /filter HTTP/1.1\r\n" + b"X: x\r\n" * HEAD,
        b"\r\n" * HEAD,
    ],
    ids=["target", "header", "headers", "nothing"],
)
def test_a_head_without_end_is_something_else_and_nothing_of_it_is_lost(sent: bytes) -> None:
    requests, size = Requests(), 1000
    for start in range(0, HEAD - size, size):
        assert requests.feed(sent[start : start + size]) is Seen.PART
    begun = len(requests.raw)
    for start in (begun, begun + size):
        seen = requests.feed(sent[start : start + size])
    assert seen is Seen.OTHER
    assert requests.raw == sent[: begun + 2 * size]


def test_a_body_in_more_pieces_than_are_kept_is_something_else() -> None:
    requests, sent = Requests(), call("/filter", bytes(2 * PIECES))
    for at in range(PIECES):
        assert requests.feed(sent[at : at + 1]) is Seen.PART
    assert requests.feed(sent[PIECES : PIECES + 1]) is Seen.OTHER
    assert requests.raw == sent[: PIECES + 1]
