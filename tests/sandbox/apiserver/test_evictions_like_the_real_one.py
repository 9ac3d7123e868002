"""Evictions and PodDisruptionBudgets: the embedded API server and kube-apiserver do alike.

Compared are the answers, what becomes of the pods, and the status of the budgets once the real
disruption controller has looked at them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from httpx2 import Client

from app.wire.documents import Document, section
from tests.sandbox.apiserver.likeness import (
    PODS,
    STRATEGIC,
    WIDGETS,
    Servers,
    Step,
    in_the_sandbox,
    on_the_real_server,
    seen,
    sent,
)
from tests.sandbox.documents import node, pod

pytestmark = pytest.mark.real

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
SETS = "/apis/example.com/v1/namespaces/default/crews"
PATIENCE_S = 20.0
ANOTHER = "00000000-0000-4000-8000-000000000001"
CREW_CRD: Document = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "crews.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "crews", "kind": "Crew"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
                "subresources": {
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                    }
                },
            }
        ],
    },
}
"""A kind that tells how many pods it wants; no controller makes any."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Both with a node; the real one with the disruption controller."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("evictions") / "real"
        real = stack.enter_context(on_the_real_server(folder, crds=[CREW_CRD], controllers=True))
        both = Servers(real, stack.enter_context(in_the_sandbox(crds=[CREW_CRD])))
        for client in both:
            client.post("/api/v1/nodes", json=node("n1")).raise_for_status()
        yield both


@dataclass(frozen=True)
class Case:
    """Pods by their state, the budgets over all of them, and who is evicted how."""

    pods: Sequence[str]
    evictions: Sequence[tuple[int, Document]]
    budgets: Sequence[Document] = ()
    replicas: int | None = None
    """What their controller wants, if they have one."""
    controller: str = "Crew"


@dataclass
class Played:
    """A case on one server."""

    client: Client
    name: str
    case: Case
    uids: dict[int, str] = field(default_factory=dict)

    def begin(self) -> None:
        owner = self._owner()
        for at, state in enumerate(self.case.pods):
            self._pod(at, state, owner)
        for at, spec in enumerate(self.case.budgets):
            selector = {"matchLabels": {"case": self.name}}
            body = {
                "metadata": {"name": f"{self.name}-{at}"},
                "spec": {**spec, "selector": selector},
            }
            self.client.post(BUDGETS, json=body).raise_for_status()

    def evict(self, at: int, more: Document) -> Document:
        name = f"{self.name}-{at}"
        body = {"metadata": {"name": name}, **more}
        answer = sent(self.client, Step("POST", f"{PODS}/{name}/eviction", body))
        status = answer.json()
        wait = section(status, "details").get("retryAfterSeconds")
        told = seen(answer)
        told["text"] = self._nameless(told["text"])
        return {**told, "status": status["status"], "wait": wait}

    def left(self) -> list[Document]:
        """The pods, as far as they are left."""
        answers = [self.client.get(f"{PODS}/{self.name}-{at}") for at in range(len(self.case.pods))]
        return [seen(answer) for answer in answers]

    def budgets(self) -> list[Document]:
        """The status of each budget, without times."""
        found = [
            self.client.get(f"{BUDGETS}/{self.name}-{at}").json().get("status") or {}
            for at in range(len(self.case.budgets))
        ]
        return [_timeless(status) for status in found]

    def _owner(self) -> Document | None:
        kind, replicas = self.case.controller, self.case.replicas
        if replicas is None:
            return None
        path, spec = (SETS, {"replicas": replicas}) if kind == "Crew" else (WIDGETS, {"size": 1})
        head = {"apiVersion": "example.com/v1", "kind": kind}
        made = self.client.post(path, json={**head, "metadata": {"name": self.name}, "spec": spec})
        made.raise_for_status()
        uid = made.json()["metadata"]["uid"]
        return {**head, "name": self.name, "uid": uid, "controller": True}

    def _pod(self, at: int, state: str, owner: Document | None) -> None:
        name = f"{self.name}-{at}"
        metadata: Document = {"labels": {"case": self.name}}
        if owner is not None:
            metadata["ownerReferences"] = [owner]
        if state == "held":
            metadata["finalizers"] = ["example.com/held"]
        body = pod(name, metadata=metadata, schedulerName="nobody")
        if state != "pending":
            body["spec"]["nodeName"] = "n1"
        made = self.client.post(PODS, json=body)
        made.raise_for_status()
        self.uids[at] = made.json()["metadata"]["uid"]
        if state == "pending":
            return
        phase = {"failed": "Failed", "succeeded": "Succeeded"}.get(state, "Running")
        is_ready = "False" if state == "unready" else "True"
        ready = {"type": "Ready", "status": is_ready}
        change = {"status": {"phase": phase, "conditions": [ready]}}
        sent(self.client, Step("PATCH", f"{PODS}/{name}/status", change, STRATEGIC))
        if state == "going":
            self.client.delete(f"{PODS}/{name}").raise_for_status()

    def _nameless(self, text: str) -> str:
        for uid in self.uids.values():
            text = text.replace(uid, "UID")
        return text


def _timeless(status: Document) -> Document:
    kept = {**status, "disruptedPods": sorted(status.get("disruptedPods") or {})}
    kept["conditions"] = [
        {name: value for name, value in one.items() if name != "lastTransitionTime"}
        for one in status.get("conditions") or []
    ]
    return kept


def _settled(real: Played, ours: Played) -> None:
    """Wait until the budgets are alike; fail with the difference."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := real.budgets()) != (expected := ours.budgets()):
        assert time.monotonic() < deadline, (found, expected)
        time.sleep(0.05)


def played(servers: Servers, name: str, case: Case) -> list[Document]:
    """Play the case on both; the answers of ours, which are those of the real one."""
    real, ours = (Played(client, name, case) for client in servers)
    for each in (real, ours):
        each.begin()
    _settled(real, ours)
    answers = []
    for at, more in case.evictions:
        expected, found = real.evict(at, more), ours.evict(at, more)
        assert found == expected
        answers.append(found)
        _settled(real, ours)
    assert ours.left() == real.left()
    return answers


def all_of(*pods: int, **options: Any) -> list[tuple[int, Document]]:
    more = {"deleteOptions": options} if options else {}
    return [(at, more) for at in pods]


READY = ["ready"] * 3
DRY: Document = {"dryRun": ["All"]}
OTHER: Document = {"preconditions": {"uid": ANOTHER}}

CASES = {
    "no-budget": Case(["ready", "unready", "pending", "failed", "going"], all_of(0, 1, 2, 3, 4)),
    "in-turn": Case(READY, all_of(0, 1, 2), [{"minAvailable": 1}]),
    "nothing-to-spare": Case(READY, all_of(0), [{"minAvailable": 3}]),
    "too-few": Case(["ready", "unready"], all_of(0), [{"minAvailable": 2}]),
    "several": Case(READY, all_of(0), [{"minAvailable": 1}, {"minAvailable": 2}]),
    "ended": Case(["failed", "succeeded", "ready"], all_of(0, 1), [{"minAvailable": 1}]),
    "waiting": Case(["pending", "ready"], all_of(0), [{"minAvailable": 2}]),
    "going": Case(["going", "ready"], all_of(0), [{"minAvailable": 2}]),
    "held": Case(["held", "ready"], all_of(0, 1), [{"minAvailable": 1}]),
    "unready-below": Case(["unready", "ready"], all_of(0), [{"minAvailable": 2}]),
    "unready-enough": Case(["unready", "ready"], all_of(0), [{"minAvailable": 1}]),
    "unready-none-wanted": Case(["unready"], all_of(0), [{"minAvailable": 0}]),
    "unready-always": Case(
        ["unready", "ready"],
        all_of(0),
        [{"minAvailable": 2, "unhealthyPodEvictionPolicy": "AlwaysAllow"}],
    ),
    "unready-if-healthy": Case(
        ["unready", "ready"],
        all_of(0, 1),
        [{"minAvailable": 2, "unhealthyPodEvictionPolicy": "IfHealthyBudget"}],
    ),
    "tried": Case(READY, all_of(0, 1, 2, **DRY), [{"minAvailable": 2}]),
    "tried-in-vain": Case(READY, all_of(0, **DRY), [{"minAvailable": 3}]),
    "another": Case(READY, all_of(0, **OTHER), []),
    "another-of-a-budget": Case(READY, all_of(0, **OTHER), [{"minAvailable": 3}]),
    "another-unready": Case(["unready", "ready"], all_of(0, **OTHER), [{"minAvailable": 1}]),
    "grace": Case(READY, all_of(0, gracePeriodSeconds=5), [{"minAvailable": 1}]),
    "no-grace": Case(READY, all_of(0, gracePeriodSeconds=0), [{"minAvailable": 1}]),
    "alone-share": Case(READY, all_of(0), [{"maxUnavailable": 1}]),
    "alone-percent": Case(READY, all_of(0), [{"minAvailable": "50%"}]),
    "of-a-set": Case(READY, all_of(0, 1), [{"maxUnavailable": 1}], replicas=3),
    "of-a-set-percent": Case(READY, all_of(0, 1), [{"minAvailable": "50%"}], replicas=3),
    "of-a-larger-set": Case(READY, all_of(0), [{"maxUnavailable": 1}], replicas=5),
    "no-pods": Case([], [], [{"minAvailable": 1}]),
}


@pytest.mark.parametrize("name", CASES)
def test_evictions_are_answered_and_counted_alike(servers: Servers, name: str) -> None:
    played(servers, name, CASES[name])


def test_a_budget_over_pods_of_a_controller_without_scale_lets_none_go(servers: Servers) -> None:
    """Jobs are such controllers: a budget over their pods has to say a number to be available."""
    case = Case(READY, all_of(0), [{"maxUnavailable": 1}], replicas=3, controller="Widget")
    [refused] = played(servers, "scaleless", case)
    assert refused["code"] == 429
    [budget] = Played(servers.ours, "scaleless", case).budgets()
    [failed] = budget["conditions"]
    assert failed["message"] == "widgets.example.com does not implement the scale subresource"
