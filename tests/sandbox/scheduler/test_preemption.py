"""Preemption with the extender's preempt verb: three nodes of 2 CPUs, full with six pods of 1."""

from __future__ import annotations

from app.sandbox.documents import Document
from app.sandbox.nodes import NodeSpec
from tests.sandbox.documents import at, cpu
from tests.sandbox.scheduler.scripted import Scenario, Stage, play
from tests.sandbox.scheduler.test_loop import ours

HIGH: Document = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}
LOW = [f"low{number}" for number in range(6)]


def full(scenario: Scenario) -> None:
    async def prepared(stage: Stage) -> None:
        stage.create(HIGH, *(ours(name, resources=cpu("1")) for name in LOW))
        await stage.clock.settle()
        assert all(stage.node_of(name) for name in LOW)
        stage.extender.calls.clear()
        await scenario(stage)

    play(prepared, nodes=NodeSpec(count=3, cpu="2"))


def left(stage: Stage) -> int:
    return sum(1 for name in LOW if stage.sandbox.store.get("/pods", at(name)))


def high() -> Document:
    return ours("high", resources=cpu("2"), priorityClassName="high")


def test_the_victims_go_and_the_pod_takes_the_nominated_node() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(high())
        await stage.clock.advance(5)
        assert stage.node_of("high")
        assert left(stage) == 4
        assert stage.extender.verbs() == ["preempt", "filter", "bind"]
        assert stage.extender.filtered("high") == [[stage.node_of("high")]]
        uid = stage.pod("high")["metadata"]["uid"]
        notes = {event["message"] for event in stage.events("Preempted")}
        assert notes == {f"Preempted by pod {uid} on node {stage.node_of('high')}"}

    full(scenario)


def test_the_request_names_victims_by_uid() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(high())
        await stage.clock.settle()
        args = stage.extender.calls[0][2]
        assert args["NodeNameToVictims"] is None
        victims = args["NodeNameToMetaVictims"]["node-00000"]
        assert victims["NumPDBViolations"] == 0
        assert [list(pod) for pod in victims["Pods"]] == [["UID"], ["UID"]]

    full(scenario)


def test_an_empty_answer_is_a_veto() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.preempt = lambda _: {"NodeNameToMetaVictims": {}}
        stage.create(high())
        await stage.clock.advance(5)
        assert left(stage) == 6
        assert stage.told("high")[1] == (
            "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate,"
            " preemption: no candidate node for preemption"
        )

    full(scenario)


def test_a_subset_of_nodes_is_obeyed() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.preempt = lambda args: {
            "NodeNameToMetaVictims": {"node-00002": args["NodeNameToMetaVictims"]["node-00002"]}
        }
        stage.create(high())
        await stage.clock.advance(5)
        assert stage.node_of("high") == "node-00002"

    full(scenario)


def test_fewer_victims_than_sent_are_obeyed_without_a_check() -> None:
    async def scenario(stage: Stage) -> None:
        def fewer(args: Document) -> Document:
            victims = args["NodeNameToMetaVictims"]
            name = min(victims)
            return {"NodeNameToMetaVictims": {name: {"Pods": victims[name]["Pods"][:1]}}}

        stage.extender.preempt = fewer
        stage.create(high())
        await stage.clock.advance(5)
        assert left(stage) < 5

    full(scenario)


def test_an_empty_victim_list_evicts_nobody() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.preempt = lambda _: {"NodeNameToMetaVictims": {"node-00000": {"Pods": []}}}
        stage.create(high())
        await stage.clock.advance(5)
        assert left(stage) == 6
        expected = 'preemption: expected at least one victim pod on node "node-00000"'
        assert expected in stage.told("high")[1]

    full(scenario)


def test_a_pod_that_never_preempts_does_not() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create({**HIGH, "metadata": {"name": "calm"}, "preemptionPolicy": "Never"})
        stage.create(ours("high", resources=cpu("2"), priorityClassName="calm"))
        await stage.clock.advance(5)
        assert stage.extender.calls == []
        assert left(stage) == 6

    full(scenario)
