"""A write that names a pod's UID reaches that pod only, as both API servers answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.kube.client import ApiClient
from app.kube.config import load
from app.kube.events import EventRecorder
from app.kube.writer import ClusterWriter
from app.main.serving.translation import ClusterPorts, Home
from app.service.ports import Reaction, WriteError
from app.wire import patches
from tests.clusters import workloads
from tests.clusters.cluster import Scheduling
from tests.clusters.embedded import Embedded
from tests.clusters.place import Place, condition
from tests.clusters.rig import Rig, account

KIND = "pumice.sh/Placed"
SAID = patches.pod_condition(KIND, "False", reason="R", message="m", at="2026-01-01T00:00:00Z")

Write = Callable[[ClusterPorts, str, str], Awaitable[None]]
WRITES: dict[str, Write] = {
    "condition": lambda ports, at, uid: ports.patch_pod_status(at, "p", SAID, uid=uid),
    "condition taken away": lambda ports, at, uid: ports.patch_pod_status(
        at, "p", patches.without_condition(KIND), uid=uid
    ),
    "nomination": lambda ports, at, uid: ports.patch_pod_status(
        at, "p", patches.nomination(None), uid=uid
    ),
    "wake": lambda ports, at, uid: ports.wake_pod(at, "p", uid=uid, token="7"),
}


@pytest.fixture
def kubeconfig(cluster: Scheduling) -> Path:
    """The extender's own, where there are accounts."""
    if isinstance(cluster, Rig):
        return account(cluster.controlplane, "pumice-extender")
    assert isinstance(cluster, Embedded)
    return Path(cluster.kubeconfig)


async def write_as(kubeconfig: Path, write: Write, namespace: str, uid: str) -> None:
    """That write is made to the pod ``p``, as if it had that UID."""
    async with ApiClient(load(kubeconfig)) as client:
        events = EventRecorder(
            client, component="pumice", now=lambda: datetime(2026, 1, 1, tzinfo=UTC), suffix=str
        )
        await write(
            ClusterPorts(
                client, ClusterWriter(client, events=events), home=Home("kube-system", "volcano")
            ),
            namespace,
            uid,
        )


def test_a_pod_is_written_to_under_its_own_uid_only(place: Place, kubeconfig: Path) -> None:
    def write(name: str, uid: str) -> None:
        asyncio.run(write_as(kubeconfig, WRITES[name], place.name, uid))

    place.submit_one(workloads.pod("p", scheduler="nobody"))
    before = place.pod("p")
    for name in WRITES:
        with pytest.raises(WriteError) as caught:
            write(name, "00000000-0000-4000-8000-000000000001")
        assert caught.value.reaction is Reaction.GONE, name
    assert place.pod("p") == before
    write("condition", before["metadata"]["uid"])
    write("wake", before["metadata"]["uid"])
    after = place.pod("p")
    assert condition(after, KIND) is not None
    assert after["metadata"]["annotations"][patches.WAKE] == "7"
