"""Host ports in use on nodes, by placed pods and by this cycle's placements alike.

Two host ports collide when protocol and port are equal and the addresses are equal or one of them
is the wildcard.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.core.placement.arrays import Counts
from app.core.placement.journal import JournalReader
from app.model.resources import Mask
from app.model.shape import HostPort

WILDCARD = "0.0.0.0"


class PortBook:
    """Counts of listeners per node for each (protocol, port) and address."""

    def __init__(
        self, ports: Mapping[int, frozenset[HostPort]], *, nodes: int, journal: JournalReader
    ) -> None:
        self._nodes = nodes
        self._journal = journal
        self._users: dict[tuple[str, int], dict[str, Counts]] = {}
        self.version = 0
        for row, used in ports.items():
            for port in used:
                self._listeners(port)[row] += 1

    def follow(self) -> None:
        """Take in what the journal has gained or lost since the last call."""
        for entry, row, sign in self._journal.changes():
            for port in entry.shape.host_ports:
                self._listeners(port)[row] += sign
                self.version += 1

    def free(self, wanted: Sequence[HostPort]) -> Mask:
        """The nodes where no pod listens on any of ``wanted``."""
        mask = np.ones(self._nodes, dtype=np.bool_)
        for port in wanted:
            address = _address(port)
            for other, counts in self._users.get(_slot(port), {}).items():
                if WILDCARD in (address, other) or address == other:
                    mask &= counts == 0
        return mask

    def _listeners(self, port: HostPort) -> Counts:
        addresses = self._users.setdefault(_slot(port), {})
        counts = addresses.get(_address(port))
        if counts is None:
            counts = addresses[_address(port)] = np.zeros(self._nodes, dtype=np.int64)
        return counts


@dataclass(frozen=True, slots=True, eq=False)
class FreePorts:
    """The rule that ``wanted`` must be free; see :class:`~app.core.placement.rules.Rule`."""

    book: PortBook
    wanted: tuple[HostPort, ...]

    @property
    def text(self) -> str:
        """See :class:`~app.core.placement.rules.Rule`."""
        return "node(s) didn't have free ports for the requested pod ports"

    def version(self) -> Hashable:
        """See :class:`~app.core.placement.rules.Rule`."""
        return self.book.version

    def mask(self) -> Mask:
        """See :class:`~app.core.placement.rules.Rule`."""
        return self.book.free(self.wanted)


def _address(port: HostPort) -> str:
    return port.ip or WILDCARD


def _slot(port: HostPort) -> tuple[str, int]:
    return (port.protocol or "TCP", port.port)
