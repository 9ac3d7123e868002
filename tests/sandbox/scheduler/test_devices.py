"""Claims of devices in the sandbox: made of templates, given devices, and given back."""

from __future__ import annotations

from typing import Any

import pytest

from app.sandbox.device_claims import CLAIMS
from app.wire.documents import Document, items, section
from tests.sandbox.documents import at, pod
from tests.sandbox.scheduler.scripted import Stage, error, play

DRIVER = "gpu.example.com"


def made(kind: str, name: str, **parts: Any) -> Document:
    head = {"name": name}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": head, **parts}


CLASS = made("DeviceClass", "gpu", spec={})


def offered(*devices: str, node: str = "node-00000", **fields: Any) -> Document:
    reach = {"nodeName": node} if node else {"allNodes": True}
    listed = [{"name": name, **fields} for name in devices]
    pool = {"name": node or "wide", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "devices": listed, **reach}
    return made("ResourceSlice", f"slice-{node or 'wide'}", spec=spec)


def asks(count: int = 1, **exactly: Any) -> Document:
    asked = {"deviceClassName": "gpu", "count": count, **exactly}
    return {"devices": {"requests": [{"name": "r", "exactly": asked}]}}


def claim(name: str, count: int = 1, **exactly: Any) -> Document:
    return made("ResourceClaim", name, spec=asks(count, **exactly))


def template(name: str, count: int = 1, **exactly: Any) -> Document:
    return made("ResourceClaimTemplate", name, spec={"spec": asks(count, **exactly)})


def ours(name: str = "p", **entry: str) -> Document:
    document = pod(name, metadata=None, resourceClaims=[{"name": "c", **entry}])
    document["spec"]["schedulerName"] = "volcano"
    return document


def own(name: str = "p") -> Document:
    return ours(name, resourceClaimTemplateName="t")


def sharing(name: str = "p") -> Document:
    return ours(name, resourceClaimName="c")


def allocated(stage: Stage) -> list[str]:
    """The devices that claims have, one for each time."""
    claims = stage.sandbox.store.ordered(CLAIMS)
    results = [
        each for one in claims for each in items(one, "status", "allocation", "devices", "results")
    ]
    return sorted(str(each["device"]) for each in results)


def test_a_pod_gets_the_devices_of_its_template() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(CLASS, offered("a", "b", "c"), template("t", 2), own())
        await stage.clock.settle()
        assert stage.node_of("p") == "node-00000"
        [found] = stage.sandbox.store.ordered(CLAIMS)
        assert found["metadata"]["name"].startswith("p-c-")
        assert [each["name"] for each in found["status"]["reservedFor"]] == ["p"]
        assert found["status"]["allocation"] == {
            "devices": {
                "results": [
                    {"request": "r", "driver": DRIVER, "pool": "node-00000", "device": name}
                    for name in "ab"
                ]
            },
            "nodeSelector": {
                "nodeSelectorTerms": [
                    {
                        "matchFields": [
                            {"key": "metadata.name", "operator": "In", "values": ["node-00000"]}
                        ]
                    }
                ]
            },
        }

    play(scenario)


def test_only_nodes_with_devices_are_offered_to_the_extender() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(CLASS, offered("a", node="node-00001"), template("t"), own())
        await stage.clock.settle()
        assert stage.extender.filtered("p") == [["node-00001"]]

    play(scenario)


def test_no_device_is_given_twice_and_the_rest_waits_until_one_is_free() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(CLASS, offered("a", "b"), template("t"), own("p"), own("q"), own("r"))
        await stage.clock.settle()
        assert [stage.node_of(name) for name in "pqr"] == ["node-00000", "node-00000", ""]
        assert stage.told("r")[1].startswith(
            "0/3 nodes are available: 3 cannot allocate all claims. no new claims to deallocate"
        )
        stage.sandbox.server.delete("/pods", at("p"))
        await stage.clock.advance(3)
        assert stage.node_of("r") == "node-00000"
        assert allocated(stage) == ["a", "b"]

    play(scenario)


def test_pods_share_a_claim_where_it_has_its_devices() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(CLASS, offered("a"), offered("b", node="node-00001"), claim("c"))
        stage.create(sharing("p"), sharing("q"))
        await stage.clock.settle()
        assert stage.node_of("p") == stage.node_of("q")
        [found] = stage.sandbox.store.ordered(CLAIMS)
        assert [each["name"] for each in found["status"]["reservedFor"]] == ["p", "q"]
        for name in "pq":
            stage.sandbox.server.delete("/pods", at(name))
        await stage.clock.settle()
        [found] = stage.sandbox.store.ordered(CLAIMS)
        assert not section(found, "status", "allocation")

    play(scenario)


def test_the_claim_of_a_pod_goes_with_it() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(CLASS, offered("a"), template("t"), own())
        await stage.clock.settle()
        stage.patch("p", {"status": {"phase": "Succeeded"}}, subresource="status")
        await stage.clock.settle()
        assert stage.sandbox.store.ordered(CLAIMS) == []

    play(scenario)


def test_devices_are_given_back_where_the_pod_is_not_bound() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.bind_error = "the gang is not whole"
        stage.create(CLASS, offered("a"), template("t"), own("p"))
        await stage.clock.settle()
        assert (stage.node_of("p"), allocated(stage)) == ("", ["a"])
        stage.create(own("q"))
        await stage.clock.settle()
        assert "cannot allocate all claims" in stage.told("q")[1]
        stage.sandbox.server.delete("/pods", at("p"))
        stage.extender.bind_error = ""
        await stage.clock.advance(3)
        assert stage.node_of("q") == "node-00000"

    play(scenario)


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ([own()], "waiting for dynamic resource controller to create the resourceclaim"),
        ([sharing()], 'resourceclaim "c" not found'),
        ([claim("c"), sharing()], "could not retrieve device class gpu"),
        ([CLASS, claim("c"), sharing()], "cannot allocate all claims"),
    ],
    ids=["no-template", "no-claim", "no-class", "no-device"],
)
def test_a_pod_waits_for_what_is_not_there(before: list[Document], said: str) -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(*before)
        await stage.clock.settle()
        assert said in stage.told("p")[1]

    play(scenario)


def test_a_pod_comes_once_a_driver_offers_devices() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(CLASS, template("t"), own())
        await stage.clock.settle()
        assert not stage.node_of("p")
        stage.create(offered("a", node=""))
        await stage.clock.advance(3)
        assert stage.node_of("p")
        [found] = stage.sandbox.store.ordered(CLAIMS)
        assert "nodeSelector" not in found["status"]["allocation"]

    play(scenario)


def test_parts_of_a_device_are_given_as_they_are_asked_for() -> None:
    async def scenario(stage: Stage) -> None:
        memory = {"memory": {"value": "80Gi"}}
        vgpu = offered("a", allowMultipleAllocations=True, capacity=memory)
        part = template("t", capacity={"requests": {"memory": "40Gi"}})
        stage.create(CLASS, vgpu, part, own("p"), own("q"), own("r"))
        await stage.clock.settle()
        assert [bool(stage.node_of(name)) for name in "pqr"] == [True, True, False]
        results = [
            each
            for one in stage.sandbox.store.ordered(CLAIMS)
            for each in items(one, "status", "allocation", "devices", "results")
        ]
        assert [each["consumedCapacity"] for each in results] == [{"memory": "40Gi"}] * 2
        assert len({each["shareID"] for each in results}) == 2

    play(scenario)


def test_admins_look_at_devices_that_others_have() -> None:
    async def scenario(stage: Stage) -> None:
        stage.create(CLASS, offered("a"), template("t"), own("p"))
        await stage.clock.settle()
        stage.create(claim("c", adminAccess=True), sharing("q"))
        await stage.clock.settle()
        assert stage.node_of("q") == "node-00000"
        assert allocated(stage) == ["a", "a"]

    play(scenario)


def test_an_extender_that_fails_takes_no_devices() -> None:
    async def scenario(stage: Stage) -> None:
        stage.extender.filter = error("not now")
        stage.create(CLASS, offered("a"), template("t"), own())
        await stage.clock.settle()
        assert allocated(stage) == []

    play(scenario)
