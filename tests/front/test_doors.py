"""Connections pass from one process's hands to another's with what has come of them."""

import os
import resource
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

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


@pytest.mark.parametrize("left", [0, 1])
def test_a_connection_that_there_is_no_descriptor_for_is_ended_and_not_the_last(
    both: Doors, left: int
) -> None:
    mine, theirs = both
    client, server = socket.socketpair()
    with client:
        client.settimeout(10)
        with closing(server):
            assert doors.give(mine, server.fileno(), b"")
            assert doors.give(mine, server.fileno(), b"the next")
        with descriptors_left(left), pytest.raises(doors.NoDescriptors):
            doors.take(theirs)
        came = doors.take(theirs)
        assert came is not None
        assert came[1] == b"the next"
        came[0].close()
        assert client.recv(1) == b""


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Of those that this process may open, that many; those below are taken."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    first = os.open(os.devnull, os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (first + 1 + count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(first)


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
