"""Compare what the cache charges with what the API server says.

A *drift* between the charges and a fresh listing of pods is room counted for a pod that does not
hold it, not counted for one that does, or counted on another node. Reservations (planned members,
slots) are not drift: the API server does not know them; they are listed by number. Nor is a
reservation on the node that the pod is bound to: the listing is ahead of the watch.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from app.cache.cluster import ClusterCache
from app.model.pod import TERMINAL, Pod


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference: ``kind`` is ``missed``, ``redundant`` or ``moved``."""

    kind: str
    uid: str
    pod: str
    counted_on: str
    bound_to: str


@dataclass(frozen=True, slots=True)
class Audit:
    """The outcome: what differs, and how much was compared."""

    drifts: tuple[Drift, ...]
    pods: int
    charges: int
    promises: int


def audit(cache: ClusterCache, listed: Iterable[Pod]) -> Audit:
    """Compare ``cache`` with ``listed``, all pods as the API server has them right now."""
    drifts: list[Drift] = []
    charges = cache.node_usage.charges
    seen: set[str] = set()
    pods = 0
    for pod in listed:
        pods += 1
        seen.add(pod.uid)
        charge = charges.get(pod.uid)
        holds = bool(pod.node) and pod.status not in TERMINAL
        counted = charge.node if charge else ""
        if holds and counted != pod.node:
            kind = "moved" if counted else "missed"
            drifts.append(Drift(kind, pod.uid, pod.key, counted, pod.node))
        elif charge and not charge.reserved and not holds:
            drifts.append(Drift("redundant", pod.uid, pod.key, counted, pod.node))
    for holder, charge in charges.items():
        if not charge.reserved and holder not in seen:
            drifts.append(Drift("redundant", holder, holder, charge.node, ""))
    promises = sum(c.reserved for c in charges.values())
    return Audit(tuple(drifts), pods, len(charges), promises)
