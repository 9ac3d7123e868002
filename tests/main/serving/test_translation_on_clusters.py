"""A write that names a pod's UID reaches that pod only, as both API servers answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from app.kube.client import ApiClient
from app.kube.config import load
from app.kube.events import EventRecorder
from app.kube.writer import ClusterWriter
from app.main.serving.translation import ClusterPorts, Home
from app.model.eviction import EvictionAction, Intent, VictimPod
from app.model.ids import NodeName, PodUid, QueueName, group_key
from app.service.ports import Reaction, WriteError
from app.wire import evicted, patches
from app.wire.intents import LONGEST, read_intents, texts_of
from tests.clusters import workloads
from tests.clusters.client import Object
from tests.clusters.cluster import Scheduling
from tests.clusters.embedded import Embedded
from tests.clusters.place import Place, condition
from tests.clusters.resources import DISRUPTION_BUDGETS, PODS
from tests.clusters.rig import Rig, account

KIND = "pumice.sh/Placed"
SAID = patches.pod_condition(KIND, "False", reason="R", message="m", at="2026-01-01T00:00:00Z")

SOMEWHERE = Home("kube-system", "volcano")

Write = Callable[[ClusterPorts, str, str], Awaitable[None]]
WRITES: dict[str, Write] = {
    "condition": lambda ports, at, uid: ports.patch_pod_status(at, "p", SAID, uid=uid),
    "condition taken away": lambda ports, at, uid: ports.patch_pod_status(
        at, "p", patches.without_condition(KIND), uid=uid
    ),
    "nomination": lambda ports, at, uid: ports.patch_pod_status(
        at, "p", patches.nomination(None), uid=uid
    ),
    "mark": lambda ports, at, uid: ports.mark_evicted(at, "p", uid=uid, text="preempt"),
    "wake": lambda ports, at, uid: ports.wake_pod(at, "p", uid=uid, token="7"),
}


@pytest.fixture
def kubeconfig(cluster: Scheduling) -> Path:
    """The extender's own, where there are accounts."""
    if isinstance(cluster, Rig):
        return account(cluster.controlplane, "pumice-extender")
    assert isinstance(cluster, Embedded)
    return Path(cluster.kubeconfig)


async def write_as(
    kubeconfig: Path, write: Write, namespace: str, uid: str, *, home: Home = SOMEWHERE
) -> None:
    """That write is made to the pod ``p``, as if it had that UID."""
    async with ApiClient(load(kubeconfig)) as client:
        events = EventRecorder(
            client, component="pumice", now=lambda: datetime(2026, 1, 1, tzinfo=UTC), suffix=str
        )
        writer = ClusterWriter(client, events=events)
        await write(ClusterPorts(client, writer, home=home), namespace, uid)


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
    write("mark", before["metadata"]["uid"])
    after = place.pod("p")
    said = after["metadata"]["annotations"]
    assert condition(after, KIND) is not None
    assert said[patches.WAKE] == "7"
    assert evicted.read(said, uid=before["metadata"]["uid"]) == "preempt"


def test_a_pod_is_evicted_under_its_own_uid_only(place: Place, kubeconfig: Path) -> None:
    def evict(name: str, uid: str) -> None:
        async def written(ports: ClusterPorts, at: str, uid: str) -> None:
            await ports.evict(at, name, uid=uid)

        asyncio.run(write_as(kubeconfig, written, place.name, uid))

    uid = running(place)
    with pytest.raises(WriteError) as replaced:
        evict("p", "00000000-0000-4000-8000-000000000001")
    assert replaced.value.reaction is Reaction.GONE
    assert condition(place.pod("p"), "DisruptionTarget") is None
    evict("p", uid)
    place.wait_gone()
    with pytest.raises(WriteError) as gone:
        evict("p", uid)
    assert gone.value.reaction is Reaction.GONE


def test_a_budget_keeps_a_pod_from_being_evicted(place: Place, kubeconfig: Path) -> None:
    async def evicted_p(ports: ClusterPorts, at: str, uid: str) -> None:
        await ports.evict(at, "p", uid=uid)

    uid = running(place)
    for name in ("one", "two"):
        place.api.create(budget(name), resource=DISRUPTION_BUDGETS, namespace=place.name)
        place.api.until_one(
            DISRUPTION_BUDGETS, name, is_counted, namespace=place.name, timeout_s=30.0
        )
        with pytest.raises(WriteError) as kept:
            asyncio.run(write_as(kubeconfig, evicted_p, place.name, uid))
        assert kept.value.reaction is Reaction.BUDGET
        assert "udget" in str(kept.value)


def running(place: Place) -> str:
    """The pod ``p`` runs on a node and is ready; returns its UID."""
    [node] = place.add_nodes(1)
    pod = workloads.pod("p", scheduler="nobody", nodeName=node)
    pod["metadata"]["labels"] = {"app": "kept"}
    place.submit_one(pod)
    ready = {"type": "Ready", "status": "True"}
    status = {"status": {"phase": "Running", "conditions": [ready]}}
    place.api.patch(PODS, "p", status, namespace=place.name, subresource="status")
    uid: str = place.pod("p")["metadata"]["uid"]
    return uid


def budget(name: str) -> Object:
    """A budget that lets no pod of the app go."""
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    return {"metadata": {"name": name}, "spec": spec}


def is_counted(budget: Object) -> bool:
    status = budget.get("status", {})
    return bool(status.get("observedGeneration") == 1 and status.get("currentHealthy") == 1)


def test_intents_are_kept_with_the_rights_of_the_extender(
    cluster: Scheduling, place: Place, kubeconfig: Path
) -> None:
    home = Home("pumice-system" if isinstance(cluster, Rig) else "kube-system", place.name)

    async def through(ports: ClusterPorts, at: str, uid: str) -> None:
        name = f"intent-{at}"
        await ports.create_intent(name, "text")
        with pytest.raises(WriteError) as there:
            await ports.create_intent(name, "other")
        assert there.value.reaction is Reaction.CONFLICT
        assert await ports.list_intents() == {name: "text"}
        await ports.delete_intent(name)
        assert await ports.list_intents() == {}

    asyncio.run(write_as(kubeconfig, through, place.name, "", home=home))


VICTIMS = 12_000
"""Their names and UIDs are as long as those of pods of a job."""


def of_many_victims() -> Intent:
    victims = tuple(
        VictimPod(
            PodUid(str(UUID(int=at))),
            "a-namespace-of-a-team",
            f"training-of-a-team-worker-{at}",
            NodeName(f"node-of-a-large-cluster-{at % 5000}"),
            group_key("a-namespace-of-a-team", str(UUID(int=at % 100))),
            QueueName("default"),
            "proportion",
        )
        for at in range(VICTIMS)
    )
    certificate = {"victims": [{"uid": victim.uid} for victim in victims]}
    whom = group_key("default", "high")
    plan = Intent(EvictionAction.RECLAIM, whom, "uid-high", victims, (), True, 7, 12.5)
    return replace(plan, certificate=certificate)


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
def test_a_plan_that_no_config_map_can_hold_is_stored_in_parts(
    cluster: Scheduling, place: Place, kubeconfig: Path
) -> None:
    home = Home("pumice-system" if isinstance(cluster, Rig) else "kube-system", place.name)
    intent = of_many_victims()

    async def through(ports: ClusterPorts, at: str, uid: str) -> None:
        name = f"intent-{at}"
        texts = texts_of(name, intent)
        assert len(texts) > 3
        with pytest.raises(WriteError, match="may not be more than 1048576 bytes") as too_long:
            await ports.create_intent(name, "x" * ((1 << 20) + 1))
        assert too_long.value.reaction is Reaction.REFUSED
        for each, text in texts.items():
            assert not read_intents(await ports.list_intents())
            await ports.create_intent(each, text)
        [read] = read_intents(await ports.list_intents()).values()
        assert read.intent == replace(intent, certificate={})
        for each in read.names:
            await ports.delete_intent(each)
        assert await ports.list_intents() == {}

    assert LONGEST < 1 << 20
    asyncio.run(write_as(kubeconfig, through, place.name, "", home=home))
