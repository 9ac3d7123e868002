"""Leases: which process leads, and until when."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lease:
    """A Lease; ``renew`` is seconds since the epoch (0: never), ``duration`` in seconds."""

    namespace: str
    name: str
    holder: str
    renew: float
    duration: int
