"""Free ports on the loopback address.

Ports are taken below the range that the kernel hands to outgoing connections. A server that is
stopped and started again on its port could otherwise find a retrying client sitting on it.
"""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Iterator

_FIRST = 18000
_LAST = 31999


def _candidates() -> Iterator[int]:
    """Walk the range from a place that differs per process, so that parallel runs rarely meet."""
    size = _LAST - _FIRST + 1
    start = os.getpid() * 97 % size
    for step in itertools.count():
        yield _FIRST + (start + step) % size


_walk = _candidates()


def free_port() -> int:
    """Return a port that is free now; one process never gets the same port twice in a row."""
    for port in itertools.islice(_walk, _LAST - _FIRST + 1):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise OSError(f"no free port between {_FIRST} and {_LAST}")
