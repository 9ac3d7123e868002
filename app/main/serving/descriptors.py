"""How many files and connections this process may have open."""

import logging
import resource
from typing import Final

log = logging.getLogger(__name__)

_KEPT: Final = 256
"""Descriptors for all that is no connection of a client."""

_PORTS: Final = 2
"""Ports of one process that share the rest."""


def use_all() -> None:
    """Raise the soft limit, which is often 1,024, to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        log.warning("the limit of open files stays at %d: %s", soft, error)


def connections(wanted: int) -> int:
    """How many of ``wanted`` connections one port may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    return min(wanted, max(soft - _KEPT, _KEPT) // _PORTS)
