"""How the nodes of a cluster narrow down to those that take a member now."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """The ``nodes`` that are left when ``text`` holds (``tolerated``), and all steps before it."""

    text: str
    nodes: int


@dataclass(frozen=True, slots=True)
class Funnel:
    """The steps for members of one ``role`` that request the same.

    ``lacking`` of them wait, or do not exist yet. ``fit`` of them would find free room now if no
    limit of a queue, and no other group, stood in the way.
    """

    role: str
    lacking: int
    fit: int
    steps: tuple[FunnelStep, ...]
