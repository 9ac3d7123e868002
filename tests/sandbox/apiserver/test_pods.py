"""Pods: completion, what may change, binding, eviction."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.sandbox.apiserver.binding import bind
from app.sandbox.apiserver.errors import ApiError
from app.sandbox.apiserver.eviction import evict
from app.sandbox.apiserver.patches import MERGE_PATCH, STRATEGIC_PATCH
from app.sandbox.apiserver.server import ApiServer
from app.wire.documents import Document, condition
from tests.sandbox.documents import at, bind_pod, cpu, make_server, pod, stored_pod

GATES = [{"name": "pumice.sh/plan"}]
PIN = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchFields": [
                        {"key": "metadata.name", "operator": "In", "values": ["n1"]},
                    ]
                }
            ]
        }
    }
}


def bind_to(server: ApiServer, node: str, **metadata: object) -> None:
    bind_pod(server, "p", node, **metadata)


def patch(server: ApiServer, document: Document, *, subresource: str = "") -> None:
    target = server.target("/pods", at("p"), subresource=subresource)
    server.operations.patch(target, document, content_type=STRATEGIC_PATCH)


def refusal(action: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        action()
    return caught.value.code, caught.value.message


def test_a_new_pod_is_completed() -> None:
    server = make_server(pod(resources={"limits": {"cpu": "1", "memory": "1Gi"}}))
    found = stored_pod(server, "p")
    spec = found["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["restartPolicy"] == "Always"
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert [one["key"] for one in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert found["status"] == {"phase": "Pending", "qosClass": "Guaranteed"}
    assert found["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("whole", "requests", "service"),
    [
        ({"limits": {"cpu": "2"}}, {"cpu": "1500m"}, "Burstable"),
        ({"limits": {"memory": "1Gi"}}, {"cpu": "1500m", "memory": "1Gi"}, "Burstable"),
        ({"requests": {"memory": "1Gi"}}, {"memory": "1Gi"}, "Burstable"),
        (
            {"limits": {"cpu": "1500m", "memory": "1Gi"}},
            {"cpu": "1500m", "memory": "1Gi"},
            "Guaranteed",
        ),
    ],
)
def test_what_a_pod_says_for_the_whole_of_it_is_completed(
    whole: Document, requests: dict[str, str], service: str
) -> None:
    found = stored_pod(make_server(pod() | whole_spec(whole)), "p")
    assert found["spec"]["resources"]["requests"] == requests
    assert found["status"]["qosClass"] == service


def whole_spec(whole: Document) -> Document:
    """A pod spec with resources for the whole pod, which `pod` would give to its container."""
    container = {"name": "c", "image": "busybox", "resources": cpu("1500m")}
    return {"spec": {"containers": [container], "resources": whole}}


@pytest.mark.parametrize("amount", ["-1", "much"])
def test_what_a_pod_says_for_the_whole_of_it_must_make_sense(amount: str) -> None:
    spec = whole_spec({"limits": {"cpu": amount}})
    code, _ = refusal(lambda: make_server(pod() | spec))
    assert code in {400, 422}


def test_on_the_network_of_its_node_a_pod_takes_its_ports_there() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 8081}]
    server = make_server(pod(ports=ports, hostNetwork=True), pod("apart", ports=ports))

    def taken(name: str) -> list[int | None]:
        container = stored_pod(server, name)["spec"]["containers"][0]
        return [port.get("hostPort") for port in container["ports"]]

    assert taken("p") == [80, 8081]
    assert taken("apart") == [None, 8081]


def keyed(**more: object) -> Document:
    """A rule about pods of the same revision."""
    selector = {"matchLabels": {"app": "web"}}
    return {
        "topologyKey": "zone",
        "labelSelector": selector,
        "matchLabelKeys": ["rev", "missing"],
        **more,
    }


def merged(rule: Document) -> list[tuple[str, str, list[str]]]:
    expressions = rule["labelSelector"].get("matchExpressions", [])
    return [(one["key"], one["operator"], one["values"]) for one in expressions]


def test_label_keys_are_written_into_the_selectors_of_a_new_pod() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    weighted = {"weight": 1, "podAffinityTerm": keyed()}
    affinity = {
        "podAffinity": {required: [keyed()], preferred: [weighted]},
        "podAntiAffinity": {required: [keyed(mismatchLabelKeys=["team"])]},
    }
    labels = {"rev": "7", "team": "red"}
    server = make_server(
        pod(
            metadata={"labels": labels},
            affinity=affinity,
            topologySpreadConstraints=[keyed(whenUnsatisfiable="DoNotSchedule", maxSkew=1)],
        )
    )
    spec = stored_pod(server, "p")["spec"]
    revision, team = ("rev", "In", ["7"]), ("team", "NotIn", ["red"])
    near, far = spec["affinity"]["podAffinity"], spec["affinity"]["podAntiAffinity"]
    assert merged(near[required][0]) == [revision]
    assert merged(near[preferred][0]["podAffinityTerm"]) == [revision]
    assert merged(far[required][0]) == [revision, team]
    assert merged(spec["topologySpreadConstraints"][0]) == [revision]


def test_label_keys_without_a_selector_are_refused() -> None:
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [keyed(labelSelector=None)]}
    code, message = refusal(lambda: make_server(pod(affinity={"podAffinity": terms})))
    assert code == 422
    assert "must not be specified when labelSelector is not set" in message


@pytest.mark.parametrize(
    ("resources", "quality"),
    [({}, "BestEffort"), (cpu("1"), "Burstable")],
)
def test_quality_of_service_follows_requests_and_limits(resources: Document, quality: str) -> None:
    server = make_server(pod(resources=resources))
    assert stored_pod(server, "p")["status"]["qosClass"] == quality


def test_priority_comes_from_the_class() -> None:
    server = make_server(pod(priorityClassName="system-node-critical"))
    assert stored_pod(server, "p")["spec"]["priority"] == 2_000_001_000


def test_an_unknown_priority_class_is_refused() -> None:
    server = make_server()
    code, message = refusal(lambda: server.create(pod(priorityClassName="nope")))
    assert code == 403
    assert message == 'pods "p" is forbidden: no PriorityClass with name nope was found'


def test_a_gated_pod_says_so() -> None:
    found = condition(stored_pod(make_server(pod(schedulingGates=GATES)), "p"), "PodScheduled")
    assert found is not None
    assert found["reason"] == "SchedulingGated"


def test_an_invalid_pod_is_refused_with_the_field() -> None:
    code, message = refusal(
        lambda: make_server().create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
        )
    )
    assert (code, message) == (422, 'Pod "p" is invalid: spec.containers: Required value')


def test_gates_can_go_but_not_come() -> None:
    server = make_server(pod(schedulingGates=GATES))
    code, message = refusal(
        lambda: patch(server, {"spec": {"schedulingGates": [{"name": "other"}]}})
    )
    assert code == 422
    assert "only deletion is allowed" in message
    patch(server, {"spec": {"schedulingGates": None}})
    assert "schedulingGates" not in stored_pod(server, "p")["spec"]


def test_one_write_can_pin_and_ungate() -> None:
    server = make_server(pod(schedulingGates=GATES))
    patch(server, {"spec": {"schedulingGates": None, "affinity": PIN}})
    assert stored_pod(server, "p")["spec"]["affinity"] == PIN


def test_placement_is_fixed_once_ungated() -> None:
    server = make_server(pod())
    code, message = refusal(lambda: patch(server, {"spec": {"affinity": PIN}}))
    assert code == 422
    assert "pod updates may not change fields other than" in message


def test_a_gated_pods_affinity_can_only_be_tightened() -> None:
    server = make_server(pod(affinity=PIN, schedulingGates=GATES))
    code, message = refusal(lambda: patch(server, {"spec": {"affinity": None}}))
    assert code == 422
    assert "no additions/deletions to non-empty NodeSelectorTerms" in message


def test_labels_and_annotations_are_free() -> None:
    server = make_server(pod())
    patch(server, {"metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}}})
    found = stored_pod(server, "p")["metadata"]
    assert (found["annotations"], found["labels"]) == ({"a": "b"}, {"c": "d"})
    assert found["generation"] == 1


def test_a_write_that_changes_nothing_takes_no_revision() -> None:
    server = make_server(pod())
    before = server.store.revision
    patch(server, {"spec": {"schedulerName": "default-scheduler"}})
    assert server.store.revision == before


def test_binding_sets_node_condition_and_annotations_and_clears_the_nomination() -> None:
    server = make_server(pod())
    patch(server, {"status": {"nominatedNodeName": "n1"}}, subresource="status")
    uid = stored_pod(server, "p")["metadata"]["uid"]
    bind_to(server, "n1", uid=uid, annotations={"rank": "0"})
    found = stored_pod(server, "p")
    assert found["spec"]["nodeName"] == "n1"
    assert found["metadata"]["annotations"] == {"rank": "0"}
    assert "nominatedNodeName" not in found["status"]
    scheduled = condition(found, "PodScheduled")
    assert scheduled is not None
    assert scheduled["status"] == "True"


def test_a_bound_pod_is_not_bound_again() -> None:
    server = make_server(pod())
    bind_to(server, "n1")
    assert refusal(lambda: bind_to(server, "n2")) == (
        409,
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"',
    )


def test_a_gated_pod_is_not_bound() -> None:
    server = make_server(pod(schedulingGates=GATES))
    code, message = refusal(lambda: bind_to(server, "n1"))
    assert code == 409
    assert "pod p has non-empty .spec.schedulingGates" in message


def test_another_pod_of_the_same_name_is_not_bound() -> None:
    server = make_server(pod())
    code, message = refusal(lambda: bind_to(server, "n1", uid="other"))
    assert code == 409
    assert "Precondition failed: UID in precondition: other" in message


@pytest.mark.parametrize("subresource", ["", "status"])
def test_a_patch_for_another_pod_of_the_same_name_is_refused(subresource: str) -> None:
    """Not a conflict: a patch has no precondition, and no patch may change the UID."""
    server = make_server(pod())
    body = {"metadata": {"uid": "other"}, "status": {"nominatedNodeName": "n1"}}
    assert refusal(lambda: patch(server, body, subresource=subresource)) == (
        422,
        'Pod "p" is invalid: metadata.uid: Invalid value: "other": field is immutable',
    )
    assert "nominatedNodeName" not in stored_pod(server, "p")["status"]


def test_another_pod_of_the_same_name_is_not_replaced() -> None:
    server = make_server(pod())
    body = {**stored_pod(server, "p"), "metadata": {"name": "p", "uid": "other"}}
    code, message = refusal(
        lambda: server.operations.replace(server.target("/pods", at("p")), body)
    )
    assert code == 409
    assert "Precondition failed: UID in precondition: other" in message


def test_a_bound_pod_cannot_be_nominated() -> None:
    server = make_server(pod())
    bind_to(server, "n1")
    code, message = refusal(
        lambda: patch(server, {"status": {"nominatedNodeName": "n2"}}, subresource="status")
    )
    assert code == 422
    assert "may not be set on pods that are already bound to a node" in message


def test_an_update_of_the_pod_leaves_the_status_alone_and_the_other_way_round() -> None:
    server = make_server(pod())
    patch(server, {"status": {"phase": "Running"}})
    assert stored_pod(server, "p")["status"]["phase"] == "Pending"
    patch(server, {"spec": {"activeDeadlineSeconds": 5}}, subresource="status")
    assert "activeDeadlineSeconds" not in stored_pod(server, "p")["spec"]


def budget(**spec: object) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, **spec},
    }


def eviction_server(**spec: object) -> ApiServer:
    server = make_server(budget(**spec), pod(metadata={"labels": {"app": "a"}}))
    ready = {"type": "Ready", "status": "True"}
    patch(server, {"status": {"phase": "Running", "conditions": [ready]}}, subresource="status")
    return server


def evict_it(server: ApiServer, name: str = "p", *, dry_run: bool = False) -> None:
    evict(
        server.operations,
        server.target("/pods", at("p"), subresource="eviction"),
        {"metadata": {"name": name}},
        deletion=server.deletion,
        disruption=server.disruption,
        dry_run=dry_run,
    )


def test_a_budget_refuses_an_eviction_that_would_break_it() -> None:
    server = eviction_server(minAvailable=1)
    code, message = refusal(lambda: evict_it(server))
    assert code == 429
    assert message == "Cannot evict pod as it would violate the pod's disruption budget."


def test_a_budget_with_room_lets_the_pod_go() -> None:
    server = eviction_server(minAvailable=0)
    found = server.store.get("policy/poddisruptionbudgets", at("b"))
    assert found is not None
    assert found["status"]["disruptionsAllowed"] == 1
    evict_it(server)
    assert server.store.get("/pods", at("p")) is None


def test_an_eviction_must_name_the_pod() -> None:
    server = make_server(pod())
    assert refusal(lambda: evict_it(server, "other")) == (
        400,
        "name in URL does not match name in Eviction object",
    )
    assert stored_pod(server, "p")


def test_what_is_only_tried_is_not_done() -> None:
    server = make_server(pod())
    before = stored_pod(server, "p")
    target = server.target("/pods", at("p"), subresource="binding")
    binding = {"metadata": {"name": "p"}, "target": {"name": "n1"}}
    bind(server.operations, target, binding, dry_run=True)
    evict_it(server, dry_run=True)
    assert stored_pod(server, "p") == before


def test_a_binding_must_name_the_pod() -> None:
    server = make_server(pod())
    target = server.target("/pods", at("p"), subresource="binding")
    assert refusal(lambda: bind(server.operations, target, {"target": {"name": "n1"}})) == (
        400,
        "name in URL does not match name in Binding object",
    )


def test_the_standard_tolerations_come_back() -> None:
    server = make_server(pod())
    before = server.store.revision
    target = server.target("/pods", at("p"))
    server.operations.patch(target, {"spec": {"tolerations": []}}, content_type=MERGE_PATCH)
    assert server.store.revision == before


def test_a_name_follows_the_rules() -> None:
    code, message = refusal(lambda: make_server().create(pod("Bad_Name")))
    assert code == 422
    assert message.startswith(
        'Pod "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123'
    )


def test_a_change_of_where_a_pod_may_go_is_checked_too() -> None:
    server = make_server(pod(schedulingGates=GATES))
    term = {"matchExpressions": [{"key": "zone"}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    code, message = refusal(
        lambda: patch(server, {"spec": {"affinity": {"nodeAffinity": required}}})
    )
    assert code == 422
    assert message.endswith(
        'matchExpressions[0].operator: Invalid value: "": not a valid selector operator'
    )
