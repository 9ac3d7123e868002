"""Work of which a cluster needs one: done while holding a Lease, or always when there is none."""

import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from uuid import uuid4

from app.kube.client import ApiClient
from app.kube.leader import LeaderElector, LeaseId, LeaseTiming
from app.settings.process import ProcessSettings


async def lead(
    settings: ProcessSettings,
    client: ApiClient,
    *,
    work: Callable[[], Awaitable[None]],
    clock: Callable[[], float],
) -> None:
    """Run ``work`` while leading; it is cancelled when the Lease is lost."""
    if not settings.leader_elect:
        await work()
        return
    lease = LeaseId(
        namespace=settings.leader_elect_resource_namespace,
        name=settings.leader_elect_resource_name,
        identity=f"{socket.gethostname()}_{uuid4()}",
    )
    elector = LeaderElector(
        client,
        lease,
        timing=LeaseTiming(),
        clock=clock,
        now=lambda: datetime.fromtimestamp(clock(), UTC),
    )
    await elector.run(work, _nothing_more)


async def _nothing_more() -> None:
    """The work has been cancelled; what else the process does goes on."""
