"""Preemption with the extender's preempt verb: three nodes of 2 CPUs, full with six pods of 1."""

from __future__ import annotations

import json

import pytest

from app.sandbox.apiserver.eviction import evict
from app.sandbox.nodes import NodeSpec
from app.sandbox.scheduler.loop import LoopConfig
from app.wire.documents import Document
from tests.sandbox.documents import at, cpu, node
from tests.sandbox.scheduler.scripted import Scenario, Stage, play, refuse
from tests.sandbox.scheduler.test_extender_calls import RECORDED, shape
from tests.sandbox.scheduler.test_loop import ours, pinned

HIGH: Document = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}
LOW = [f"low{number}" for number in range(6)]


def full(scenario: Scenario, *, lasting: bool = False) -> None:
    """``lasting`` pods take their whole grace period to go."""
    shell = {"command": ["sh", "-c", "sleep 999"]} if lasting else {}

    async def prepared(stage: Stage) -> None:
        stage.create(HIGH, *(ours(name, resources=cpu("1"), **shell) for name in LOW))
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


def test_the_body_has_the_shape_that_was_recorded() -> None:
    recorded = json.loads((RECORDED / "preempt.request.json").read_text())

    async def scenario(stage: Stage) -> None:
        stage.create(high())
        await stage.clock.settle()
        args = stage.extender.calls[0][2]
        assert set(args) == set(recorded)
        sent, known = args["NodeNameToMetaVictims"], recorded["NodeNameToMetaVictims"]
        assert shape(sent["node-00001"]) == shape(known["node-00001"])

    full(scenario)


def test_a_veto_leaves_the_nomination_as_it_is_and_is_asked_again_only_by_events() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.preempt = lambda _: {"NodeNameToMetaVictims": {}}
        stage.create(high())
        await stage.clock.advance(60)
        assert stage.extender.verbs() == ["preempt"]
        stage.patch("high", {"status": {"nominatedNodeName": "node-00001"}}, subresource="status")
        stage.create(node("new", cpus="1"))
        await stage.clock.advance(1)
        assert stage.extender.verbs().count("preempt") >= 2
        assert stage.pod("high")["status"]["nominatedNodeName"] == "node-00001"

    full(scenario)


@pytest.mark.parametrize("how", ["unknown uid", "error", "unreachable"])
def test_a_reply_that_cannot_be_used_evicts_nobody(how: str) -> None:
    async def scenario(stage: Stage) -> None:
        if how == "unreachable":
            stage.extender.unreachable = "EOF"
        elif how == "unknown uid":
            stage.extender.preempt = lambda _: {
                "NodeNameToMetaVictims": {"node-00002": {"Pods": [{"UID": "nobody"}]}}
            }
        else:
            stage.extender.preempt = lambda _: {"Error": "no"}
        stage.create(high())
        await stage.clock.advance(5)
        assert left(stage) == 6
        assert stage.told("high")[0] == "Unschedulable"

    full(scenario)


def test_while_its_victims_go_a_pod_does_not_look_for_more() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(high())
        await stage.clock.advance(1)
        assert stage.extender.verbs() == ["preempt"]
        stage.create(node("new", cpus="1"))
        await stage.clock.advance(1)
        assert stage.extender.verbs() == ["preempt"]
        assert "terminating pod on the nominated node" in stage.told("high")[1]
        await stage.clock.advance(60)
        assert stage.node_of("high")
        assert left(stage) == 4

    full(scenario, lasting=True)


def evict_one(stage: Stage, name: str) -> None:
    server = stage.sandbox.server
    target = server.target("/pods", at(name), subresource="eviction")
    body = {"metadata": {"name": name}}
    evict(
        server.operations,
        target,
        body,
        deletion=server.deletion,
        disruption=server.disruption,
    )


def test_an_evicted_pod_keeps_its_room_until_its_kubelet_is_done() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(ours("next", resources=cpu("1")))
        await stage.clock.settle()
        evict_one(stage, "low0")
        await stage.clock.advance(25)
        assert left(stage) == 6
        assert not stage.node_of("next")
        await stage.clock.advance(10)
        assert left(stage) == 5
        assert stage.node_of("next")

    full(scenario, lasting=True)


def test_a_finalizer_keeps_an_evicted_pod_but_no_room_once_its_containers_have_ended() -> None:
    async def scenario(stage: Stage) -> None:
        held = {"metadata": {"finalizers": ["example.com/held"]}}
        stage.sandbox.server.patch("/pods", at("low0"), held)
        stage.create(ours("next", resources=cpu("1")))
        await stage.clock.settle()
        evict_one(stage, "low0")
        await stage.clock.advance(25)
        assert not stage.node_of("next")
        await stage.clock.advance(600)
        assert stage.pod("low0")["status"]["phase"] == "Failed"
        assert stage.pod("low0")["metadata"]["finalizers"] == ["example.com/held"]
        assert stage.node_of("next")

    full(scenario, lasting=True)


def test_a_second_pod_leaves_the_first_the_room_of_its_victims() -> None:
    async def scenario(stage: Stage) -> None:
        one, two = (ours(name, resources=cpu("1"), priorityClassName="high") for name in "ab")
        stage.create(one, two)
        await stage.clock.advance(1)
        assert stage.extender.verbs() == ["preempt", "preempt"]
        first, second = (call[2]["NodeNameToMetaVictims"] for call in stage.extender.calls)
        assert [len(first[name]["Pods"]) for name in sorted(first)] == [1, 1, 1]
        assert [len(second[name]["Pods"]) for name in sorted(second)] == [2, 1, 1]
        await stage.clock.advance(60)
        assert stage.node_of("a") == "node-00000"
        assert stage.node_of("b") == "node-00001"
        assert left(stage) == 4

    full(scenario, lasting=True)


@pytest.mark.parametrize("key", ["FailedNodes", "FailedAndUnresolvableNodes"])
def test_what_the_extender_alone_refuses_is_no_matter_for_preemption(key: str) -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(HIGH, *(ours(name, resources=cpu("1")) for name in LOW[:3]))
        await stage.clock.settle()
        stage.extender.calls.clear()
        stage.extender.filter = lambda args: {key: dict.fromkeys(args["NodeNames"], "no")}
        stage.create(ours("high", resources=cpu("1"), priorityClassName="high"))
        await stage.clock.advance(0.1)
        assert "preempt" not in stage.extender.verbs()
        assert left(stage) == 3

    play(scenario, nodes=NodeSpec(count=3, cpu="4"))


def test_refusing_with_failed_nodes_above_lower_pods_is_a_hot_loop() -> None:
    """The dry run's errors come in another order each time, so each attempt wakes the next."""

    async def scenario(stage: Stage) -> None:
        names = [f"low{number}" for number in range(20)]
        stage.create(HIGH, *(ours(name, resources=cpu("1")) for name in names))
        await stage.clock.advance(1)
        stage.extender.calls.clear()
        stage.extender.filter = lambda args: {"FailedNodes": dict.fromkeys(args["NodeNames"], "no")}
        stage.create(ours("high", resources=cpu("1"), priorityClassName="high"))
        await stage.clock.advance(2)
        assert "expected at least one victim pod on node" in stage.told("high")[1]
        assert len(stage.extender.filtered("high")) > 200

    costly = LoopConfig(name="", profiles=frozenset(), attempt_seconds=0.005)
    play(scenario, nodes=NodeSpec(count=20, cpu="4"), tuning=costly)


def test_a_pod_that_never_preempts_does_not() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create({**HIGH, "metadata": {"name": "calm"}, "preemptionPolicy": "Never"})
        stage.create(ours("high", resources=cpu("2"), priorityClassName="calm"))
        await stage.clock.advance(5)
        assert stage.extender.calls == []
        assert left(stage) == 6

    full(scenario)


def test_a_node_that_goes_while_the_extender_is_asked_counts_no_more() -> None:
    async def scenario(stage: Stage) -> None:
        def gone(args: Document) -> Document:
            stage.sandbox.server.delete("/nodes", at("node-00000", ""))
            stage.extender.filter = refuse()
            return refuse()(args)

        stage.create(ours("filler", affinity=pinned("node-00000"), resources=cpu("2")))
        await stage.clock.settle()
        stage.extender.filter = gone
        stage.create(ours("p", resources=cpu("2")))
        await stage.clock.settle()
        assert stage.told("p") == (
            "Unschedulable",
            "0/1 nodes are available: 1 waiting for gang. no new claims to deallocate,"
            " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
        )

    play(scenario, nodes=NodeSpec(count=2, cpu="2"))
