"""The four calls over HTTP, with the bodies that the stock scheduler sent."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from app.model.ids import NodeName, PodUid
from app.model.pod import GROUP_ANNOTATION
from app.service.limits import Limits, PlacementHint
from tests.api.stand import Stand, args, binding, recorded, stand
from tests.builders import make_pod, make_shape
from tests.service.rig import Rig
from tests.service.virtual_time import advance, settle

NODES = ("node-00000", "node-00001", "node-00002")
LOW = PodUid("601eaec6-3a6b-4021-9518-8c1ca87b2392")
"""UID of the pod in the recorded Filter and Bind."""


def recorded_cluster() -> Rig:
    """The cluster that the bodies were recorded on: three nodes and the pod's group."""
    rig = Rig()
    rig.node(*NODES, cpu=2000)
    rig.group("g1", minimum=1)
    return rig


def known(rig: Rig, uid: PodUid = LOW) -> None:
    """The watch has shown the recorded pod."""
    annotations = {GROUP_ANNOTATION: "g1"}
    rig.store(make_pod("low0", uid=uid, annotations=annotations, shape=make_shape(cpu=1000)))


def occupied(sent: dict[str, Any], rig: Rig) -> None:
    """The victims of a recorded Preempt run where they are said to."""
    by_name, by_uid = sent["NodeNameToVictims"], sent["NodeNameToMetaVictims"]
    for node, victims in (by_name or by_uid).items():
        for number, victim in enumerate(victims["Pods"]):
            uid = PodUid(victim["metadata"]["uid"] if by_name else victim["UID"])
            rig.pod(f"v-{node}-{number}", uid=uid, node=NodeName(node), phase="Running")


@pytest.mark.parametrize("prefix", ["", "/v1"])
async def test_a_recorded_filter_gets_one_of_its_nodes(prefix: str) -> None:
    async with stand(recorded_cluster()) as at:
        answer = await at.post(f"{prefix}/filter", recorded("filter.request"))
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        body = answer.json()
        assert set(body) == set(json.loads(recorded("filter.response")))
        assert len(body["NodeNames"]) == 1
        assert body["NodeNames"][0] in NODES
        assert (body["Nodes"], body["FailedNodes"], body["Error"]) == (None, {}, "")
        assert body["FailedAndUnresolvableNodes"] == {}
        again = await at.post(f"{prefix}/filter", recorded("filter.request"))
        assert again.json() == body


async def test_whole_node_objects_come_back_as_they_were_sent() -> None:
    async with stand(recorded_cluster()) as at:
        sent = json.loads(recorded("filter.nodes.request"))
        answer = (await at.post("/filter", recorded("filter.nodes.request"))).json()
        assert answer["NodeNames"] is None
        [node] = answer["Nodes"]["items"]
        assert node in sent["Nodes"]["items"]
        uid = PodUid(sent["Pod"]["metadata"]["uid"])
        assert at.rig.cache.members[uid].node == node["metadata"]["name"]


async def test_the_nominated_node_is_asked_about_alone() -> None:
    rig = recorded_cluster()
    known(rig)
    async with stand(rig) as at:
        assert rig.cache.reservations.move(LOW, NodeName("node-00002"), now=rig.clock())
        answer = (await at.post("/filter", recorded("filter.nominated.request"))).json()
        assert answer["Error"], "what was to leave the node for it is there as far as we know"


async def test_a_pod_that_waits_gets_the_same_words_for_every_node() -> None:
    rig = recorded_cluster()
    rig.group("g1", minimum=50)
    async with stand(rig) as at:
        body = (await at.post("/filter", recorded("filter.request"))).json()
        assert body["NodeNames"] == []
        assert body["FailedNodes"] == {}, "plain failures make the scheduler try again"
        assert set(body["FailedAndUnresolvableNodes"]) == set(NODES)
        assert len(set(body["FailedAndUnresolvableNodes"].values())) == 1


async def test_a_crowd_is_answered_with_error() -> None:
    rig = Rig(Limits(protect_above=0))
    rig.node(*NODES, cpu=2000)
    rig.group("g1", minimum=50)
    async with stand(rig) as at:
        body = (await at.post("/filter", recorded("filter.request"))).json()
        assert body["Error"]
        assert body["NodeNames"] is None
        assert body["FailedAndUnresolvableNodes"] == {}


async def test_an_offer_of_no_nodes_is_answered_with_none_and_plans_nothing() -> None:
    async with stand(recorded_cluster()) as at:
        offers: list[dict[str, Any]] = [
            {"NodeNames": []},
            {"NodeNames": None, "Nodes": {"items": []}},
        ]
        for offer in offers:
            body = args("p") | offer
            answer = await at.post("/filter", body)
            assert answer.status_code == 200
            assert not answer.json()["NodeNames"]
        assert at.reserved() == 0


async def test_others_pass_untouched_in_form_c() -> None:
    async with stand(recorded_cluster()) as at:
        sent = args("x", nodes=[*NODES, "brand-new"], schedulerName="default-scheduler")
        body = (await at.post("/filter", sent)).json()
        assert body["NodeNames"] == [*NODES, "brand-new"]
        assert at.reserved() == 0


@pytest.mark.parametrize("name", ["prioritize.request", "prioritize.nodes.request"])
async def test_a_recorded_prioritize_scores_every_node(name: str) -> None:
    rig = recorded_cluster()
    uid = PodUid(json.loads(recorded(name))["Pod"]["metadata"]["uid"])
    known(rig, uid)
    await rig.cycle()
    async with stand(rig) as at:
        scores = (await at.post("/prioritize", recorded(name))).json()
        assert all(set(entry) == {"Host", "Score"} for entry in scores)
        place = rig.cache.members[uid].node
        assert {entry["Host"]: entry["Score"] for entry in scores} == {
            node: 10 if node == place else 0 for node in NODES
        }


async def test_guided_placement_scores_by_the_policies() -> None:
    rig = Rig(Limits(hint=PlacementHint.GUIDE))
    rig.node("n1", "n2")
    rig.pod("p")
    async with stand(rig) as at:
        body = (await at.post("/filter", args("p", nodes=["n1", "n2"]))).json()
        assert set(body["NodeNames"]) == {"n1", "n2"}
        scores = (await at.post("/prioritize", args("p", nodes=["n1", "n2"]))).json()
        assert all(0 <= entry["Score"] <= 10 for entry in scores)


async def test_a_recorded_bind_binds() -> None:
    rig = recorded_cluster()
    known(rig)
    await rig.cycle()
    async with stand(rig) as at:
        answer = await at.post("/bind", recorded("bind.request"))
        assert answer.status_code == 200
        assert answer.json() == json.loads(recorded("bind.response")) == {"Error": ""}
        assert rig.api.bound() == {"low0": "node-00002"}


async def test_binds_of_a_gang_are_held_and_answered_together() -> None:
    rig = Rig()
    rig.node("n1")
    names = rig.gang("g", size=3)
    await rig.cycle()
    async with stand(rig) as at:
        held = [asyncio.create_task(at.post("/bind", binding(name))) for name in names[:2]]
        await advance(10)
        assert not any(call.done() for call in held)
        gangs = (await at.get("/debug/gangs")).json()
        assert gangs["default/g"]["heldBinds"] == 2
        last = await at.post("/v1/bind", binding(names[2]))
        answers = [last, *(await asyncio.gather(*held))]
        assert [answer.json() for answer in answers] == [{"Error": ""}] * 3


async def test_a_gang_that_does_not_complete_is_answered_with_an_error_in_a_200() -> None:
    rig = Rig()
    rig.node("n1")
    names = rig.gang("g", size=2)
    await rig.cycle()
    async with stand(rig) as at:
        answer = await at.post("/bind", binding(names[0]))
        assert answer.status_code == 200
        assert answer.json() == {"Error": "gang did not complete in time"}
        assert rig.has_reservations() == 0


async def test_a_connection_that_closes_ends_the_hold() -> None:
    """The scheduler died: the pod is not bound, its place is kept."""

    rig = Rig()
    rig.node("n1")
    names = rig.gang("g", size=2)
    await rig.cycle()
    async with stand(rig) as at:
        hung_up = asyncio.Event()
        call = asyncio.create_task(_raw_bind(at, binding(names[0]), hung_up))
        await settle()
        assert rig.parts.barrier.held()
        hung_up.set()
        await settle()
        assert call.done()
        assert rig.parts.barrier.held() == {}
        assert rig.api.tries == []


async def _raw_bind(at: Stand, body: dict[str, str], hung_up: asyncio.Event) -> None:
    """A Bind call below HTTP, whose client goes away when ``hung_up`` is set."""
    messages = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await hung_up.wait()
        return {"type": "http.disconnect"}

    async def send(_message: Any) -> None:
        return None

    transport: Any = at.client._transport
    scope = {"type": "http", "method": "POST", "path": "/bind", "headers": [], "query_string": b""}
    await transport.app(scope, receive, send)


@pytest.mark.parametrize("name", ["preempt", "preempt.nodes"])
async def test_recorded_preemptions_pass_when_nobody_is_protected(name: str) -> None:
    rig = recorded_cluster()
    occupied(json.loads(recorded(f"{name}.request")), rig)
    async with stand(rig) as at:
        answer = await at.post("/preempt", recorded(f"{name}.request"))
        assert answer.status_code == 200
        passed = json.loads(recorded(f"{name}.response"))["NodeNameToMetaVictims"]
        first = {"node-00000": passed["node-00000"]}
        assert answer.json() == {"NodeNameToMetaVictims": first}


async def test_protected_victims_are_struck_out_and_nobody_left_is_a_veto() -> None:
    rig = recorded_cluster()
    sent = json.loads(recorded("preempt.request"))
    occupied(sent, rig)
    async with stand(rig) as at:
        for protected in (("node-00000", "node-00002"), ("node-00001",)):
            for pod in list(rig.api.pods.values()):
                if pod.node in protected:
                    rig.store(replace(pod, priority_class="system-node-critical"))
            answer = (await at.post("/preempt", recorded("preempt.request"))).json()
            kept = {} if len(protected) == 1 else {"node-00001"}
            assert set(answer["NodeNameToMetaVictims"]) == set(kept)
            for node in kept:
                victims = sent["NodeNameToMetaVictims"][node]
                assert answer["NodeNameToMetaVictims"][node] == victims


async def test_a_preemption_for_one_member_of_a_gang_is_vetoed() -> None:
    rig = recorded_cluster()
    sent = json.loads(recorded("preempt.request"))
    occupied(sent, rig)
    rig.group("g1", minimum=2)
    sent["Pod"]["metadata"]["annotations"] = {GROUP_ANNOTATION: "g1"}
    async with stand(rig) as at:
        answer = await at.post("/preempt", sent)
        assert answer.json() == {"NodeNameToMetaVictims": {}}
