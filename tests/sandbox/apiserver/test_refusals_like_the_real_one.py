"""Bodies that cannot be meant: the embedded API server and kube-apiserver refuse them alike."""

from __future__ import annotations

import pytest

from app.sandbox.documents import Document
from tests.sandbox.apiserver.likeness import PODS, Servers, Step, seen, sent
from tests.sandbox.documents import pod

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


def alike(servers: Servers, step: Step) -> None:
    expected, found = (seen(sent(each, step)) for each in servers)
    assert found == expected, f"{step.method} {step.path} {step.body}"


@pytest.mark.parametrize("body", MISPLACED, ids=lambda body: str(body["spec"])[-60:])
def test_where_a_pod_may_go_is_checked_alike(servers: Servers, body: Document) -> None:
    alike(servers, Step("POST", TRIED, body))
