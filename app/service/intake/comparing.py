"""Compares the ledger with the API server for as long as the watch may be late.

A listing is ahead of the watch by some milliseconds, and the watch of a listing that is long: what
is being bound or deleted at that moment differs, and is no drift (:mod:`app.cache.audit`).
"""

import asyncio
from dataclasses import replace

from app.cache.audit import Audit, audit
from app.cache.cluster import ClusterCache
from app.service.ports import PodLister
from app.telemetry import metrics

_AGAIN_AFTER_S = (0.25, 0.75, 2.0)


async def compare(cache: ClusterCache, pods: PodLister) -> Audit:
    """What differs in every look, as the last one found it; the metric says how much that is.

    Looks once where nothing differs, and for 3 s where something does. Raises WriteError.
    """
    outcome = audit(cache, await pods.list_pods())
    for pause in _AGAIN_AFTER_S:
        if not outcome.drifts:
            break
        await asyncio.sleep(pause)
        before = frozenset(outcome.drifts)
        latest = audit(cache, await pods.list_pods())
        outcome = replace(latest, drifts=tuple(d for d in latest.drifts if d in before))
    metrics.LEDGER_DRIFT.set(len(outcome.drifts))
    return outcome
