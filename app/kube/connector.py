"""Where sessions take their connections from."""

import sys
from typing import Final

import aiohttp

_LEAVES_TLS_OPEN: Final = sys.version_info < (3, 12, 8) or sys.version_info[:3] == (3, 13, 0)
"""Whether this Python keeps a TLS connection until its peer says good-bye too.

See python/cpython#118960.
"""


def connector(*, limit: int = 100) -> aiohttp.TCPConnector:
    """At most so many connections, none of which outlives the session."""
    return aiohttp.TCPConnector(
        limit=limit, keepalive_timeout=60.0, enable_cleanup_closed=_LEAVES_TLS_OPEN
    )
