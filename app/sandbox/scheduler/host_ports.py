"""Ports of the node that a pod listens on.

Two collide when protocol and number are equal and so are the addresses, or one of them is all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from app.wire.documents import Document, items

EVERY_ADDRESS = "0.0.0.0"


class HostPort(NamedTuple):
    """A port of the node's own network; ``protocol`` is TCP, UDP or SCTP."""

    address: str
    protocol: str
    number: int


def host_ports(spec: Document) -> frozenset[HostPort]:
    """The host ports of the containers that stay: an ordinary init container is gone by then."""
    return frozenset(
        HostPort(
            port.get("hostIP") or EVERY_ADDRESS, port.get("protocol") or "TCP", port["hostPort"]
        )
        for container in _staying(spec)
        for port in items(container, "ports")
        if port.get("hostPort")
    )


def any_collide(wanted: Iterable[HostPort], taken: Iterable[HostPort]) -> bool:
    """Whether any wanted port collides with any taken one."""
    others = list(taken)
    return any(_collide(one, other) for one in wanted for other in others)


def _staying(spec: Document) -> Iterator[Document]:
    for container in items(spec, "initContainers"):
        if container.get("restartPolicy") == "Always":
            yield container
    yield from items(spec, "containers")


def _collide(one: HostPort, other: HostPort) -> bool:
    return (one.protocol, one.number) == (other.protocol, other.number) and (
        one.address == other.address or EVERY_ADDRESS in (one.address, other.address)
    )
