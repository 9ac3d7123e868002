"""The same requests to the embedded API server and to kube-apiserver: the same refusals.

Compared are the status code, the reason, the causes and the first line of the message of every
answer, and of the answers that are objects the parts that schedulers and controllers live on. The
real server walks the fields of a custom resource in no particular order, so the order in which it
names several causes says nothing and is not compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from httpx2 import Client

from app.wire.documents import Document
from tests.sandbox.apiserver.likeness import (
    JSON,
    MERGE,
    NAMESPACE,
    PODS,
    STRATEGIC,
    WIDGETS,
    Servers,
    Step,
    in_one_order,
    seen,
    sent,
)
from tests.sandbox.documents import node, pod, widget

pytestmark = pytest.mark.real

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
GATES = [{"name": "pumice.sh/plan"}]
ANOTHER: Document = {"uid": "00000000-0000-4000-8000-000000000001"}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
            ]
        }
    }
}


def binding(name: str, **metadata: object) -> Step:
    body = {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": "n1"}}
    return Step("POST", f"{PODS}/{name}/binding", body)


def scale(*, replicas: int, **metadata: str) -> Document:
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "d", "namespace": "default", **metadata},
        "spec": {"replicas": replicas},
    }


DEPLOYMENT: Document = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "d"}},
        "template": {
            "metadata": {"labels": {"app": "d"}},
            "spec": {"containers": [{"name": "c", "image": "busybox"}]},
        },
    },
}

STEPS = (
    Step("POST", "/api/v1/nodes", node("n1")),
    Step("POST", PODS, pod("a", resources={"limits": {"cpu": "1", "memory": "1Gi"}})),
    Step("POST", PODS, pod("a")),
    Step("POST", PODS, pod("g", schedulingGates=GATES)),
    Step("PATCH", f"{PODS}/g", {"spec": {"schedulingGates": [{"name": "new"}]}}, STRATEGIC),
    binding("g"),
    Step("PATCH", f"{PODS}/a", {"spec": {"affinity": AFFINITY}}, STRATEGIC),
    Step("PATCH", f"{PODS}/g", {"spec": {"schedulingGates": None, "affinity": AFFINITY}}, MERGE),
    Step("PATCH", f"{PODS}/g", {"spec": {"nodeSelector": {"a": "b"}}}, MERGE),
    Step("PATCH", f"{PODS}/g", {"metadata": ANOTHER}, MERGE),
    Step("PATCH", f"{PODS}/g", {"metadata": {**ANOTHER, "labels": {"a": "b"}}}, STRATEGIC),
    Step("PATCH", f"{PODS}/g", {"metadata": {**ANOTHER, "resourceVersion": "1"}}, MERGE),
    Step(
        "PATCH",
        f"{PODS}/g/status",
        {"metadata": ANOTHER, "status": {"nominatedNodeName": "n1"}},
        STRATEGIC,
    ),
    Step(
        "PATCH",
        f"{PODS}/g",
        [{"op": "test", "path": "/metadata/uid", "value": ANOTHER["uid"]}],
        JSON,
    ),
    Step(
        "POST", PODS, pod("g2", schedulingGates=GATES, affinity=AFFINITY, nodeSelector={"a": "b"})
    ),
    Step("PATCH", f"{PODS}/g2", {"spec": {"affinity": None}}, MERGE),
    Step("PATCH", f"{PODS}/g2", {"spec": {"nodeSelector": {"a": "c"}}}, MERGE),
    Step("PATCH", f"{PODS}/g2", {"spec": {"schedulingGates": []}}, MERGE),
    Step("POST", f"{PODS}/a/binding", {"target": {"name": "n1"}}),
    binding("a", annotations={"rank": "0"}),
    binding("a"),
    Step("GET", f"{PODS}/a"),
    Step("PATCH", f"{PODS}/a/status", {"status": {"nominatedNodeName": "n1"}}, MERGE),
    Step("PATCH", f"{PODS}/a", {"spec": {"schedulerName": "other"}}, MERGE),
    Step("PATCH", f"{PODS}/a", {"spec": {"tolerations": []}}, MERGE),
    Step("PATCH", f"{PODS}/a/status", {"status": {"phase": "Running"}}, STRATEGIC),
    Step("DELETE", f"{PODS}/a"),
    binding("a"),
    Step("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0}),
    Step("GET", f"{PODS}/a"),
    Step("POST", PODS, pod("b", priorityClassName="nope")),
    Step("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}, "spec": {}}),
    Step("POST", PODS, pod("b", resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})),
    Step("POST", PODS, pod("b", resources={"requests": {"cpu": "many"}})),
    Step("POST", PODS, pod("b", resources={"requests": {"x.y/gpu": "1"}})),
    Step(
        "POST", PODS, pod("b", resources={"requests": {"x.y/gpu": "1"}, "limits": {"x.y/gpu": "2"}})
    ),
    Step("POST", PODS, pod("gpus", resources={"limits": {"x.y/gpu": "1"}})),
    Step("POST", f"{PODS}?fieldValidation=Strict", pod("b", typo=1, tolerations=[{"kee": "a"}])),
    Step("POST", PODS, pod("typos", resources={"request": {"cpu": "1"}}, nodeselector={"a": "b"})),
    Step("GET", f"{PODS}/typos"),
    Step("POST", PODS, pod("Bad_Name")),
    Step("POST", PODS, pod("b", metadata={"namespace": "other"})),
    Step("POST", "/api/v1/namespaces/none/pods", pod("b", metadata={"namespace": "none"})),
    Step("GET", f"{PODS}?fieldSelector=spec.foo=1"),
    Step("POST", WIDGETS, widget()),
    Step("POST", WIDGETS, widget("w2", spec={})),
    Step("POST", WIDGETS, widget("w2", spec={"size": 0, "colour": "green"})),
    Step("POST", WIDGETS, widget("w2", spec={"size": "1"})),
    Step("POST", WIDGETS, widget("w2", spec={"size": 1, "count": 2**31})),
    Step("POST", WIDGETS, widget("w2", spec={"size": 1, "count": -(2**31) - 1})),
    Step("POST", WIDGETS, widget("w3", spec={"size": 1, "count": 2**31 - 1})),
    Step("POST", f"{WIDGETS}?fieldValidation=Strict", widget("w2", spec={"size": 1, "odd": 1})),
    Step("POST", f"{WIDGETS}?fieldValidation=Strict", widget("w2", metadata={"odd": 1})),
    Step("POST", WIDGETS, widget("w4", metadata={"odd": 1})),
    Step("PUT", f"{WIDGETS}/w", widget()),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"size": 2}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"spec": {"size": 2}}, STRATEGIC),
    Step("PATCH", f"{WIDGETS}/w/status", {"status": {"phase": "x"}, "spec": {"size": 7}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", {"metadata": ANOTHER, "spec": {"size": 2}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w/status", {"metadata": ANOTHER, "status": {"phase": "y"}}, MERGE),
    Step("PATCH", f"{WIDGETS}/w", [{"op": "test", "path": "/spec/size", "value": 9}], JSON),
    Step("PATCH", f"{WIDGETS}/w", {"metadata": {"resourceVersion": "1"}, "spec": {}}, MERGE),
    Step("PATCH", f"{WIDGETS}/none", {"spec": {"size": 2}}, MERGE),
    Step("DELETE", f"{WIDGETS}/w"),
    Step("GET", f"{WIDGETS}/w"),
    Step("DELETE", NAMESPACE),
    Step("GET", f"{DEPLOYMENTS}/d/scale"),
    Step("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 3}}, MERGE),
    Step(
        "PATCH",
        f"{DEPLOYMENTS}/d/scale",
        [{"op": "replace", "path": "/spec/replicas", "value": 4}],
        JSON,
    ),
    Step("PUT", f"{DEPLOYMENTS}/d/scale", scale(replicas=5)),
    Step("PUT", f"{DEPLOYMENTS}/d/scale", scale(replicas=6, resourceVersion="1")),
    Step("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -1}}, MERGE),
    Step("GET", f"{DEPLOYMENTS}/d/scale"),
    Step("GET", f"{DEPLOYMENTS}/none/scale"),
)

HOLD: Document = {"finalizers": ["example.com/hold"]}
LET_GO = {"metadata": {"finalizers": None, "annotations": {"too": "late"}}}
GOING = (
    Step("POST", PODS, pod("waiting")),
    Step("DELETE", f"{PODS}/waiting"),
    Step("POST", PODS, pod("bound", nodeName="n", terminationGracePeriodSeconds=5)),
    Step("DELETE", f"{PODS}/bound"),
    Step("DELETE", f"{PODS}/bound", {"gracePeriodSeconds": 0}),
    Step("POST", PODS, pod("lasting", nodeName="n", terminationGracePeriodSeconds=2**63 - 1)),
    Step("DELETE", f"{PODS}/lasting"),
    Step("DELETE", f"{PODS}/lasting", {"gracePeriodSeconds": 0}),
    Step("POST", PODS, pod("forced", nodeName="n")),
    Step("DELETE", f"{PODS}/forced", {"gracePeriodSeconds": 0}),
    Step("POST", PODS, pod("held", metadata=HOLD, nodeName="n")),
    Step("DELETE", f"{PODS}/held", {"gracePeriodSeconds": 0}),
    Step("PATCH", f"{PODS}/held", LET_GO, MERGE),
    Step("POST", WIDGETS, widget("held", metadata=HOLD)),
    Step("DELETE", f"{WIDGETS}/held"),
    Step("PATCH", f"{WIDGETS}/held", LET_GO, MERGE),
    Step("POST", WIDGETS, widget("free")),
    Step("DELETE", f"{WIDGETS}/free"),
)

LIMITED = "/api/v1/namespaces/kube-public"
HARD = {
    "pods": "2",
    "requests.cpu": "3",
    "requests.memory": "1Gi",
    "limits.cpu": "4",
    "requests.nvidia.com/gpu": "1",
    "count/configmaps": "1",
    "secrets": "1",
}


def quota(name: str, **spec: object) -> Document:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec}


def asking(name: str, *, gpus: int = 0, **requests: str) -> Document:
    limits = {"cpu": "2", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    resources = {"requests": requests, "limits": limits}
    return pod(name, resources=resources, metadata={"namespace": "kube-public"})


def named(kind: str, name: str) -> Document:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


QUOTAS = f"{LIMITED}/resourcequotas"
# Nobody counts what is there already where no quota controller runs: nothing, as a status says.
NOTHING = {"status": {"hard": HARD, "used": dict.fromkeys(HARD, "0")}}
HELD_TO_QUOTAS = (
    Step("POST", QUOTAS, quota("q", hard=HARD)),
    Step("PATCH", f"{QUOTAS}/q/status", NOTHING, MERGE),
    Step("POST", f"{LIMITED}/pods", pod("a", metadata={"namespace": "kube-public"})),
    Step("POST", f"{LIMITED}/pods", asking("a", cpu="1500m", memory="100M")),
    Step("POST", f"{LIMITED}/pods", asking("b", cpu="1600m", memory="2Gi")),
    Step("POST", f"{LIMITED}/pods", asking("b", cpu="100m", memory="1Mi", gpus=2)),
    Step("POST", f"{LIMITED}/pods", asking("b", cpu="1100m", memory="100Mi", gpus=1)),
    Step("POST", f"{LIMITED}/pods", asking("b", cpu="100m", memory="1Mi")),
    Step("POST", f"{LIMITED}/pods", asking("c", cpu="100m", memory="1Mi")),
    Step("POST", f"{LIMITED}/pods", asking("Bad_Name", cpu="100m", memory="1Mi")),
    Step("POST", f"{LIMITED}/configmaps", named("ConfigMap", "a")),
    Step("POST", f"{LIMITED}/configmaps", named("ConfigMap", "b")),
    Step("POST", f"{LIMITED}/secrets", named("Secret", "a")),
    Step("POST", f"{LIMITED}/secrets", named("Secret", "b")),
    Step("POST", QUOTAS, quota("r", hard={"foo": "1", "pods": "-1"})),
    Step("POST", QUOTAS, quota("r", hard={"pods": "1.5", "x/y": "1", "hugepages-2Mi": "1"})),
    Step("POST", QUOTAS, quota("r", hard={"pods": "x"})),
    Step("POST", QUOTAS, quota("r", hard={"pods": "1", "cpu": "1"}, scopes=["BestEffort"])),
    Step("POST", QUOTAS, quota("r", hard={"pods": "1", "secrets": "1"}, scopes=["Terminating"])),
    Step("POST", QUOTAS, quota("r", hard={"pods": "1", "cpu": "1"}, scopes=["NotBestEffort"])),
    Step("PATCH", f"{QUOTAS}/q", {"spec": {"hard": {"secrets": "-2"}}}, MERGE),
)


def played(client: Client) -> Iterator[Document]:
    client.post(DEPLOYMENTS, json=DEPLOYMENT).raise_for_status()
    for step in STEPS:
        yield seen(sent(client, step))


def life(item: Document, versions: list[str]) -> Document:
    """Where an object is between its creation and its end; versions by their order."""
    metadata = item["metadata"]
    kept = ("name", "generation", "annotations", "finalizers", "deletionGracePeriodSeconds")
    version = metadata.get("resourceVersion")
    return {
        "going": "deletionTimestamp" in metadata,
        "version": versions.index(version) if version in versions else None,
        **{name: metadata.get(name) for name in kept},
    }


def told(client: Client, path: str, since: str, until: str) -> list[Document]:
    """What a watch shows up to the creation of an object."""
    found: list[Document] = []
    with client.stream("GET", f"{path}?watch=true&resourceVersion={since}") as response:
        for line in response.iter_lines():
            event = json.loads(line)
            if event["object"]["metadata"]["name"] == until:
                return found
            found.append(event)
    raise AssertionError(f"{until} was not shown")


def shown_of_what_goes(client: Client) -> tuple[list[Document], list[tuple[str, Document]]]:
    """The answers, and then the events."""
    since = client.get(PODS).json()["metadata"]["resourceVersion"]
    answers = [sent(client, step).json() for step in GOING]
    events: list[Document] = []
    for path, last in ((PODS, pod("last")), (WIDGETS, widget("last"))):
        client.post(path, json=last).raise_for_status()
        events += told(client, path, since, "last")
    versions = [event["object"]["metadata"]["resourceVersion"] for event in events]
    return (
        [life(answer, versions) for answer in answers],
        [(event["type"], life(event["object"], versions)) for event in events],
    )


def test_both_servers_show_alike_how_objects_go(servers: Servers) -> None:
    expected, expected_events = shown_of_what_goes(servers.real)
    answers, events = shown_of_what_goes(servers.ours)
    for step, answer, found in zip(GOING, expected, answers, strict=True):
        assert found == answer, f"{step.method} {step.path}"
    assert events == expected_events


def test_both_servers_answer_alike(servers: Servers) -> None:
    answers = zip(STEPS, played(servers.real), played(servers.ours), strict=True)
    for step, expected, found in answers:
        assert found == expected, f"{step.method} {step.path} {step.body}"


def test_both_servers_hold_objects_to_quotas_alike(servers: Servers) -> None:
    for step in HELD_TO_QUOTAS:
        expected, found = (seen(sent(each, step)) for each in servers)
        assert found == expected, f"{step.method} {step.path} {step.body}"
    expected, found = (each.get(f"{QUOTAS}/q").json()["status"] for each in servers)
    assert found == expected
    assert found["used"]["requests.cpu"] == "2600m"


def test_only_the_order_of_the_causes_is_free() -> None:
    one, other = 'w is invalid: [a: x, b: "y"]', 'w is invalid: [b: "y", a: x]'
    assert in_one_order(one) == in_one_order(other)
    assert in_one_order(one) != in_one_order('w is invalid: [a: x, b: "z"]')
    assert in_one_order("pods is forbidden: no [brackets] here") == (
        "pods is forbidden: no [brackets] here"
    )


EVENTS = f"{NAMESPACE}/events"
VIEWED = "/apis/events.k8s.io/v1/namespaces/default/events"
ABOUT: Document = {"kind": "Pod", "name": "p", "namespace": "default"}
NOTED: Document = {
    "metadata": {"name": "noted", "namespace": "default"},
    "regarding": ABOUT,
    "reason": "Tested",
    "type": "Normal",
    "action": "Test",
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "example.com/test",
    "reportingInstance": "test",
}
TOLD: Document = {"metadata": {"name": "told", "namespace": "default"}, "involvedObject": ABOUT}
OF_EVENTS = (
    Step("POST", EVENTS, TOLD),
    Step("GET", f"{VIEWED}/told"),
    Step("POST", VIEWED, NOTED),
    Step("GET", f"{EVENTS}/noted"),
    Step("PATCH", f"{EVENTS}/noted", {"count": 2}, STRATEGIC),
)


def test_both_servers_show_events_alike(servers: Servers) -> None:
    for step in OF_EVENTS:
        expected, found = (sent(each, step).json() for each in servers)
        for answer in (expected, found):
            del answer["metadata"]
        assert found == expected, f"{step.method} {step.path}"
