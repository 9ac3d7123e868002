"""What becomes of pods whose node is gone, in virtual time."""

from __future__ import annotations

from app.sandbox.orphans import PERIOD_S, QUARANTINE_S
from app.wire.documents import Document, condition
from tests.sandbox.documents import at, node, pod, stored_pod
from tests.sandbox.scheduler.scripted import Scenario, Stage, play

LONGEST_S = QUARANTINE_S + PERIOD_S


def running(scenario: Scenario, **metadata: object) -> None:
    """The pod ``p`` runs on ``node-00000``, which is then deleted."""

    async def prepared(stage: Stage) -> None:
        stage.create(pod(metadata=metadata, nodeName="node-00000"))
        await stage.clock.settle()
        assert stage.pod("p")["status"]["phase"] == "Running"
        stage.sandbox.server.delete("/nodes", at("node-00000", ""))
        await scenario(stage)

    play(prepared)


def is_there(stage: Stage) -> bool:
    return stage.sandbox.store.get("/pods", at("p")) is not None


def test_a_pod_whose_node_is_gone_is_deleted_after_a_while() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.clock.advance(QUARANTINE_S - 1)
        assert is_there(stage)
        await stage.clock.advance(PERIOD_S + 1)
        assert not is_there(stage)

    running(scenario)


def test_it_is_failed_by_then_and_says_why() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.clock.advance(LONGEST_S)
        lost: Document = stored_pod(stage.sandbox.server, "p")
        assert lost["status"]["phase"] == "Failed"
        told = condition(lost, "DisruptionTarget") or {}
        assert (told["reason"], told["message"]) == (
            "DeletionByPodGC",
            "PodGC: node no longer exists",
        )

    running(scenario, finalizers=["example.com/look"])


def test_a_pod_bound_to_a_node_that_never_was_goes_too() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(pod(nodeName="nonode"))
        await stage.clock.advance(QUARANTINE_S - 1)
        assert stage.pod("p")["status"]["phase"] == "Pending"
        await stage.clock.advance(PERIOD_S + 1)
        assert not is_there(stage)

    play(scenario)


def test_a_node_that_comes_back_in_time_keeps_its_pods() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.clock.advance(QUARANTINE_S - PERIOD_S)
        stage.create(node("node-00000"))
        await stage.clock.advance(2 * LONGEST_S)
        assert stage.pod("p")["status"]["phase"] == "Running"

    running(scenario)


def test_pods_on_other_nodes_and_on_none_are_left_alone() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(pod("other", nodeName="node-00001"))
        stage.create(pod("free", schedulerName="nobody"))
        await stage.clock.advance(2 * LONGEST_S)
        assert stage.pod("other")["status"]["phase"] == "Running"
        assert stage.pod("free")["status"]["phase"] == "Pending"

    running(scenario)
