"""Who leads is known although the connection that says so has died without a word."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.cache.cluster import ClusterCache
from app.kube.config import load
from app.main.informers import Informers, lease_kind
from app.service.activity import Activity
from app.service.intake.feed import Feed
from tests.kube.server import (
    PATIENCE_S,
    ScriptedServer,
    line,
    lists_and_watches,
    page,
    resumed,
    watch,
)

NAMESPACE, NAME = "kube-system", "kube-scheduler"
DURATION_S = 15
"""As kube-scheduler writes it, unless it is told otherwise."""
NEW_YEAR = 1_767_225_600.0


def lease(version: int) -> dict[str, Any]:
    """Renewed so many times by the kube-scheduler beside us."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "resourceVersion": str(version)},
        "spec": {
            "holderIdentity": "me_1",
            "leaseDurationSeconds": DURATION_S,
            "renewTime": f"2026-01-01T00:00:{version:02}Z",
        },
    }


def test_a_lease_is_heard_of_again_long_before_it_would_have_ended() -> None:
    assert 2 * lease_kind(NAMESPACE).silence_s < DURATION_S, "the second try may be lost too"


def test_renewals_that_a_dead_watch_did_not_bring_come_with_the_next(tmp_path: Path) -> None:
    kind = replace(lease_kind(NAMESPACE), silence_s=0.2)

    async def scenario(server: ScriptedServer) -> None:
        activity = Activity(
            clock=time.monotonic, elected=True, namespace=NAMESPACE, name=NAME, identity="me"
        )
        renewed = asyncio.Event()

        def settled(_groups: object) -> None:
            seen = activity.leases.get(f"{NAMESPACE}/{NAME}")
            if seen is not None and seen.lease.renew == NEW_YEAR + 3:
                renewed.set()

        feed = Feed(
            ClusterCache(schedulers=frozenset({"volcano"})),
            activity=activity,
            clock=time.monotonic,
            settled=settled,
        )
        informers = Informers([kind], connection=load(server.kubeconfig(tmp_path)), feed=feed)
        informers.start()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await renewed.wait()
        finally:
            await informers.stop()
        assert activity.active
        watches = ["watch" in request.query for request in server.seen]
        assert watches == sorted(watches), "resumed from what it had seen, not listed again"

    with ScriptedServer() as server:
        dead, next_one = watch(line("MODIFIED", lease(2))), watch(line("MODIFIED", lease(3)))
        watches = resumed({"1": dead, "2": next_one, "3": watch()})
        server.on("GET", kind.path, lists_and_watches([page([lease(1)], version=1)], [watches]))
        asyncio.run(scenario(server))
