"""Objects of resource.k8s.io: the embedded API server and kube-apiserver answer alike."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import Response

from app.wire.documents import Document
from tests.sandbox.apiserver.likeness import Servers, Step, seen, sent

pytestmark = pytest.mark.real

ROOT = "/apis/resource.k8s.io/v1"
CLAIMS = f"{ROOT}/namespaces/default/resourceclaims"
TEMPLATES = f"{ROOT}/namespaces/default/resourceclaimtemplates"
CLASSES = f"{ROOT}/deviceclasses"
SLICES = f"{ROOT}/resourceslices"
POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}


def named(name: str, spec: Document) -> Document:
    return {"metadata": {"name": name}, "spec": spec}


def requests(*each: Document) -> Document:
    return {"devices": {"requests": list(each)}}


def asks(**exactly: Any) -> Document:
    return requests({"name": "r", "exactly": {"deviceClassName": "gpu", **exactly}})


def offer(*devices: Document, **spec: Any) -> Document:
    return {"driver": "d.example.com", "pool": POOL, "devices": list(devices), **spec}


EITHER = requests(
    {
        "name": "r",
        "firstAvailable": [
            {"name": "a", "deviceClassName": "gpu"},
            {"name": "b", "deviceClassName": "gpu", "count": 2},
        ],
    }
)
STEPS = (
    Step("POST", CLAIMS, named("one", asks())),
    Step("POST", CLAIMS, named("two", asks(count=2))),
    Step("POST", CLAIMS, named("all", asks(allocationMode="All"))),
    Step("POST", CLAIMS, named("either", EITHER)),
    Step("GET", f"{CLAIMS}/one"),
    Step("PUT", f"{CLAIMS}/one", named("one", asks(count=5))),
    Step("POST", TEMPLATES, named("one", {"spec": asks()})),
    Step("PUT", f"{TEMPLATES}/one", named("one", {"spec": asks(count=5)})),
    Step("POST", CLASSES, named("gpu", {})),
    Step("POST", SLICES, named("here", offer({"name": "a"}, nodeName="n"))),
    Step("POST", SLICES, named("wide", offer({"name": "a"}, allNodes=True))),
    Step("POST", CLAIMS, named("odd", asks(count=-1))),
    Step("POST", CLAIMS, named("odd", asks(allocationMode="All", count=1))),
    Step("POST", CLAIMS, named("odd", asks(allocationMode="Some"))),
    Step("POST", CLAIMS, named("odd", asks(deviceClassName=""))),
    Step("POST", CLAIMS, named("odd", requests({"name": "r"}))),
    Step("POST", TEMPLATES, named("odd", {"spec": asks(count=-1)})),
    Step("POST", SLICES, named("odd", offer({"name": "a"}))),
    Step("POST", SLICES, named("odd", offer({"name": "a"}, nodeName="n", allNodes=True))),
    Step("POST", SLICES, named("odd", offer({"name": "a"}, {"name": "a"}, nodeName="n"))),
    Step("POST", SLICES, named("odd", {**offer(nodeName="n"), "driver": ""})),
)


def told(response: Response) -> Document:
    """An answer; of a refusal the fields, as values are shown in the words of Go."""
    found = seen(response)
    if found["code"] != 422:
        return found
    return {"code": 422, "fields": [(field, reason) for field, reason, _ in found["causes"]]}


def test_claims_and_slices_are_taken_and_refused_alike(servers: Servers) -> None:
    ours = [told(sent(servers.ours, step)) for step in STEPS]
    real = [told(sent(servers.real, step)) for step in STEPS]
    assert list(zip(STEPS, ours, strict=True)) == list(zip(STEPS, real, strict=True))
