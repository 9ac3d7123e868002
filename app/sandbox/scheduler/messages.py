"""The words of a refusal, as the stock scheduler composes them.

``0/N nodes are available: <count reason, ...>. <post filter>.``: a histogram of the nodes' reasons,
sorted as text, and what preemption came to. Where the pod itself stood in the way of all nodes,
that is said once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
_NO_CLAIMS = "no new claims to deallocate, preemption: "


def histogram(total: int, reasons: Iterable[str], *, end: str = ".") -> str:
    """The counted reasons: ``0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods.``."""
    counted = sorted(f"{count} {reason}" for reason, count in Counter(reasons).items())
    start = f"0/{total} nodes are available"
    return f"{start}: {', '.join(counted)}{end}" if counted else f"{start}."


def refused_everywhere(total: int, why: str) -> str:
    """The whole message where all nodes have the same reason, found before they were looked at.

    Preemption is not tried: the stock plugin for resource claims, asked before it, has not been
    prepared by then and says so.
    """
    return f"0/{total} nodes are available: {why}. not found"


def refusal(total: int, reasons: Iterable[str], *, after: str) -> str:
    """The whole message; ``after`` is what preemption said, empty when it was not tried."""
    text = histogram(total, reasons)
    return f"{text} {_NO_CLAIMS}{after}" if after else text
