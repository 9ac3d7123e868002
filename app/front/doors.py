"""Connections that go from the front to the extender, through a socket that passes descriptors.

What has come of a connection goes with it, as a file in memory: it may be more than a message has
room for.
"""

import os
import socket
from typing import Final

_ONE: Final = b"+"
"""A message needs a byte."""

_WITH_ITS_BEGINNING: Final = 2


class NoDescriptors(Exception):
    """A connection came that this process has no descriptors for; it is ended."""


def pair() -> tuple[socket.socket, socket.socket]:
    """Both ends, neither of which waits."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for each in ends:
        each.setblocking(False)
    return ends


def give(doors: socket.socket, connection: int, begun: bytes) -> bool:
    """Pass on the connection of that file number, and what has come of it.

    False when the other side takes none right now; OSError when it takes no more.
    """
    beginning = os.memfd_create("beginning")
    try:
        with open(beginning, "wb", closefd=False) as file:
            file.write(begun)
        socket.send_fds(doors, [_ONE], [connection, beginning])
    except BlockingIOError:
        return False
    finally:
        os.close(beginning)
    return True


def take(doors: socket.socket) -> tuple[socket.socket, bytes] | None:
    """The next one, and what has come of it; None when there will be no more.

    BlockingIOError when there is none right now, NoDescriptors when it cannot be had.
    """
    came, numbers, _, _ = socket.recv_fds(doors, len(_ONE), _WITH_ITS_BEGINNING)
    if not came:
        return None
    if len(numbers) < _WITH_ITS_BEGINNING:
        for number in numbers:
            os.close(number)
        raise NoDescriptors
    connection, beginning = numbers
    with open(beginning, "rb") as file:
        file.seek(0)  # where its writer stands as well
        return socket.socket(fileno=connection), file.read()
