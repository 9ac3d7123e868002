"""What people, probes and the job controller read."""

import json
from typing import Any

import pytest

from app.model.ids import NodeName, QueueName
from app.model.lease import Lease
from app.model.pod import GATE
from app.model.workload import GroupPhase, Quota
from app.service.activity import Activity
from tests.api.stand import Stand, args, stand
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.evicting import Contended
from tests.service.rig import FAILING, Rig
from tests.service.virtual_time import advance, clock, settle

PAGES = (
    "snapshot",
    "queues",
    "domains",
    "ledger",
    "plan",
    "gangs",
    "vetoes",
    "evictions",
    "certificates",
)
"""What there is to debug with."""


async def read(at: Stand, path: str) -> Any:
    """The JSON at ``path``."""
    answer = await at.get(path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


# --- probes ---------------------------------------------------------------------------------------


async def test_it_lives_before_it_is_ready() -> None:
    async with stand() as at:
        at.waits[:] = ["the first listing of pods", "the first planning cycle"]
        live = await at.get("/livez")
        assert (live.status_code, live.text) == (200, "ok\n")
        for path in ("/readyz", "/healthz"):
            ready = await at.get(path)
            assert ready.status_code == 503
            assert ready.text == (
                "waiting for the first listing of pods\nwaiting for the first planning cycle\n"
            )
        at.waits.clear()
        for path in ("/readyz", "/healthz"):
            ready = await at.get(path)
            assert (ready.status_code, ready.text) == (200, "ok\n")


async def test_a_refused_configuration_is_a_note_and_stops_nothing() -> None:
    rig = Rig()
    async with stand(rig) as at:
        rig.parts.configuration.load("actions: dance")
        ready = await at.get("/readyz")
        assert ready.status_code == 200
        first, second = ready.text.splitlines()
        assert first == "ok"
        assert second.startswith("note: scheduler configuration refused: ")
        at.waits[:] = ["something"]
        assert "note: " in (await at.get("/readyz")).text


async def test_metrics_are_prometheus_text() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p")
    async with stand(rig) as at:
        await rig.cycle()
        answer = await at.get("/metrics")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain; version=")
        for name in (
            "pumice_cycle_seconds_bucket",
            'pumice_extender_call_seconds_count{verb="filter"}',
            'pumice_extender_answers_total{answer="chosen",verb="filter"}',
            'pumice_groups_refused{cause="NotEnoughResources"}',
            "pumice_ledger_drift",
            "process_resident_memory_bytes",
        ):
            assert name in answer.text, name


@pytest.mark.parametrize("path", ["/docs", "/openapi.json"])
async def test_the_routes_are_described(path: str) -> None:
    async with stand() as at:
        answer = await at.get(path)
        assert answer.status_code == 200


async def test_the_description_names_every_route_once() -> None:
    async with stand() as at:
        described = (await at.get("/openapi.json")).json()
        assert described["info"]["title"] == "Pumice"
        assert set(described["paths"]) == {
            *(f"/{verb}" for verb in ("filter", "prioritize", "bind", "preempt")),
            *("/livez", "/readyz", "/healthz", "/metrics"),
            "/explain/{namespace}/{name}",
            "/plan/{namespace}/{podgroup}",
            "/preview/queue/{name}",
            "/simulate",
            "/fits",
            *("/audit", "/audit/evictions/{namespace}/{name}"),
            "/record",
            "/advice/{namespace}/{name}",
            *("/eta", "/eta/{namespace}", "/eta/{namespace}/{name}"),
            "/line/{namespace}/{name}",
            *("/view", "/view/stream", "/view/history"),
            "/view/jobs/{namespace}/{name}",
            *("/ui", "/ui/{file}"),
            *(f"/debug/{page}" for page in PAGES),
        }
        for verb in ("filter", "prioritize", "bind", "preempt"):
            assert described["paths"][f"/{verb}"]["post"]["requestBody"]["required"]


# --- explain and plan -----------------------------------------------------------------------------


async def test_a_waiting_gang_is_explained_with_numbers() -> None:
    rig = Rig()
    rig.node("n1")
    names = rig.gang("g", size=3, gated=True, shape=make_shape(cpu=3000))
    rig.pod("used", node=NodeName("n1"), shape=make_shape(cpu=4000), phase="Running")
    await rig.cycle()
    async with stand(rig) as at:
        story = await read(at, "/explain/default/g")
        assert (story["group"], story["queue"], story["min_member"]) == (
            "default/g",
            "default",
            3,
        )
        assert story["phase"] == "Inqueue"
        assert story["counts"] == {"waiting": 3}
        assert story["slots"] == {}
        reason = story["reason"]
        assert reason["cause"]
        assert "cpu" in story["summary"]
        assert [m["pod"] for m in story["members"]] == [f"default/{name}" for name in names]
        assert {m["stage"] for m in story["members"]} == {"waiting"}
        assert story["members"][0]["gates"] == [GATE]
        [step] = story["story"]
        assert (step["before"], step["after"]) == ("Inqueue", "set aside")
        assert {len(m["story"]) for m in story["members"]} == {0}
        assert await read(at, f"/explain/default/{names[0]}") == story


async def test_what_a_group_waits_for_is_said_at_every_stage() -> None:
    rig = Rig()
    rig.node("n1")
    names = rig.gang("g", size=2)
    async with stand(rig) as at:
        path = "/explain/default/g"
        assert (await read(at, path))["summary"] == "waiting for the next planning cycle"
        await rig.cycle()
        story = await read(at, path)
        assert story["summary"] == "has its places; waiting for kube-scheduler to bind"
        assert story["members"][0]["node"] == "n1"
        calls = [rig.bind(name) for name in names]
        await settle()
        assert all(call.answer == "" for call in calls)
        rig.show_bindings()
        story = await read(at, path)
        assert story["summary"] == "nothing is missing"
        assert {m["stage"] for m in story["members"]} == {"bound"}


async def test_nothing_is_said_to_be_bound_while_members_do_not_exist() -> None:
    rig = Rig()
    rig.node("n1")
    rig.group("g", minimum=2, min_resources=make_amounts(cpu=2000))
    await rig.cycle()
    async with stand(rig) as at:
        path = "/explain/default/g"
        story = await read(at, path)
        assert story["summary"] == "room is kept for 2 members that do not exist yet"
        rig.pod("g-0", group="g", created=clock())
        await rig.cycle()
        story = await read(at, path)
        assert story["counts"] == {"placed": 1}
        assert story["summary"] == "room is kept for a member that does not exist yet"


async def test_a_single_pod_and_a_pod_without_its_group_are_explained() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("alone", shape=make_shape(cpu=90_000))
    rig.pod("orphan", group="nowhere")
    await rig.cycle()
    async with stand(rig) as at:
        alone = await read(at, "/explain/default/alone")
        assert alone["group"].startswith("default/pod:")
        assert alone["reason"]["shortfalls"]
        orphan = await read(at, "/explain/default/orphan")
        assert orphan["reason"]["cause"] == "PodGroupMissing"
        assert orphan["phase"] == "Pending"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/explain/default/none", "no PodGroup or pod default/none is known"),
        ("/plan/default/none", "no PodGroup default/none is known"),
        ("/plan/other/g", "no PodGroup other/g is known"),
    ],
)
async def test_what_is_not_known_is_said_in_one_line(path: str, line: str) -> None:
    rig = Rig()
    rig.gang("g", size=1)
    async with stand(rig) as at:
        answer = await at.get(path)
        assert (answer.status_code, answer.text) == (404, f"{line}\n")


async def test_the_job_controller_reads_where_to_create_its_pods() -> None:
    rig = Rig()
    rig.node("n1", "n2", cpu=2000)
    rig.group("g", minimum=3, phase=GroupPhase.PENDING, min_resources=make_amounts(cpu=3000))
    async with stand(rig) as at:
        before = await read(at, "/plan/default/g")
        assert before == {"phase": "Pending", "generation": 0, "slots": {}, "bearable": None}
        await rig.cycle()
        plan = await read(at, "/plan/default/g")
        assert plan["phase"] == "Inqueue"
        assert plan["generation"] > 0
        [nodes] = plan["slots"].values()
        assert len(nodes) == 3
        assert nodes == sorted(nodes)
        rig.pod("g-0", group="g", pinned=NodeName(nodes[0]))
        left = await read(at, "/plan/default/g")
        assert sum(map(len, left["slots"].values())) == 2
        rig.cache.quotas["q"] = Quota("default", "q", make_amounts(pods=9), ())
        counted = await read(at, "/plan/default/g")
        assert counted["bearable"] == {"": 2}, "2 of 4 cores are kept, and a pod waits"


# --- debug ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", ["plan", "explain"])
async def test_a_replica_that_does_not_lead_says_who_does_instead_of_guessing(page: str) -> None:
    standby = Activity(clock=clock, elected=True, namespace="n", name="l", identity="me")
    rig = Rig(activity=standby)
    rig.group("g", minimum=2)
    standby.set_lease(Lease(namespace="n", name="l", holder="other_1", renew=0.0, duration=15))
    async with stand(rig) as at:
        answer = await at.get(f"/{page}/default/g")
        assert answer.status_code == 503
        assert answer.text == "stands by: Lease n/l is held by other_1, not by me\n"


@pytest.mark.parametrize("verb", ["filter", "prioritize", "bind", "preempt"])
async def test_readers_find_all_pages_but_none_of_kube_scheduler_s_calls(verb: str) -> None:
    async with stand(reading=True) as at:
        for path in ("/livez", "/readyz", "/metrics", "/debug/queues", "/openapi.json"):
            assert (await at.get(path)).status_code == 200, path
        for prefix in ("", "/v1"):
            assert (await at.post(f"{prefix}/{verb}", args())).status_code == 404


async def test_the_snapshot_counts_what_is_known() -> None:
    rig = Rig()
    rig.node("n1")
    rig.node("n2", unschedulable=True)
    rig.gang("g", size=2)
    rig.pod("x", scheduler="other", node=NodeName("n2"))
    rig.parts.feed.reject("pods", "default/odd", "spec.containers: expected a list")
    hard, used = make_amounts(pods=3), make_amounts(pods=2)
    rig.see("resourcequotas", Quota("default", "limits", hard=hard, used=used))
    await rig.cycle()
    async with stand(rig) as at:
        page = await read(at, "/debug/snapshot")
        assert page["totals"] == {
            "nodes": 2,
            "members": 2,
            "foreign": 1,
            "groups": 1,
            "pending": 0,
            "setAside": 0,
        }
        assert page["nodes"]["n1"]["free"]["cpu"] == 6000
        assert page["nodes"]["n1"]["charges"] == 2
        assert page["nodes"]["n2"]["takesPods"] is False
        assert page["quotas"] == {"default/limits": {"hard": {"pods": 3}, "used": {"pods": 2}}}
        [odd] = page["malformed"]
        assert "default/odd" in odd.values()
        assert odd["message"] == "spec.containers: expected a list"


async def test_queues_show_limits_and_sums() -> None:
    rig = Rig()
    rig.node("n1")
    rig.queue(make_queue("q", weight=3, capability=make_amounts(cpu=4000)))
    rig.group("g", minimum=1, queue=QueueName("q"))
    rig.pod("g-0", group="g", node=NodeName("n1"), phase="Running")
    async with stand(rig) as at:
        page = await read(at, "/debug/queues")
        assert set(page) == {"root", "default", "q"}
        assert page["q"]["weight"] == 3
        assert page["q"]["capability"] == {"cpu": 4000}
        assert page["q"]["allocated"]["cpu"] == 1000
        assert page["q"]["groups"] == 1
        assert "allocated" not in page["root"]


async def test_the_ledger_is_compared_with_the_api_server() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p", node=NodeName("n1"), phase="Running")
    rig.gang("g", size=2)
    await rig.cycle()
    async with stand(rig) as at:
        page = await read(at, "/debug/ledger")
        assert page == {"drifts": [], "pods": 3, "charges": 3, "promises": 2}
        del rig.api.pods["default/p"]
        page = await read(at, "/debug/ledger")
        [drift] = page["drifts"]
        assert (drift["kind"], drift["uid"]) == ("redundant", "uid-p")
        assert "pumice_ledger_drift 1.0" in (await at.get("/metrics")).text


async def test_the_ledger_page_says_when_the_api_server_does_not_answer() -> None:
    rig = Rig()
    rig.api.fails["list"] = [FAILING]
    async with stand(rig) as at:
        answer = await at.get("/debug/ledger")
        assert (answer.status_code, answer.text) == (502, "500: internal error\n")


async def test_the_plan_page_has_the_last_cycle_and_every_refusal() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2, shape=make_shape(cpu=9000))
    await rig.cycle()
    async with stand(rig) as at:
        page = await read(at, "/debug/plan")
        assert page["cycle"]["cycles"] == 1
        assert page["cycle"]["generation"] > 0
        assert page["refused"]["default/g"]["cause"]
        assert page["refused"]["default/g"]["shortfalls"]


async def test_gangs_with_reservations_or_cool_downs_are_shown() -> None:
    rig = Rig()
    rig.node("n1")
    names = rig.gang("g", size=2)
    rig.gang("waits", size=2, shape=make_shape(cpu=9000))
    await rig.cycle()
    async with stand(rig) as at:
        rig.bind(names[0])
        await settle()
        page = await read(at, "/debug/gangs")
        assert set(page) == {"default/g"}
        assert page["default/g"]["minMember"] == 2
        assert page["default/g"]["arrived"] == 1
        assert page["default/g"]["heldBinds"] == 1
        assert page["default/g"]["failures"] == 0
        rig.parts.barrier.drain()
        await settle()


async def test_a_hold_whose_group_has_just_gone_does_not_break_the_page() -> None:
    rig = Rig()
    rig.node("n1")
    names = rig.gang("g", size=2)
    await rig.cycle()
    async with stand(rig) as at:
        rig.bind(names[0])
        await settle()
        for name in names:
            rig.cache.drop_pod(rig.api.pods[f"default/{name}"].uid)
        rig.cache.drop_group(rig.key("g"))
        assert await read(at, "/debug/gangs") == {}
        rig.parts.barrier.settle()
        await settle()


async def test_vetoes_are_shown_while_they_last() -> None:
    rig = Rig()
    rig.node("n1", "n2", "n3")
    rig.pod("p")
    await rig.cycle()
    vetoed = rig.place("p")
    rig.filter("p", [name for name in ("n1", "n2", "n3") if name != vetoed])
    async with stand(rig) as at:
        [veto] = await read(at, "/debug/vetoes")
        assert veto["node"] == vetoed
        assert veto["requests"]["cpu"] == 1000
        await advance(rig.limits.veto_s)
        assert await read(at, "/debug/vetoes") == []


async def test_evictions_are_shown_with_their_certificates() -> None:
    rig = Contended()
    rig.decide(rig.plan(certificate={"version": 1}))
    async with stand(rig) as at:
        page = await read(at, "/debug/evictions")
        [begun] = page["begun"]
        assert begun["group"] == "default/high"
        assert [v["pod"] for v in begun["victims"]] == ["default/low-0", "default/low-1"]
        assert (page["paused"], page["stuck"]) == ({}, {})
        [decided] = await read(at, "/debug/certificates")
        assert decided["certificate"] == {"version": 1}
        story = await read(at, "/explain/default/high")
        assert story["evictions"] == [begun]


async def test_every_page_of_an_empty_cluster_is_there() -> None:
    async with stand() as at:
        for page in PAGES:
            json.dumps(await read(at, f"/debug/{page}"))
