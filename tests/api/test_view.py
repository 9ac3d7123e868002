"""The whole state for readers: once, and live as what changed."""

import asyncio
import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from app.api.live import BEAT_S, PIECE
from app.core.eta.forecast import EtaOutcome
from app.kit.turns import TooMany
from app.model.ids import GroupKey
from app.model.lease import Lease
from app.service.activity import Activity
from app.service.cycle.eta.etas import EtaAnswer, Etas
from app.service.cycle.slices import in_slices
from app.service.telling.view import views as views_module
from app.service.telling.view.audience import DELTAS
from app.service.telling.view.expected import EVERY_S as FORECAST_EVERY_S
from app.service.telling.view.rows import Whole
from app.service.telling.view.views import (
    EVERY_S,
    KEPT_S,
)
from tests.api.stand import stand
from tests.api.view_reader import BIG, ONE, Reader, reading, rows, state_in, taken_up, whole
from tests.builders import make_pod, make_shape
from tests.service.rig import Rig
from tests.service.virtual_time import advance, clock, settle

# --- the whole ------------------------------------------------------------------------------------


async def test_the_whole_is_what_is_described() -> None:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    rig.gang("runs", size=2, shape=ONE)
    rig.gang("waits", size=2, gated=True, shape=BIG)
    await rig.cycle()
    async with stand(rig) as at:
        answer = await at.get("/view")
        assert answer.headers["content-type"] == "application/json"
        told = TypeAdapter(Whole).validate_json(answer.content)
        assert told.role == "leads"
        schema = (await at.get("/openapi.json")).json()["paths"]["/view"]["get"]["responses"]
        assert "application/json" in schema["200"]["content"]


@pytest.mark.parametrize(
    ("accepts", "packed"),
    [
        ("gzip", True),
        ("br, GZip;q=0.5", True),
        ("gzip; q=1.0", True),
        ("", False),
        ("br", False),
        ("gzip;q=0", False),
        ("gzip;q=0.000", False),
    ],
)
async def test_the_whole_is_compressed_for_readers_that_take_that(
    accepts: str, packed: bool
) -> None:
    rig = Rig()
    for number in range(200):
        rig.node(f"n{number}", cpu=4_000)
    async with stand(rig) as at:
        async with at.client.stream("GET", "/view", headers={"accept-encoding": accepts}) as answer:
            sent = b"".join([part async for part in answer.aiter_raw()])
        assert answer.headers.get("content-encoding") == ("gzip" if packed else None)
        assert answer.headers["vary"] == "Accept-Encoding"
        text = gzip.decompress(sent) if packed else sent
        assert len(json.loads(text)["nodes"]) == 200
        assert len(sent) < len(text) / 5 or not packed


async def test_the_whole_is_dated_by_its_answer() -> None:
    async with stand() as at:
        first = await whole(at)
        await advance(EVERY_S / 2)
        second = await whole(at)
        assert second["generation"] == first["generation"]
        assert second["at"] == pytest.approx(first["at"] + EVERY_S / 2)


async def test_a_gang_with_places_and_one_without_are_told_apart() -> None:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    rig.gang("fits", size=2, shape=ONE)
    rig.gang("waits", size=2, gated=True, shape=BIG)
    await rig.cycle()
    async with stand(rig) as at:
        view = await whole(at)
    jobs = rows(view, "jobs")
    fits, waits = jobs["default/fits"], jobs["default/waits"]
    assert (fits["stage"], fits["waits"], fits["members"]["placed"]) == ("planned", False, 2)
    assert (waits["stage"], waits["waits"], waits["outlook"]) == ("enqueued", True, "never")
    assert "cpu" in waits["reason"]
    assert waits["asked"]["cpu"] == 18_000
    [node] = view["nodes"]
    assert (node["used"]["cpu"], node["used"]["pods"]) == (2_000, 2)
    assert node["reserved"] == node["used"]
    [share] = node["by"]
    assert (share["job"], share["queue"], share["pods"]) == ("default/fits", "default", 2)
    assert share["amounts"] == node["used"]
    [planned] = view["future"]
    assert planned["key"] == "planned default/fits"
    assert planned["text"] == "has 2 places on 1 node"
    queue = rows(view, "queues")["default"]
    assert (queue["parent"], queue["waiting"], queue["held"]["cpu"]) == ("root", 1, 2_000)
    assert queue["limit"]["cpu"] == 4_000


async def test_idle_room_in_pieces_that_are_too_small_is_told() -> None:
    rig = Rig()
    rig.node("n1", "n2", cpu=3_000)
    rig.node("shut", cpu=3_000, unschedulable=True)
    rig.gang("waits", size=4, gated=True, shape=make_shape(cpu=2_000))
    await rig.cycle()
    async with stand(rig) as at:
        cluster = (await whole(at))["cluster"]
    fragments = cluster["fragmentation"]
    assert (fragments["basis"], fragments["fits"]) == ("waiting", 2)
    assert fragments["resources"]["cpu"] == {"idle": 6_000, "usable": 4_000, "stranded": 2_000}
    assert (cluster["nodes"], cluster["nodes_cordoned"]) == (3, 1)
    assert (cluster["allocatable"]["cpu"], cluster["idle"]["cpu"]) == (9_000, 6_000)


async def test_pods_that_are_not_ours_are_one_entry_of_their_node() -> None:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    for number in range(2):
        pod = make_pod(f"web-{number}", node="n1", scheduler="default-scheduler", shape=ONE)
        rig.store(pod)
    async with stand(rig) as at:
        [node] = (await whole(at))["nodes"]
    assert [(each["job"], each["others"], each["pods"]) for each in node["by"]] == [("", True, 2)]


async def test_an_empty_cluster_has_no_rows_but_queues() -> None:
    async with stand() as at:
        view = await whole(at)
    assert [view[name] for name in ("jobs", "nodes", "domains", "future", "resources")] == [[]] * 5
    assert view["cluster"]["fragmentation"]["basis"] == ""


async def test_a_replica_that_stands_by_says_which_one_leads() -> None:
    activity = Activity(clock, elected=True, namespace="ns", name="lease", identity="here")
    rig = Rig(activity=activity)
    activity.set_lease(Lease("ns", "lease", "there_1", clock(), 1_000_000))
    rig.node("n1")
    rig.planning.leadership.stand_by()
    async with stand(rig) as at:
        view = await whole(at)
        assert view["role"] == "stands by"
        assert "held by there_1" in view["notice"]
        assert view["nodes"] == view["queues"] == []
        async with reading(at) as reader:
            activity.set_lease(Lease("ns", "lease", "here_1", clock(), 1_000_000))
            rig.planning.leadership.begin()
            await rig.cycle()
            await advance(EVERY_S + 0.1)
            assert reader.names() == ["whole", "whole"]
            assert [row["key"] for row in taken_up(reader.events())["nodes"]] == ["n1"]


# --- live -----------------------------------------------------------------------------------------


async def test_what_changes_comes_as_a_delta_within_a_second() -> None:
    rig = Rig()
    rig.node("n1", cpu=4_000)
    await rig.cycle()
    async with stand(rig) as at, reading(at) as reader:
        assert reader.names() == ["whole"]
        rig.gang("g", size=2, shape=ONE)
        await rig.cycle()
        await advance(EVERY_S + 0.1)
        assert reader.names() == ["whole", "delta"]
        _, delta = reader.events()[1]
        assert [row["key"] for row in delta["changed"]["jobs"]] == ["default/g"]
        assert [row["key"] for row in delta["changed"]["nodes"]] == ["n1"]
        rig.unsee("podgroups", rig.cache.groups[rig.key("g")].pod_group)
        rig.delete("g-0", "g-1")
        await rig.cycle()
        await advance(EVERY_S + 0.1)
        _, delta = reader.events()[2]
        assert delta["gone"] == {"jobs": ["default/g"], "future": ["planned default/g"]}


async def test_nothing_but_signs_of_life_comes_while_nothing_changes() -> None:
    rig = Rig()
    rig.node("n1")
    async with stand(rig) as at, reading(at) as reader:
        length = len(reader.text)
        await advance(BEAT_S * 3 + 1)
        assert reader.text[length:] == b": beat\n\n" * 3


async def test_a_view_is_made_once_for_all_readers_of_the_same_rights() -> None:
    rig = Rig()
    rig.node("n1", cpu=64_000)
    await rig.cycle()
    async with stand(rig) as at:
        for _ in range(5):
            await whole(at)
        assert (await whole(at))["generation"] == 1
        readers = [Reader(at) for _ in range(20)]
        for each in readers:
            each.begin()
        await settle()
        for number in range(3):
            rig.gang(f"g{number}", size=1, shape=ONE)
            await rig.cycle()
            await advance(EVERY_S + 0.1)
        assert {each.text for each in readers} == {readers[0].text}
        assert readers[0].names() == ["whole", "delta", "delta", "delta"]
        assert at.views._generation <= 5
        for each in readers:
            await each.end()


async def test_nothing_is_followed_without_readers() -> None:
    rig = Rig()
    rig.node("n1")
    async with stand(rig) as at:
        assert at.views.is_at_rest
        followers = len(rig.planning.cycle.after), len(rig.cache.node_usage.moved)
        async with reading(at):
            await advance(KEPT_S * 3)
            assert not at.views.is_at_rest
        await advance(KEPT_S * 2 + 1)
        assert at.views.is_at_rest
        await whole(at)
        assert not at.views.is_at_rest
        await advance(KEPT_S * 2 + 1)
        assert at.views.is_at_rest
    assert (len(rig.planning.cycle.after), len(rig.cache.node_usage.moved)) == followers


async def test_a_look_that_takes_longer_than_a_view_is_kept_reaches_its_readers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0

    async def slow(steps: Any, **given: Any) -> Any:
        nonlocal looks
        looks += 1
        await asyncio.sleep(2 * KEPT_S)
        return await in_slices(steps, **given)

    monkeypatch.setattr(views_module, "in_slices", slow)
    rig = Rig()
    rig.node("n1", cpu=4_000)
    await rig.cycle()
    async with stand(rig) as at:
        asked = [asyncio.ensure_future(at.get("/view")) for _ in range(2)]
        await advance(6 * KEPT_S)
        assert [(await each).status_code for each in asked] == [200, 200]
        assert looks == 2  # the state, and what these readers see of it
        await advance(KEPT_S * 2 + 1)
        assert at.views.is_at_rest


async def test_a_reader_that_takes_nothing_gets_the_whole_when_it_comes_back() -> None:
    rig = Rig()
    rig.node("n1", cpu=64_000)
    await rig.cycle()
    async with stand(rig) as at, reading(at) as slow, reading(at) as quick:
        slow.takes.clear()
        for number in range(DELTAS + 5):
            rig.gang(f"g{number}", size=1, shape=ONE)
            await rig.cycle()
            await advance(EVERY_S + 0.1)
        assert slow.names() == ["whole"]
        slow.takes.set()
        await advance(EVERY_S + 0.1)
        assert slow.names() == ["whole", "delta", "whole"]
        assert quick.names() == ["whole"] + ["delta"] * (DELTAS + 5)
        assert state_in(taken_up(slow.events())) == state_in(taken_up(quick.events()))


async def test_a_large_view_leaves_in_pieces() -> None:
    rig = Rig()
    rig.node(*(f"n{number}" for number in range(1_000)))
    async with stand(rig) as at, reading(at) as reader:
        assert len(reader.text) > 2 * PIECE
        assert reader.largest <= PIECE
        assert len(taken_up(reader.events())["nodes"]) == 1_000


async def test_a_reader_that_hangs_up_is_let_go() -> None:
    async with stand() as at, reading(at) as reader:
        reader.hang_up()
        await settle()
        assert reader.is_over
        assert not at.views._viewers


async def test_a_stream_ends_when_the_process_stops() -> None:
    async with stand() as at, reading(at) as reader:
        at.views.stopping.set()
        await settle()
        assert reader.names() == ["whole", "stopping"]
        assert reader.is_over


def expecting() -> Rig:
    """A cluster that is full until a gang ends, by the run time that it declares."""
    rig = Rig()
    rig.node("n1", cpu=8_000)
    full = make_shape(cpu=7_500)
    rig.group("runs", minimum=1, annotations={"pumice.sh/run-time": "1h"})
    rig.pod("runs", group="runs", shape=full, node="n1", phase="Running", created=clock())
    rig.gang("waits", size=1, gated=True, shape=full)
    return rig


def counted_forecasts(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the planner is asked for the starts of all jobs, from now on."""
    asked: list[float] = []
    ask = Etas.all

    async def counted(etas: Etas) -> Mapping[GroupKey, EtaAnswer]:
        asked.append(clock())
        return await ask(etas)

    monkeypatch.setattr(Etas, "all", counted)
    return asked


async def test_when_a_job_is_expected_to_start_is_asked_once_for_all_readers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = expecting()
    await rig.cycle()
    asked = counted_forecasts(monkeypatch)
    async with stand(rig) as at:
        readers = [Reader(at) for _ in range(5)]
        for each in readers:
            each.begin()
        await advance(EVERY_S * 2 + 0.2)
        view = taken_up(readers[0].events())
        [waits] = [row for row in view["jobs"] if row["waits"]]
        [future] = [row for row in view["future"] if row["kind"] == "expected"]
        assert waits["key"] == future["job"] == "default/waits"
        assert waits["eta"]["at"] == future["at"]
        assert "default/runs" in waits["eta"]["text"]
        story = (await at.get("/view/jobs/default/waits")).json()
        assert story["job"]["eta"] == waits["eta"]
        await advance(FORECAST_EVERY_S * 3)
        assert len(asked) == 4
        for each in readers:
            await each.end()
        await advance(FORECAST_EVERY_S * 3)
        assert len(asked) <= 6, "no more of them soon after the last reader has gone"
        assert at.views.is_at_rest


async def test_a_start_that_is_later_than_was_looked_has_no_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask = Etas.all

    async def late(etas: Etas) -> Mapping[GroupKey, EtaAnswer]:
        found = await ask(etas)
        times: dict[str, Any] = {"p50": None, "p90": None, "outcome": EtaOutcome.BEYOND}
        return {
            key: replace(each, eta=replace(each.eta, beyond=each.now + 86_400, **times))
            for key, each in found.items()
        }

    monkeypatch.setattr(Etas, "all", late)
    rig = expecting()
    await rig.cycle()
    async with stand(rig) as at, reading(at) as reader:
        await advance(EVERY_S + 0.2)
        view = taken_up(reader.events())
        told = rows(view, "jobs")["default/waits"]["eta"]
        text = "Later than in 24h: so far was looked."
        assert told == {"at": None, "late": None, "text": text}
        assert "expected" not in {row["kind"] for row in view["future"]}


async def test_a_view_goes_on_without_a_forecast_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = expecting()
    await rig.cycle()

    async def fail() -> None:
        raise TooMany("16 questions wait already")

    monkeypatch.setattr(Etas, "all", lambda _self: fail())
    async with stand(rig) as at, reading(at) as reader:
        rig.gang("more", size=1, shape=make_shape(cpu=100))
        await rig.cycle()
        await advance(EVERY_S * 2 + 0.2)
        view = taken_up(reader.events())
        assert rows(view, "jobs")["default/waits"]["eta"] is None
        assert "default/more" in rows(view, "jobs")
