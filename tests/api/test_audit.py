"""``/audit``: what was decided, from the files of the keeper."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response

from app.kit.turns import Turns
from app.main.adapters.audit_keeper import AuditKeeper
from app.model.decision import AuditAnswer, AuditQuestion, Decision, DecisionKind, KeptDecision
from app.model.ids import GroupKey, NodeName, PodUid, QueueName
from app.model.workload import Namespace
from app.service.ports import AuditTrail, TakesTooLong
from tests.api.stand import NoTrail, stand
from tests.api.test_access import SECRET, asked_by
from tests.service.evicting import Contended
from tests.service.rig import Rig, working
from tests.service.virtual_time import START, advance, run


@contextmanager
def keeping(folder: Path) -> Iterator[AuditKeeper]:
    """What keeps decisions in ``folder``."""
    keeper = AuditKeeper(folder, size=2**23, days=1.0, clock=lambda: START)
    keeper.start()
    try:
        yield keeper
    finally:
        keeper.stop()


@contextmanager
def kept(rig: Rig, folder: Path) -> Iterator[AuditTrail]:
    """The decisions of ``rig`` from now on, in ``folder``."""
    with keeping(folder) as keeper:
        rig.cache.decisions.trail.keeper = keeper.keep
        yield keeper.reader()


def ask(trail: AuditTrail, *paths: str) -> list[Response]:
    """What a process without any objects answers: threads read, so time is not virtual here."""

    async def asking() -> list[Response]:
        async with stand(Rig(by=lambda: START), trail=trail) as at:
            return [await at.get(path) for path in paths]

    return asyncio.run(asking())


def test_the_decisions_about_a_gang_are_told_in_their_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        rig.node("n1")
        rig.gang("g", size=2)
        rig.gang("h", size=1)
        await rig.cycle()

    rig = Rig()
    with kept(rig, tmp_path) as trail:
        run(scenario())
        first, second = ask(trail, "/audit?job=default/g", "/audit?limit=1")
    found, [last] = first.json(), second.json()["decisions"]
    told = [(each["kind"], each["pod"], each["node"]) for each in found["decisions"]]
    assert told == [("place", "g-0", "n1"), ("place", "g-1", "n1")]
    assert found["coverage"] == {
        "outlives_process": True,
        "folder": str(tmp_path),
        "since": START,
        "dropped": 0,
        "problems": [],
    }
    assert last["group"] == "default/h"


def test_all_decisions_come_a_line_each(tmp_path: Path) -> None:
    async def scenario(keeper: AuditKeeper) -> None:
        rig = Rig()
        rig.cache.decisions.trail.keeper = keeper.keep
        rig.node("n1", "n2")
        rig.pod("p")
        await rig.cycle()
        for number in range(2100):
            there = NodeName(f"n{number % 2 + 1}")
            rig.cache.reservations.move(PodUid("uid-p"), there, now=rig.clock())

    with keeping(tmp_path) as keeper:
        run(scenario(keeper))
        [answer] = ask(keeper.reader(), "/audit?form=ndjson&kind=place")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert len(lines) > 2000
    numbers = [each["number"] for each in lines]
    assert numbers == sorted(set(numbers))


def test_an_eviction_is_told_after_its_objects_are_gone_and_after_a_restart(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        rig = Contended()
        with kept(rig, tmp_path), working(rig):
            rig.decide(rig.plan(certificate={"version": 1}))
            await advance(1.0)
            rig.delete("low-0", "low-1")
            rig.unsee("podgroups", rig.cache.groups[rig.key("low")].pod_group)
            await advance(1.0)

    run(scenario())
    with kept(Rig(), tmp_path) as trail:
        evicted, other = ask(
            trail, "/audit/evictions/default/low-0", "/audit/evictions/default/high-0"
        )
    found = evicted.json()
    assert [each["cause"] for each in found["decisions"]] == ["decided", "evicted"]
    assert {each["preemptor"] for each in found["decisions"]} == {"default/high"}
    assert {each["rule"] for each in found["decisions"]} == {"priority"}
    assert found["certificate"] == {"version": 1}
    assert other.status_code == 404
    assert "no eviction of pod default/high-0 is kept" in other.text


def test_a_pod_that_is_evicted_again_is_told_of_by_its_last_plan(tmp_path: Path) -> None:
    async def scenario(keeper: AuditKeeper) -> None:
        rig = Contended()
        rig.cache.decisions.trail.keeper = keeper.keep
        with working(rig):
            rig.decide(rig.plan(["low-0"], [("high-0", "n1")], certificate={"version": 1}))
            await advance(1.0)
            begun = rig.begun()
            assert begun is not None
            rig.evictions.give_up(begun, "for the test", now=rig.clock())
            await advance(1.0)
            rig.decide(rig.plan(["low-0"], [("high-0", "n1")], certificate={"version": 2}))
            await advance(0.1)

    with keeping(tmp_path) as keeper:
        run(scenario(keeper))
        [answer] = ask(keeper.reader(), "/audit/evictions/default/low-0")
    found = answer.json()
    assert found["certificate"] == {"version": 2}
    assert len({each["plan"] for each in found["decisions"]}) == 1


def test_without_a_folder_the_answer_says_that_it_goes_with_the_process() -> None:
    keeper = AuditKeeper(None, size=1, days=1.0, clock=lambda: START)
    [answer] = ask(keeper.reader(), "/audit")
    found = answer.json()
    assert found["decisions"] == []
    assert found["coverage"]["outlives_process"] is False


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("job=j", "job: j is not namespace/name"),
        ("pod=/j", "pod: /j is not namespace/name"),
        ("kind=x", "kind: x is none of admit, place, refuse, evict, veto, release"),
        ("since=x", "since: x is no time in seconds since the epoch"),
        ("until=nan", "until: nan is no time in seconds since the epoch"),
        ("limit=0", "limit: 0 is not from 1 to 1000"),
        ("before=-1", "before: -1 is not from 1 to 9007199254740992"),
        ("form=xml", "form: xml is neither json nor ndjson"),
    ],
)
async def test_a_question_that_cannot_be_read_says_why(query: str, line: str) -> None:
    async with stand() as at:
        answer = await at.get(f"/audit?{query}")
        assert (answer.status_code, answer.text) == (400, f"{line}\n")


# --- who asks -------------------------------------------------------------------------------------


class FakeTrail(NoTrail):
    """Tells these decisions, whatever is asked."""

    def __init__(self, *decisions: KeptDecision) -> None:
        self.decisions = decisions

    async def ask(self, question: AuditQuestion) -> AuditAnswer:
        after = question.after or 0
        told = tuple(each for each in self.decisions if each.number > after)
        return AuditAnswer(told, (await super().ask(question)).coverage)

    async def certificate(self, plan: str) -> Any:
        return {"victims": [{"namespace": SECRET, "name": "secret-0"}]}


def evicted(number: int, namespace: str, name: str, *, preemptor: str) -> KeptDecision:
    return KeptDecision(
        number=number,
        at=START,
        kind="evict",
        group=f"{namespace}/{name}-group",
        job=name,
        queue="default",
        pod=name,
        uid=f"uid-{name}",
        node="n1",
        stimulus="eviction",
        cause="decided",
        text="preempt",
        generation=1,
        preemptor=preemptor,
        rule="priority",
        plan="plan@1",
        story=[[START, "eviction", 1, "running", "preempt", "n1", f"for {preemptor}"]],
        refusal=None,
    )


async def test_a_tenant_is_told_the_decisions_of_its_namespace_without_names_of_others() -> None:
    trail = FakeTrail(
        evicted(1, "default", "mine", preemptor=f"{SECRET}/secret-high"),
        evicted(2, SECRET, "secret-low", preemptor="default/high"),
    )
    paths = (
        "/audit?job=default/mine",
        "/audit?pod=default/mine",
        "/audit?job=default/mine&form=ndjson",
        "/audit/evictions/default/mine",
    )
    rig = Rig()
    rig.cache.set_namespace(Namespace(SECRET, {}, {}))
    async with asked_by("toms", rig, trail=trail) as at:
        for path in paths:
            answer = await at.get(path)
            assert answer.status_code == 200, path
            assert "secret" not in answer.text
            assert SECRET not in answer.text
            assert "another namespace" in answer.text
            assert "uid-mine" in answer.text
    async with asked_by("olgas", trail=trail) as at:
        for path in paths:
            assert SECRET in (await at.get(path)).text, "the operator is told who it is"


def test_a_page_of_a_tenant_is_full_though_later_decisions_are_of_others(tmp_path: Path) -> None:
    """Those of the victims of its jobs belong to the job."""

    async def asking(trail: AuditTrail) -> list[Response]:
        async with asked_by("toms", Rig(by=lambda: START), trail=trail) as at:
            pages = ("limit=2", "limit=2&before=2", "form=ndjson")
            return [await at.get(f"/audit?job=default/high&{page}") for page in pages]

    def decided(namespace: str, job: str, **fields: Any) -> Decision:
        return Decision(
            at=START,
            kind=DecisionKind.EVICT,
            group=GroupKey(f"{namespace}/{job}"),
            job=job,
            queue=QueueName("q"),
            stimulus="eviction",
            cause="decided",
            **fields,
        )

    with keeping(tmp_path) as keeper:
        for number in range(3):
            keeper.keep(decided("default", "high"))
            for victim in range(3):
                of_tenant = {"preemptor": "default/high", "pod": f"low-{number}-{victim}"}
                keeper.keep(decided(SECRET, "low", **of_tenant))
        first, second, all_ = asyncio.run(asking(keeper.reader()))
    assert [each["number"] for each in first.json()["decisions"]] == [5, 9]
    assert [each["number"] for each in second.json()["decisions"]] == [1]
    assert [json.loads(line)["number"] for line in all_.text.splitlines()] == [1, 5, 9]


async def test_names_that_are_of_no_namespace_are_told_to_a_tenant() -> None:
    told = "deviceclass/gpu: asked 2, free 1; cpu/memory; gone/pod"
    made = evicted(1, "default", "mine", preemptor="gone/high")._replace(text=told)
    async with asked_by("toms", trail=FakeTrail(made)) as at:
        [found] = (await at.get("/audit?job=default/mine")).json()["decisions"]
    assert found["preemptor"] == "another namespace", "it is gone, and was one"
    assert found["text"] == "deviceclass/gpu: asked 2, free 1; cpu/memory; another namespace"


async def test_only_operators_ask_about_all_and_get_what_was_recorded() -> None:
    async with asked_by("toms") as at:
        for path in (
            "/audit",
            "/audit?queue=default",
            f"/audit?job={SECRET}/x",
            f"/audit?job=default/mine&pod={SECRET}/x",
            f"/audit/evictions/{SECRET}/x",
            "/record",
        ):
            assert (await at.get(path)).status_code == 403, path
    async with asked_by("olgas") as at:
        for path in ("/audit", "/audit?queue=default", f"/audit?job={SECRET}/x", "/record"):
            assert (await at.get(path)).status_code == 200, path


class SlowTrail(NoTrail):
    """Answers when it is told to, a few at a time; counts how many it reads at once."""

    def __init__(self) -> None:
        self.turns = Turns("readers of decisions", at_once=2, most=6)
        self.reading = self.most = 0
        self.end = asyncio.Event()

    async def ask(self, question: AuditQuestion) -> AuditAnswer:
        async with self.turns.turn():
            self.reading += 1
            self.most = max(self.most, self.reading)
            await self.end.wait()
            self.reading -= 1
            return await super().ask(question)


@pytest.mark.parametrize(
    "path", ["/audit", "/audit?form=ndjson", "/audit/evictions/default/p", "/audit?job=default/j"]
)
async def test_more_readers_than_may_wait_are_turned_away(path: str) -> None:
    trail = SlowTrail()
    async with stand(trail=trail) as at:
        asking = [asyncio.ensure_future(at.get(path)) for _ in range(10)]
        first = asyncio.as_completed(asking)
        assert [(await next(first)).status_code for _ in range(4)] == [429] * 4
        trail.end.set()
        codes = [answer.status_code for answer in await asyncio.gather(*asking)]
    assert codes.count(429) == 4
    assert trail.most == 2


async def test_an_answer_that_takes_too_long_to_read_is_said_to() -> None:
    class Endless(NoTrail):
        async def ask(self, question: AuditQuestion) -> AuditAnswer:
            raise TakesTooLong("takes more than 5 s")

    async with stand(trail=Endless()) as at:
        for path in ("/audit", "/audit?form=ndjson"):
            answer = await at.get(path)
            assert (answer.status_code, answer.text) == (503, "takes more than 5 s\n")
