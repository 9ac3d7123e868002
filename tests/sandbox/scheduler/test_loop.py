"""The loop's calls, writes and order of things."""

from __future__ import annotations

import asyncio

import pytest

from app.sandbox.assembly import Form
from app.sandbox.nodes import NodeSpec
from app.wire.documents import Document
from tests.sandbox.documents import at, bind_pod, cpu, node, pod
from tests.sandbox.scheduler.scripted import Stage, error, play, refuse

GATES = [{"name": "pumice.sh/plan"}]


def ours(name: str = "p", **spec: object) -> Document:
    document = pod(name, metadata=None, **spec)
    document["spec"]["schedulerName"] = "volcano"
    return document


def pinned(*names: str) -> Document:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


def test_a_pod_goes_through_filter_prioritize_and_bind() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.prioritize = lambda _: [{"Host": "node-00002", "Score": 10}]
        stage.create(ours())
        await stage.clock.settle()
        assert stage.extender.verbs() == ["filter", "prioritize", "bind"]
        assert stage.node_of("p") == "node-00002"
        assert stage.pod("p")["status"]["phase"] == "Running"
        event = stage.events("Scheduled")[0]
        assert event["message"] == "Successfully assigned default/p to node-00002"

    play(scenario)


def test_the_request_has_the_recorded_shape() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(ours())
        await stage.clock.settle()
        args = stage.extender.calls[0][2]
        assert list(args) == ["Pod", "Nodes", "NodeNames"]
        assert args["Nodes"] is None
        assert not {"apiVersion", "kind"} & set(args["Pod"])
        bound = next(args for verb, _, args in stage.extender.calls if verb == "bind")
        assert list(bound) == ["PodName", "PodNamespace", "PodUID", "Node"]

    play(scenario)


def test_one_node_is_not_prioritized() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter = lambda _: {"NodeNames": ["node-00001"]}
        stage.create(ours())
        await stage.clock.settle()
        assert stage.extender.verbs() == ["filter", "bind"]

    play(scenario)


def test_a_pinned_pod_is_offered_its_node_alone() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(ours(affinity=pinned("node-00001")))
        await stage.clock.settle()
        assert stage.extender.filtered("p") == [["node-00001"]]
        assert stage.node_of("p") == "node-00001"

    play(scenario)


def test_in_form_a_the_stock_profile_never_reaches_the_extender() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(pod())
        await stage.clock.settle()
        assert stage.node_of("p")
        assert stage.extender.calls == []

    play(scenario)


def test_in_form_c_every_pod_reaches_the_extender() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(pod())
        await stage.clock.settle()
        assert stage.extender.verbs() == ["filter", "prioritize", "bind"]

    play(scenario, form=Form.ALL_PODS)


def test_nodes_that_plugins_refuse_are_not_sent() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(node("big", cpus="64"))
        stage.create(ours(resources=cpu("32")))
        await stage.clock.settle()
        assert stage.extender.filtered("p") == [["big"]]

    play(scenario)


def test_the_extender_is_not_asked_where_nothing_fits() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(ours(resources=cpu("32")))
        await stage.clock.settle()
        assert stage.extender.calls == []
        assert stage.told("p") == (
            "Unschedulable",
            "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption:"
            " 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
        )

    play(scenario)


def test_a_refusal_is_told_as_the_stock_scheduler_does() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter = refuse()
        stage.create(ours())
        await stage.clock.settle()
        assert stage.told("p") == (
            "Unschedulable",
            "0/3 nodes are available: 3 waiting for gang. no new claims to deallocate, preemption:"
            " 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
        )
        assert [event["type"] for event in stage.events("FailedScheduling")] == ["Warning"]

    play(scenario)


def test_a_gated_pod_waits_for_its_last_gate() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(ours(schedulingGates=GATES))
        await stage.clock.advance(60)
        assert stage.extender.calls == []
        stage.patch("p", {"spec": {"schedulingGates": None, "affinity": pinned("node-00002")}})
        await stage.clock.settle()
        assert stage.node_of("p") == "node-00002"
        assert stage.extender.filtered("p") == [["node-00002"]]

    play(scenario)


def test_a_nominated_node_is_tried_alone_first() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(ours(schedulingGates=GATES))
        nominated = {"status": {"nominatedNodeName": "node-00001"}}
        stage.patch("p", nominated, subresource="status")
        stage.patch("p", {"spec": {"schedulingGates": None}})
        await stage.clock.settle()
        assert stage.extender.filtered("p") == [["node-00001"]]
        assert stage.node_of("p") == "node-00001"
        assert "nominatedNodeName" not in stage.pod("p")["status"]

    play(scenario)


def test_a_refused_nomination_is_cleared_after_the_full_path() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter = refuse()
        stage.create(ours(schedulingGates=GATES))
        nominated = {"status": {"nominatedNodeName": "node-00001"}}
        stage.patch("p", nominated, subresource="status")
        stage.patch("p", {"spec": {"schedulingGates": None}})
        await stage.clock.settle()
        assert [len(names) for names in stage.extender.filtered("p")][:2] == [1, 3]
        assert "nominatedNodeName" not in stage.pod("p")["status"]

    play(scenario)


def test_a_nominated_gated_pod_reserves_against_its_equals_only() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "high"},
                "value": 10,
            },
            ours("waiting", schedulingGates=GATES, resources=cpu("4")),
        )
        nominated = {"status": {"nominatedNodeName": "node-00001"}}
        stage.patch("waiting", nominated, subresource="status")
        stage.create(ours("equal", affinity=pinned("node-00001"), resources=cpu("1")))
        await stage.clock.settle()
        assert stage.told("equal")[0] == "Unschedulable"
        high = {"priorityClassName": "high", "resources": cpu("1")}
        stage.create(ours("higher", affinity=pinned("node-00001"), **high))
        await stage.clock.settle()
        assert stage.node_of("higher") == "node-00001"

    play(scenario)


def test_a_held_bind_keeps_the_room_and_does_not_stop_the_loop() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.holds = asyncio.Event()
        stage.create(ours("held", resources=cpu("4")), ours("other", resources=cpu("4")))
        await stage.clock.settle()
        assert stage.extender.verbs().count("bind") == 1
        assert stage.told("other")[0] == "Unschedulable"
        stage.sandbox.server.delete("/pods", at("held"))
        await stage.clock.settle()
        assert stage.extender.verbs().count("bind") == 2
        stage.extender.holds.set()
        await stage.clock.settle()
        assert stage.node_of("other") == "node-00000"

    play(scenario, nodes=NodeSpec(count=1))


def test_a_bind_error_climbs_the_ladder() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.bind_error = "gang timed out"
        stage.create(ours())
        await stage.clock.advance(36)
        assert stage.extender.times("bind") == [0, 2, 5, 10, 19, 30]
        assert stage.told("p") == ("SchedulerError", "gang timed out")

    play(scenario, nodes=NodeSpec(count=1))


def test_a_filter_error_climbs_the_ladder_and_nothing_shortens_it() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter = error("not yet")
        stage.create(ours())
        await stage.clock.settle()
        stage.patch("p", {"metadata": {"annotations": {"wake": "up"}}})
        stage.create(pod("foreign"))
        await stage.clock.advance(0.5)
        assert stage.extender.times("filter") == [0]
        await stage.clock.advance(10)
        assert stage.extender.times("filter") == [0, 2, 5, 10]
        assert stage.told("p") == ("SchedulerError", "not yet")

    play(scenario)


def test_an_unreachable_extender_is_an_error() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.unreachable = "dial tcp: connect: connection refused"
        stage.create(ours())
        await stage.clock.settle()
        assert stage.told("p") == (
            "SchedulerError",
            'Post "http://extender/filter": dial tcp: connect: connection refused',
        )
        stage.extender.unreachable = ""
        await stage.clock.advance(3)
        assert stage.node_of("p")

    play(scenario)


def test_bound_is_what_the_node_name_says() -> None:
    """An extender that dies after its POST: the pod stays bound and is not tried again."""

    async def scenario(stage: Stage) -> None:
        stage.extender.bind_error = 'Post "http://extender/bind": EOF'
        stage.extender.holds = asyncio.Event()
        stage.create(ours())
        await stage.clock.settle()
        server = stage.sandbox.server
        bind_pod(server, "p", "node-00001")
        stage.extender.holds.set()
        await stage.clock.advance(30)
        assert stage.node_of("p") == "node-00001"
        assert stage.extender.verbs().count("bind") == 1
        assert "EOF" in stage.events("FailedScheduling")[0]["message"]

    play(scenario)


def test_the_more_important_pod_goes_first() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(
            ours("low", resources=cpu("4")),
            ours("high", resources=cpu("4"), priorityClassName="system-cluster-critical"),
        )
        await stage.clock.settle()
        assert stage.node_of("high")
        assert not stage.node_of("low")

    play(scenario, nodes=NodeSpec(count=1))


@pytest.mark.parametrize("kept", [True, False])
def test_an_answer_that_names_an_unknown_node_is_an_error(kept: bool) -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter = lambda args: {"NodeNames": ["nowhere", *args["NodeNames"][:kept]]}
        stage.create(ours())
        await stage.clock.settle()
        assert stage.told("p")[0] == "SchedulerError"
        assert "not found in the input node list" in stage.told("p")[1]

    play(scenario)


def claim(name: str, **spec: object) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": spec,
    }


def claiming(name: str, claim: str) -> Document:
    return ours(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}])


def test_a_pod_waits_for_the_claims_that_it_names() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(claiming("p", "nope"))
        await stage.clock.settle()
        assert stage.told("p") == (
            "Unschedulable",
            '0/3 nodes are available: persistentvolumeclaim "nope" not found. not found',
        )
        assert stage.extender.verbs() == []
        stage.create(claim("nope"))
        await stage.clock.advance(2)
        assert stage.told("p") == (
            "Unschedulable",
            "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
        )
        bound = {
            "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": "v"},
        }
        stage.sandbox.server.patch("/persistentvolumeclaims", at("nope"), bound)
        await stage.clock.advance(4)
        assert stage.node_of("p")

    play(scenario)


def test_a_claim_of_a_class_that_there_is_is_bound_at_once() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "fast"},
                "provisioner": "example.com/disks",
            }
        )
        stage.create(claim("data", storageClassName="fast"))
        stage.create(claiming("p", "data"))
        await stage.clock.settle()
        assert stage.node_of("p")
        stored = stage.sandbox.store.get("/persistentvolumeclaims", at("data"))
        assert stored is not None
        assert stored["status"]["phase"] == "Bound"

    play(scenario)


def test_a_claim_on_its_way_out_is_of_no_use() -> None:
    async def scenario(stage: Stage) -> None:
        going = claim("going")
        going["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
        stage.create(going)
        stage.sandbox.server.delete("/persistentvolumeclaims", at("going"))
        stage.create(claiming("p", "going"))
        await stage.clock.settle()
        assert 'persistentvolumeclaim "going" is being deleted' in stage.told("p")[1]

    play(scenario)


def test_a_pod_that_cannot_be_read_costs_its_own_turn_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No API server would take it; what stands in the store may be odd all the same."""

    async def scenario(stage: Stage) -> None:
        stage.create(ours("odd", schedulingGates=GATES))
        constraint = {"whenUnsatisfiable": "DoNotSchedule", "topologyKey": "kubernetes.io/hostname"}
        odd = stage.pod("odd")
        spec = {**odd["spec"], "schedulingGates": [], "topologySpreadConstraints": [constraint]}
        stage.sandbox.store.put("/pods", {**odd, "spec": spec})
        await stage.clock.settle()
        stage.create(ours("well"))
        await stage.clock.settle()
        assert stage.node_of("well")
        assert stage.told("odd") == ("SchedulerError", "running an attempt: KeyError('maxSkew')")
        await stage.clock.advance(2)
        attempts = [one for one in caplog.records if one.getMessage() == "attempt failed"]
        assert len(attempts) == 2

    play(scenario)
