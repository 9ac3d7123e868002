"""When a pod that waits is tried again: the facts that were measured on the stock scheduler."""

from __future__ import annotations

import pytest

from app.sandbox.scheduler.loop import LoopConfig
from app.sandbox.scheduler.queue import BackoffConfig
from app.wire.copying import copied
from app.wire.documents import Document
from tests.sandbox.documents import at, cpu, node, pod
from tests.sandbox.scheduler.scripted import Stage, play, refuse
from tests.sandbox.scheduler.test_loop import ours

PATIENT = LoopConfig(name="", profiles=frozenset(), backoff=BackoffConfig(pops_early=False))


def filters(stage: Stage, name: str = "p") -> int:
    return len(stage.extender.filtered(name))


async def refused(stage: Stage, *names: str) -> None:
    stage.extender.filter = refuse()
    stage.create(*(ours(name) for name in names))
    await stage.clock.advance(30)
    stage.extender.calls.clear()


def test_with_no_events_there_are_exactly_two_attempts() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter = refuse()
        stage.create(ours())
        await stage.clock.advance(45)
        assert filters(stage) == 2

    play(scenario)


def test_every_bind_of_any_pod_wakes_every_refused_pod() -> None:
    async def scenario(stage: Stage) -> None:
        await refused(stage, "a", "b")
        stage.create(pod("foreign"))
        await stage.clock.settle()
        assert filters(stage, "a") >= 1
        assert filters(stage, "b") >= 1

    play(scenario)


def test_a_deletion_wakes() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(pod("foreign"))
        await refused(stage, "p")
        stage.sandbox.server.delete("/pods", at("foreign"))
        await stage.clock.settle()
        assert filters(stage) >= 1

    play(scenario)


def test_a_node_that_goes_wakes_what_the_extender_refused() -> None:
    async def scenario(stage: Stage) -> None:
        await refused(stage, "p")
        stage.sandbox.server.delete("/nodes", at("node-00002", ""))
        await stage.clock.settle()
        # The second attempt comes from the text, which counts the nodes.
        assert stage.extender.filtered("p") == [["node-00000", "node-00001"]] * 2

    play(scenario)


def test_an_annotation_wakes_only_its_pod() -> None:
    async def scenario(stage: Stage) -> None:
        await refused(stage, "a", "b")
        stage.patch("a", {"metadata": {"annotations": {"wake": "1"}}})
        await stage.clock.settle()
        assert (filters(stage, "a"), filters(stage, "b")) == (1, 0)

    play(scenario)


WRITES: dict[str, tuple[Document, str]] = {
    "annotation": ({"metadata": {"annotations": {"wake": "1"}}}, ""),
    "label": ({"metadata": {"labels": {"wake": "1"}}}, ""),
    "toleration": ({"spec": {"tolerations": [{"key": "x", "operator": "Exists"}]}}, ""),
    "condition": ({"status": {"conditions": [{"type": "foreign", "status": "True"}]}}, "status"),
}


@pytest.mark.parametrize("what", WRITES)
def test_any_write_on_a_refused_pod_wakes_it_and_nobody_else(what: str) -> None:
    async def scenario(stage: Stage) -> None:
        await refused(stage, "a", "b")
        change, subresource = copied(WRITES[what])
        if what == "condition":
            told = stage.pod("a")["status"]["conditions"]
            change["status"]["conditions"] = [*told, *change["status"]["conditions"]]
        if what == "toleration":
            own = stage.pod("a")["spec"]["tolerations"]
            change["spec"]["tolerations"] = [*own, *change["spec"]["tolerations"]]
        stage.patch("a", change, subresource=subresource)
        await stage.clock.settle()
        assert (filters(stage, "a"), filters(stage, "b")) == (1, 0)

    play(scenario)


def test_the_last_gate_wakes_its_pod_at_once_and_nobody_else() -> None:
    async def scenario(stage: Stage) -> None:
        await refused(stage, "b")
        stage.create(ours("a", schedulingGates=[{"name": "one"}, {"name": "two"}]))
        stage.patch("a", {"spec": {"schedulingGates": [{"name": "two"}]}})
        await stage.clock.settle()
        assert filters(stage, "a") == 0
        stage.patch("a", {"spec": {"schedulingGates": None}})
        await stage.clock.settle()
        # The second attempt comes from the condition that the first one wrote.
        assert (filters(stage, "a"), filters(stage, "b")) == (2, 0)

    play(scenario)


def test_of_a_gated_pod_only_a_nomination_that_goes_wakes_others() -> None:
    async def scenario(stage: Stage) -> None:
        await refused(stage, "b")
        stage.create(ours("gated", schedulingGates=[{"name": "one"}]))
        stage.patch("gated", {"metadata": {"annotations": {"a": "b"}}})
        nominated = {"status": {"nominatedNodeName": "node-00001"}}
        stage.patch("gated", nominated, subresource="status")
        await stage.clock.settle()
        assert filters(stage, "b") == 0
        stage.patch("gated", {"status": {"nominatedNodeName": None}}, subresource="status")
        await stage.clock.settle()
        assert filters(stage, "b") == 1

    play(scenario)


def test_a_status_of_a_bound_pod_wakes_and_a_lease_does_not() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(pod("foreign"))
        await refused(stage, "p")
        lease = {"metadata": {"name": "node-00001", "namespace": "default"}, "spec": {}}
        stage.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease})
        await stage.clock.settle()
        assert filters(stage) == 0
        stage.patch("foreign", {"status": {"message": "well"}}, subresource="status")
        await stage.clock.settle()
        assert filters(stage) == 1

    play(scenario)


def test_an_annotation_wakes_inside_the_back_off_by_default() -> None:
    async def scenario(stage: Stage) -> None:
        await refused(stage, "p")
        for number in range(3):
            stage.patch("p", {"metadata": {"annotations": {"wake": str(number)}}})
            await stage.clock.settle()
        assert stage.extender.times("filter") == [0, 0, 0]

    play(scenario)


def test_without_early_popping_a_wake_waits_for_the_back_off() -> None:
    async def scenario(stage: Stage) -> None:
        await refused(stage, "p")
        stage.patch("p", {"metadata": {"annotations": {"wake": "1"}}})
        await stage.clock.settle()
        stage.patch("p", {"metadata": {"annotations": {"wake": "2"}}})
        await stage.clock.settle()
        assert filters(stage) == 1
        await stage.clock.advance(11)
        assert filters(stage) == 2

    play(scenario, tuning=PATIENT)


def test_clearing_a_nomination_wakes_everybody() -> None:
    async def scenario(stage: Stage) -> None:
        await refused(stage, "a", "b")
        nominated = {"status": {"nominatedNodeName": "node-00001"}}
        stage.patch("a", nominated, subresource="status")
        await stage.clock.settle()
        assert filters(stage, "b") == 1
        assert "nominatedNodeName" not in stage.pod("a")["status"]

    play(scenario)


def touched(document: Document, what: str) -> Document:
    changed: Document = copied(document)
    match what:
        case "heartbeat":
            for one in changed["status"]["conditions"]:
                one["lastHeartbeatTime"] = "2030-01-01T00:00:00Z"
        case "images":
            changed["status"]["images"] = [{"names": ["x"], "sizeBytes": 1}]
        case "annotation":
            changed["metadata"]["annotations"] = {"a": "b"}
        case "condition":
            changed["status"]["conditions"][0]["status"] = "True"
    return changed


@pytest.mark.parametrize(
    ("what", "wakes"),
    [("heartbeat", 0), ("images", 0), ("annotation", 1), ("condition", 1)],
)
def test_what_a_node_tells_wakes_or_does_not(what: str, wakes: int) -> None:
    async def scenario(stage: Stage) -> None:
        await refused(stage, "p")
        store = stage.sandbox.store
        found = store.get("/nodes", at("node-00001", ""))
        assert found is not None
        store.put("/nodes", touched(found, what))
        await stage.clock.settle()
        assert filters(stage) == wakes

    play(scenario)


def test_a_pod_that_only_plugins_refused_is_not_woken_by_its_annotation() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(ours(resources=cpu("32")))
        await stage.clock.advance(30)
        before = stage.events("FailedScheduling")[0].get("series", {}).get("count", 1)
        stage.patch("p", {"metadata": {"annotations": {"wake": "1"}}})
        await stage.clock.advance(30)
        assert stage.events("FailedScheduling")[0].get("series", {}).get("count", 1) == before

    play(scenario)


def test_a_new_node_that_fits_wakes() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(ours(resources=cpu("32")))
        await stage.clock.advance(30)
        stage.create(node("big", cpus="64"))
        await stage.clock.settle()
        assert stage.node_of("p") == "big"

    play(scenario)


def test_a_finished_pod_makes_room() -> None:
    async def scenario(stage: Stage) -> None:
        for name in ("a", "b", "c", "d"):
            stage.create(
                ours(name, resources=cpu("4"), command=["sleep", "60"], restartPolicy="Never")
            )
        await stage.clock.advance(30)
        assert not stage.node_of("d")
        await stage.clock.advance(31)
        assert stage.node_of("d")

    play(scenario)
