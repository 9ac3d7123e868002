"""Connections pass from one process's hands to another's with what has come of them."""

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from app.front import doors

Doors = tuple[socket.socket, socket.socket]


@pytest.fixture(name="both")
def _both() -> Iterator[Doors]:
    mine, theirs = doors.pair()
    with mine, theirs:
        yield mine, theirs


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\n", bytes(range(256)) * 2**13])
def test_a_connection_is_the_same_one_on_the_other_side(both: Doors, begun: bytes) -> None:
    mine, theirs = both
    client, server = socket.socketpair()
    with client, closing(server):
        assert doors.give(mine, server.fileno(), begun)
        server.close()
        came = doors.take(theirs)
        assert came is not None
        taken, had = came
        with taken:
            assert had == begun
            client.sendall(b"hello")
            assert taken.recv(10) == b"hello"


def test_nothing_is_taken_where_nothing_is(both: Doors) -> None:
    with pytest.raises(BlockingIOError):
        doors.take(both[1])


def test_the_end_is_seen_on_both_sides(both: Doors) -> None:
    mine, theirs = both
    mine.close()
    assert doors.take(theirs) is None
    with pytest.raises(OSError, match=r"Broken pipe"):
        doors.give(theirs, theirs.fileno(), b"")


def test_who_takes_none_is_not_waited_for_and_keeps_what_it_was_given(both: Doors) -> None:
    mine, theirs = both
    with socket.socket() as connection:
        given = 0
        while doors.give(mine, connection.fileno(), b"%d" % given):
            given += 1
        assert given
        taken = [doors.take(theirs) for _ in range(given)]
    for number, came in enumerate(taken):
        assert came is not None
        came[0].close()
        assert came[1] == b"%d" % number
