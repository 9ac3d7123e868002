"""Bodies that cannot be meant: the embedded API server and kube-apiserver refuse them alike."""

from __future__ import annotations

import pytest

from app.wire.documents import Document
from tests.sandbox.apiserver.likeness import (
    CRDS,
    JSON,
    MERGE,
    NAMESPACE,
    PODS,
    STRATEGIC,
    WIDGETS,
    Servers,
    Step,
    seen,
    sent,
)
from tests.sandbox.documents import pod, widget

pytestmark = pytest.mark.real

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TRIED = f"{PODS}?dryRun=All"


def near(**term: object) -> Document:
    return pod("odd", affinity={"podAffinity": {REQUIRED: [term]}})


def on_nodes(*terms: object) -> Document:
    return pod("odd", affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}})


def where(**expression: object) -> Document:
    return {"matchExpressions": [expression]}


def named(**expression: object) -> Document:
    return {"matchFields": [expression]}


def spread(**constraint: object) -> Document:
    defaults = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    constraint = {name: one for name, one in {**defaults, **constraint}.items() if one is not None}
    return pod("odd", topologySpreadConstraints=[constraint])


def tolerating(**toleration: object) -> Document:
    return pod("odd", tolerations=[toleration])


MISPLACED = (
    near(labelSelector={}),
    near(topologyKey="a b"),
    near(topologyKey="/zone"),
    near(topologyKey="a/b/c"),
    near(topologyKey="A/zone"),
    near(topologyKey="z" * 64),
    near(topologyKey="zone", labelSelector=where(key="a")),
    near(topologyKey="zone", labelSelector=where(key="a", operator="Gt", values=["1"])),
    near(topologyKey="zone", labelSelector=where(operator="Exists")),
    near(topologyKey="zone", labelSelector=where(key="a", operator="In")),
    near(topologyKey="zone", labelSelector=where(key="a", operator="Exists", values=["b"])),
    near(topologyKey="zone", labelSelector={"matchLabels": {"a b": "c d"}}),
    near(topologyKey="zone", namespaceSelector=where(key="a")),
    near(topologyKey="zone", namespaces=["A"]),
    near(topologyKey="zone", matchLabelKeys=["a"]),
    pod("odd", affinity={"podAntiAffinity": {PREFERRED: [{"weight": 101}]}}),
    pod("odd", affinity={"nodeAffinity": {PREFERRED: [{"preference": where(key="a")}]}}),
    pod("odd", affinity={"nodeAffinity": {REQUIRED: {}}}),
    on_nodes({}),
    on_nodes(where(key="a")),
    on_nodes(where(operator="Exists")),
    on_nodes(where(key="a", operator="In")),
    on_nodes(where(key="a", operator="In", values=["a b"])),
    on_nodes(where(key="a", operator="Gt", values=["1", "2"])),
    on_nodes(named(key="metadata.name")),
    on_nodes(named(key="metadata.name", operator="In", values=["a", "b"])),
    on_nodes(named(key="metadata.name", operator="In", values=["A"])),
    on_nodes(named(key="spec", operator="In", values=["a"])),
    spread(maxSkew=None),
    spread(topologyKey=None),
    spread(whenUnsatisfiable=None),
    spread(whenUnsatisfiable="Never"),
    spread(minDomains=0),
    spread(minDomains=2, whenUnsatisfiable="ScheduleAnyway"),
    spread(nodeAffinityPolicy="Perhaps"),
    spread(matchLabelKeys=["a"]),
    spread(labelSelector=where(key="a")),
    pod("odd", topologySpreadConstraints=spread()["spec"]["topologySpreadConstraints"] * 2),
    pod("odd", overhead={"cpu": "abc"}),
    pod("odd", overhead={"cpu": "-1"}),
    pod("odd", nodeSelector={"a b": "c d"}),
    tolerating(),
    tolerating(key="a b"),
    tolerating(key="a", value="b c"),
    tolerating(key="a", operator="Exists", value="b"),
    tolerating(key="a", operator="Never"),
    tolerating(key="a", effect="Never"),
    tolerating(key="a", tolerationSeconds=5),
    pod("odd", schedulingGates=[{}]),
    pod("odd", schedulingGates=[{"name": "a b"}]),
    pod("odd", schedulingGates=[{"name": "a"}, {"name": "a"}]),
)


NODES = "/api/v1/nodes"
CONFIG_MAPS = f"{NAMESPACE}/configmaps"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def one(**fields: object) -> Document:
    return {"metadata": {"name": "odd"}, **fields}


def budget(**spec: object) -> Step:
    return Step("POST", f"{BUDGETS}?dryRun=All", one(spec={"selector": {}, **spec}))


MISTYPED = (
    *(
        Step("POST", TRIED, body)
        for body in (
            pod("odd", command="sleep"),
            pod("odd", command=[1]),
            pod("odd", hostNetwork="yes"),
            pod("odd", terminationGracePeriodSeconds="1m"),
            pod("odd", tolerations={"key": "a"}),
            pod("odd", tolerations=["a"]),
            pod("odd", priorityClassName=5),
            pod("odd", priority="high"),
            pod("odd", resources={"requests": "1"}),
            pod("odd", resources={"requests": {"cpu": None}, "limits": {"cpu": []}}),
            pod("odd", ports=[{"containerPort": "80"}]),
            pod("odd", containers=[None]),
            spread(maxSkew="1"),
            spread(maxSkew=1.5),
            pod("odd", metadata={"name": 5}),
            pod("odd", metadata={"generateName": 5, "name": None}),
            pod("odd", metadata={"labels": ["a"]}),
            pod("odd", metadata={"annotations": {"a": 1}}),
            pod("odd", metadata={"creationTimestamp": "then"}),
            {"kind": "Pod", "apiVersion": "v1", "metadata": "x"},
            {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": "x"},
        )
    ),
    Step("POST", CONFIG_MAPS, one(data={"a": 1})),
    Step("POST", CONFIG_MAPS, one(data="x")),
    Step("POST", CONFIG_MAPS, one(binaryData={"a": "%"})),
    Step("POST", CONFIG_MAPS, one(immutable="yes")),
    Step("POST", f"{NAMESPACE}/secrets", one(stringData={"a": 1})),
    Step("POST", NODES, one(status={"allocatable": {"cpu": "abc"}})),
    Step("POST", CLASSES, one(value="high")),
    Step("POST", CLASSES, one(value=1, globalDefault="yes")),
    Step("POST", LEASES, one(spec={"renewTime": "then"})),
    Step("POST", f"{NAMESPACE}/events", one(involvedObject="x")),
    Step("POST", CRDS, one(spec={"group": 5})),
    budget(maxUnavailable="abc"),
    budget(maxUnavailable=True),
    budget(maxUnavailable=-1),
    budget(minAvailable="101%"),
    budget(minAvailable=1, maxUnavailable="10%"),
    budget(minAvailable=1, selector=where(key="a")),
    budget(minAvailable=1, unhealthyPodEvictionPolicy="Never"),
    Step("POST", WIDGETS, widget("w", metadata={"name": 5})),
    Step("POST", WIDGETS, widget("w", metadata={"labels": {"a": 1}})),
    Step("POST", WIDGETS, widget("w", metadata={"ownerReferences": [{"name": 5}]})),
    Step("POST", WIDGETS, {**widget("w"), "metadata": "x"}),
    Step("POST", f"{PODS}/odd/binding", {"metadata": {"name": "odd"}, "target": "n1"}),
    Step("POST", f"{PODS}/odd/eviction", {"metadata": "odd"}),
)
MISPATCHED = (
    Step("PATCH", CONFIG_MAPS, {"data": {"a": 1}}, MERGE),
    Step("PATCH", CONFIG_MAPS, {"data": {"a": 1}}, STRATEGIC),
    Step("PATCH", CONFIG_MAPS, [{"op": "add", "path": "/data", "value": {"a": 1}}], JSON),
    Step("PATCH", CONFIG_MAPS, {"metadata": {"labels": {"a": 1}}}, MERGE),
    Step("PATCH", CONFIG_MAPS, {"metadata": "x"}, MERGE),
    Step("PATCH", CONFIG_MAPS, {"immutable": "yes"}, STRATEGIC),
)

BINDING = f"{PODS}/there/binding"
EVICTION = f"{PODS}/there/eviction"
BOUND: Document = {"metadata": {"name": "there"}, "target": {"name": "n1"}}
EVICTED: Document = {"metadata": {"name": "there"}}
TRIED_OR_REFUSED = (
    Step("POST", PODS, pod("there", schedulerName="nobody")),
    Step("POST", f"{BINDING}?dryRun=All", BOUND),
    Step("POST", f"{BINDING}?dryRun=Perhaps", BOUND),
    Step("POST", BINDING, {**BOUND, "metadata": {"name": "there", "namespace": "other"}}),
    Step("POST", f"{NAMESPACE}/bindings?dryRun=All", BOUND),
    Step("GET", f"{PODS}/there"),
    Step("POST", f"{EVICTION}?dryRun=All", EVICTED),
    Step("POST", EVICTION, {**EVICTED, "deleteOptions": {"dryRun": ["All"]}}),
    Step("POST", EVICTION, {**EVICTED, "deleteOptions": {"dryRun": ["Perhaps"]}}),
    Step("POST", EVICTION, {"metadata": {"name": "other"}}),
    Step("POST", EVICTION, {"deleteOptions": {}}),
    Step("POST", EVICTION, {"metadata": {"name": "there", "namespace": "other"}}),
    Step("POST", f"{PODS}/none/eviction", {"metadata": {"name": "none"}}),
    Step("POST", f"{PODS}?dryRun=Perhaps", pod("odd")),
    Step("POST", f"{PODS}?fieldValidation=Perhaps", pod("odd")),
    Step("PATCH", f"{PODS}/there?dryRun=Perhaps", {}, MERGE),
    Step("DELETE", f"{PODS}/there?dryRun=Perhaps"),
    Step("DELETE", f"{PODS}/there?gracePeriodSeconds=soon"),
    Step("DELETE", f"{PODS}/there", {"gracePeriodSeconds": "soon"}),
    Step("DELETE", f"{PODS}/there", {"propagationPolicy": "Perhaps"}),
    Step("DELETE", f"{PODS}/there", {"propagationPolicy": "Orphan", "orphanDependents": True}),
    Step("GET", f"{PODS}/there"),
)

ONE = f"{CONFIG_MAPS}/one"
HARD, SECRET = f"{CONFIG_MAPS}/hard", f"{NAMESPACE}/secrets/hard"
APPLY = "apply-patch+yaml"
APPLIED = f"{ONE}?fieldManager=me"
SURE: Document = {"metadata": {"name": "hard"}, "immutable": True, "data": {"a": "MQ=="}}


def change(**operation: object) -> Step:
    return Step("PATCH", ONE, [operation], JSON)


ASKED_ODDLY = (
    *(
        Step("GET", f"{PODS}?{query}")
        for query in (
            "limit=some",
            "limit=1.5",
            "limit=",
            "limit=-1&labelSelector=no=one",
            "timeoutSeconds=some",
            "resourceVersion=some",
            "watch=true&timeoutSeconds=some",
        )
    ),
    Step("DELETE", f"{PODS}?limit=some"),
    Step("DELETE", "/api/v1/namespaces"),
    Step("POST", CONFIG_MAPS, {"metadata": {"name": "one"}, "data": {"a": "1"}}),
    Step("PUT", ONE, {"metadata": {"name": "two"}}),
    Step("PUT", ONE, {"metadata": {}}),
    Step("PUT", f"{CONFIG_MAPS}/none", {"metadata": {"name": "two"}}),
    *(Step("PATCH", ONE, body, MERGE) for body in ([1], 5, "x")),
    *(Step("PATCH", ONE, body, STRATEGIC) for body in ([1], 5, {"metadata": {"$retainKeys": 5}})),
    *(Step("PATCH", ONE, body, JSON) for body in ({"op": "add"}, ["x"], [None], 5)),
    change(op="add", value="1"),
    change(op="add", path=5, value="1"),
    change(op=5, path="/data/a"),
    change(op="jump", path="/data/a"),
    change(op="copy", path="/data/b"),
    change(op="copy", path="/data/b", **{"from": 5}),
    change(op="add", path="", value="1"),
    change(op="remove", path="/metadata"),
    change(op="replace", path="/metadata/name", value="two"),
    *(Step("PATCH", APPLIED, body, APPLY) for body in ([1], 5)),
    Step("PATCH", f"{CONFIG_MAPS}/none?fieldManager=me", [1], APPLY),
    Step("PATCH", APPLIED, {"metadata": {"name": "one"}}, APPLY),
    Step("PATCH", APPLIED, {"kind": "Secret", "apiVersion": "v1"}, APPLY),
    Step("PATCH", ONE, {"kind": "ConfigMap", "apiVersion": "v1"}, APPLY),
    Step("PATCH", ONE, {"metadata": {"name": "two"}}, MERGE),
    Step("PATCH", ONE, {"metadata": {"name": None}}, MERGE),
    Step("POST", CONFIG_MAPS, {"metadata": {"name": "x", "ownerReferences": [{"name": "x"}]}}),
    Step("PATCH", f"{CONFIG_MAPS}/none", [1], MERGE),
    Step("POST", CONFIG_MAPS, SURE),
    Step("PATCH", HARD, {"immutable": None}, MERGE),
    Step("PATCH", HARD, {"immutable": False, "data": {"a": "2"}}, MERGE),
    Step("PATCH", HARD, {"data": None}, MERGE),
    Step("PATCH", HARD, {"binaryData": {"b": "MQ=="}}, MERGE),
    Step("PATCH", HARD, {"metadata": {"labels": {"a": "b"}}}, MERGE),
    Step("POST", f"{NAMESPACE}/secrets", SURE),
    Step("PATCH", SECRET, {"immutable": False}, MERGE),
    Step("PATCH", SECRET, {"stringData": {"a": "x"}}, MERGE),
    Step("PATCH", SECRET, {"type": "x"}, MERGE),
)


def alike(servers: Servers, step: Step) -> None:
    expected, found = (seen(sent(each, step)) for each in servers)
    assert found == expected, f"{step.method} {step.path} {step.body}"


@pytest.mark.parametrize("body", MISPLACED, ids=lambda body: str(body["spec"])[-60:])
def test_where_a_pod_may_go_is_checked_alike(servers: Servers, body: Document) -> None:
    alike(servers, Step("POST", TRIED, body))


@pytest.mark.parametrize("step", MISTYPED, ids=lambda step: f"{step.path[-12:]} {step.body}"[-60:])
def test_values_of_another_type_are_refused_alike(servers: Servers, step: Step) -> None:
    alike(servers, step)


@pytest.mark.parametrize("step", MISPATCHED, ids=lambda step: f"{step.kind} {step.body}")
def test_patches_to_another_type_are_refused_alike(servers: Servers, step: Step) -> None:
    """The text of the real one shows the patch, or the whole object, in the words of Go."""
    for client in servers:
        client.post(CONFIG_MAPS, json=one())
    step = step._replace(path=f"{step.path}/odd")
    expected, found = (seen(sent(each, step)) for each in servers)
    for answer in (expected, found):
        answer["text"] = answer["text"].partition("Invalid value")[0]
        answer["causes"] = [cause[:2] for cause in answer["causes"]]
    assert found == expected


def test_what_is_tried_and_what_nobody_knows_are_answered_alike(servers: Servers) -> None:
    for step in TRIED_OR_REFUSED:
        alike(servers, step)


def test_odd_questions_and_patches_are_answered_alike(servers: Servers) -> None:
    for step in ASKED_ODDLY:
        alike(servers, step)
