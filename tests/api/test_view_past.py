"""What was: the last hour of queues and jobs, and one job's story."""

import json
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from app.model.decision import DecisionKind
from app.model.ids import NodeName
from app.model.workload import Namespace
from app.service.telling.view.history import EVENTS, EVERY_S, SAMPLES, TOLD, History
from app.service.telling.view.job_story import JobStory
from tests.api.stand import Stand, services_of, stand
from tests.api.test_access import SECRET, KeptInMind, asked_by, crowded
from tests.api.view_reader import ONE, shared
from tests.builders import make_queue, make_shape
from tests.service.rig import Rig
from tests.service.virtual_time import START, advance, settle

STAGES = ["submitted", "enqueued", "planned", "held", "bound", "running", "ended"]


async def read(at: Stand, path: str) -> Any:
    answer = await at.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def times(story: Any) -> dict[str, float | None]:
    """When the job came to each stage but the first, in seconds since the start."""
    return {
        each["stage"]: round(each["at"] - START, 3)
        for each in story["stages"][1:]
        if each["at"] is not None
    }


async def run_through(rig: Rig, name: str = "g") -> None:
    """A gang of two comes at one second, is bound at three, runs at four."""
    await advance(1)
    rig.gang(name, size=2, shape=ONE)
    await rig.cycle()
    await advance(1)
    calls = [rig.bind(f"{name}-0")]
    await advance(1)
    calls.append(rig.bind(f"{name}-1"))
    await settle()
    rig.show_bindings()
    await rig.cycle()
    await advance(1)
    set_phase(rig, "Running", f"{name}-0", f"{name}-1")
    await rig.cycle()


def set_phase(rig: Rig, phase: str, *names: str) -> None:
    rig.store(*(replace(rig.api.pods[f"default/{name}"], phase=phase) for name in names))


# --- one job --------------------------------------------------------------------------------------


async def test_a_story_tells_when_the_job_came_to_each_stage() -> None:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    async with stand(rig) as at:
        await run_through(rig)
        story = await read(at, "/view/jobs/default/g")
        assert [each["stage"] for each in story["stages"]] == STAGES
        assert story["current"] == "running"
        assert story["stages"][0]["at"] == story["job"]["created"]
        assert times(story) == {"planned": 1.0, "held": 2.0, "bound": 3.0, "running": 4.0}
        await advance(5)
        set_phase(rig, "Succeeded", "g-0", "g-1")
        await rig.cycle()
        story = await read(at, "/view/jobs/default/g")
        assert (story["current"], times(story)["ended"]) == ("ended", 9.0)


async def test_a_story_is_what_is_described() -> None:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    async with stand(rig) as at:
        await run_through(rig)
        answer = await at.get("/view/jobs/default/g")
        TypeAdapter(JobStory).validate_json(answer.content)
        history = await at.get("/view/history")
        TypeAdapter(History).validate_json(history.content)


async def test_a_job_that_waits_says_why_and_where_it_stands_in_its_line() -> None:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    rig.gang("runs", size=1, node=NodeName("n1"), phase="Running", shape=make_shape(cpu=3_000))
    rig.gang("first", size=2, gated=True, shape=ONE)
    rig.gang("second", size=2, gated=True, shape=ONE)
    await rig.cycle()
    async with stand(rig) as at:
        story = await read(at, "/view/jobs/default/second")
    assert story["current"] == "enqueued"
    assert (story["why"]["outlook"], story["why"]["place"]) == (
        "not yet",
        {"position": 2, "of": 2},
    )
    assert "cpu" in story["why"]["reason"]
    assert [each["state"] for each in story["members"]] == ["waiting", "waiting"]
    assert story["members"][0]["gates"] == ["pumice.sh/plan"]


async def test_a_job_whose_members_wait_at_the_barrier_says_how_many() -> None:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    rig.gang("g", size=2, shape=ONE)
    await rig.cycle()
    async with stand(rig) as at:
        rig.bind("g-0")
        await settle()
        story = await read(at, "/view/jobs/default/g")
        held = next(each for each in story["stages"] if each["stage"] == "held")
        assert story["current"] == "held"
        assert held["text"] == "1 of 2 members wait for the others"


async def test_a_job_is_found_by_the_name_of_a_pod_too() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=2, shape=ONE)
    await rig.cycle()
    async with stand(rig) as at:
        assert (await read(at, "/view/jobs/default/g-1"))["key"] == "default/g"


async def test_a_job_that_lost_its_places_is_told_of_its_latest_attempt() -> None:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    async with stand(rig) as at:
        await advance(1)
        rig.gang("g", size=2, shape=ONE)
        await rig.cycle()
        await advance(1)
        rig.cache.reservations.release(rig.key("g"), why="another node")
        story = await read(at, "/view/jobs/default/g")
        assert (story["current"], times(story).get("planned")) == ("enqueued", None)
        await advance(1)
        await rig.cycle()
        story = await read(at, "/view/jobs/default/g")
        assert (story["current"], times(story)["planned"]) == ("planned", 3.0)


async def test_a_job_that_is_gone_is_told_of_from_decisions_and_its_last_run() -> None:
    rig = Rig()
    trail = KeptInMind(rig)
    rig.node("n1", cpu=4_000)
    async with stand(rig, trail=trail) as at:
        await run_through(rig)
        await advance(5)
        set_phase(rig, "Succeeded", "g-0", "g-1")
        group = rig.cache.groups[rig.key("g")].pod_group
        rig.unsee("podgroups", group)
        rig.delete("g-0", "g-1")
        await rig.cycle()
        story = await read(at, "/view/jobs/default/g")
        assert (story["job"], story["current"], story["members"]) == (None, "ended", [])
        assert {"bound": 3.0, "ended": 9.0}.items() <= times(story).items()


async def test_nothing_is_known_of_a_job_that_never_was() -> None:
    async with stand() as at:
        answer = await at.get("/view/jobs/default/none")
        assert (answer.status_code, answer.text) == (404, "nothing is known of default/none\n")


async def test_a_story_tells_who_was_evicted_for_it_and_of_it() -> None:
    rig, trail = crowded()
    async with stand(rig, trail=trail) as at:
        by_high = (await read(at, "/view/jobs/default/high"))["evictions"]
        of_low = (await read(at, "/view/jobs/default/low"))["evictions"]
    assert [each["pod"] for each in by_high["by"]] == [
        f"{SECRET}/secret-project-0",
        f"{SECRET}/secret-project-1",
    ]
    assert by_high["of"] == []
    [lost] = of_low["of"]
    assert (lost["pod"], lost["preemptor"], lost["rule"]) == (
        "default/low-0",
        f"{SECRET}/secret-train",
        "priority",
    )
    assert {each.kind for each in trail.decisions} >= {DecisionKind.EVICT}


# --- the last hour --------------------------------------------------------------------------------


async def test_the_hour_has_a_point_every_fifteen_seconds_and_no_more_than_an_hour() -> None:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    rig.gang("g", size=2, shape=ONE)
    await rig.cycle()
    async with stand(rig) as at:
        for _ in range(SAMPLES + 10):
            await advance(EVERY_S)
            at.history.look()
        told = await read(at, "/view/history")
    assert len(told["times"]) == SAMPLES
    assert told["times"][1] - told["times"][0] == EVERY_S
    assert told["queues"]["default"]["held"] == {
        name: [amount] * SAMPLES
        for name, amount in (("cpu", 2_000), ("memory", 2 * 2**30), ("pods", 2))
    }


async def test_a_queue_that_was_not_there_has_no_numbers_for_that_time() -> None:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    async with stand(rig) as at:
        at.history.look()
        rig.queue(make_queue("late"))
        rig.group("g", minimum=1, queue="late")
        rig.pod("g-0", group="g", shape=ONE)
        await rig.cycle()
        at.history.look()
        told = await read(at, "/view/history?queue=late")
    assert set(told["queues"]) == {"late"}
    assert told["queues"]["late"]["held"]["cpu"] == [None, 1_000]


async def test_a_resource_that_comes_later_has_its_own_row_from_then_on() -> None:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    async with stand(rig) as at:
        at.history.look()
        rig.node("n2", cpu=4_000, extra={"nvidia.com/gpu": 8})
        at.history.look()
        told = await read(at, "/view/history")
    assert len(told["times"]) == 2
    assert told["queues"]["root"]["held"] == {}


async def test_many_queues_are_told_a_part_at_a_time() -> None:
    rig = Rig()
    rig.queue(make_queue("last"))
    for number in range(TOLD + 10):
        rig.queue(make_queue(f"q{number}"))
    async with stand(rig) as at:
        at.history.look()
        assert len((await read(at, "/view/history"))["queues"]) == TOLD
        assert set((await read(at, "/view/history?queue=last"))["queues"]) == {"last"}


async def test_starts_and_ends_of_jobs_are_told_in_their_order() -> None:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    async with stand(rig) as at:
        await run_through(rig)
        await advance(5)
        set_phase(rig, "Succeeded", "g-0", "g-1")
        await rig.cycle()
        events = (await read(at, "/view/history"))["events"]
    assert [(each["kind"], each["job"], each["at"] - START) for each in events] == [
        ("started", "default/g", 3.0),
        ("ended", "default/g", 9.0),
    ]
    assert [each["pods"] for each in events] == [2, 2]


async def test_so_many_events_are_kept_and_no_more() -> None:
    rig = Rig()
    rig.node("n1", cpu=10_000_000, pods=10_000)
    services = services_of(rig)
    for number in range(EVENTS + 5):
        rig.pod(f"p{number}", node=NodeName("n1"), phase="Running", shape=ONE)
    await rig.cycle()
    told = services.history.told(None, None)
    assert len(told.events) == EVENTS
    rig.delete(*(f"p{number}" for number in range(EVENTS + 5)))
    await rig.cycle()
    assert len(services.history._ended) == EVENTS
    assert not services.history._going


async def test_a_tenant_s_hour_has_its_queues_and_its_own_jobs_only() -> None:
    rig = shared()
    rig.see("namespaces", Namespace(SECRET, {}, {}))
    async with asked_by("toms", rig) as at:
        await rig.cycle()
        at.history.look()
        for name in ("mine-0", "mine-1"):
            pod = rig.api.pods[f"default/{name}"]
            rig.store(replace(pod, node=NodeName("n1"), phase="Running"))
        theirs = rig.api.pods[f"{SECRET}/plan-0"]
        rig.store(replace(theirs, node=NodeName("n1"), phase="Running"))
        await rig.cycle()
        told = await read(at, "/view/history?namespace=default")
        assert set(told["queues"]) == {"ours", "root"}
        assert [each["job"] for each in told["events"]] == ["default/mine"]
        assert SECRET not in json.dumps(told)
        answer = await at.get("/view/history?namespace=default&queue=theirs")
        assert answer.json()["queues"] == {}
