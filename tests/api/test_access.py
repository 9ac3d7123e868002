"""Beyond loopback readers show a token; a tenant is told nothing of other namespaces."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
import pytest
from httpx2 import Response

from app.api.access import ASKED_AT_ONCE, KEPT, KNOWN_S, UNKNOWN_S, Access, Account, Right
from app.core.texts import describe
from app.model.decision import AuditAnswer, AuditQuestion, Decision, KeptDecision
from app.model.eviction import EvictionAction, EvictionPlan, VictimPod
from app.model.ids import NodeName, QueueName, group_key
from app.model.pod import GATE, GROUP_ANNOTATION, Pod
from app.model.workload import GroupPhase, Namespace, PodGroup
from app.service.ports import AuditTrail, Reaction, WriteError
from tests.api.stand import NoTrail, Stand, stand
from tests.builders import make_pod
from tests.service.evicting import TWO, Contended
from tests.service.rig import Rig
from tests.service.virtual_time import advance, clock

AWAY: Final = "10.0.0.9"
"""The address of a reader in another pod."""
SECRET: Final = "team-b"
"""A namespace that the tenant of ``default`` may not know."""
PUBLIC: Final = (
    "/livez",
    "/readyz",
    "/healthz",
    "/metrics",
    "/plan/default/g",
    "/openapi.json",
    "/ui",
    "/ui/index.html",
)

OPERATOR: Final = Account("olga", groups=("operators",))
TENANT: Final = Account("tom", uid="1", extra=(("scopes", ("a", "b")),))
STRANGER: Final = Account("eve")


@dataclass(eq=False)
class FakeReviews:
    """What the API server knows of three accounts; it counts what it is asked."""

    owners: dict[str, Account] = field(
        default_factory=lambda: {"olgas": OPERATOR, "toms": TENANT, "eves": STRANGER}
    )
    rights: set[tuple[str, Right]] = field(
        default_factory=lambda: {
            ("olga", Right("debug", "")),
            ("tom", Right("decisions", "default")),
            ("tom", Right("decisions", "default", "create")),
        }
    )
    tokens: list[str] = field(default_factory=list)
    asked: list[tuple[Account, Right]] = field(default_factory=list)
    takes_s: float = 0.0
    fails: bool = False

    async def owner_of(self, token: str) -> Account | None:
        self.tokens.append(token)
        await asyncio.sleep(self.takes_s)
        if self.fails:
            raise WriteError(Reaction.RETRY, "the API server is away")
        return self.owners.get(token)

    async def may(self, account: Account, right: Right) -> bool:
        self.asked.append((account, right))
        return (account.name, right) in self.rights


@asynccontextmanager
async def asked_by(
    token: str,
    rig: Rig | None = None,
    *,
    reviews: FakeReviews | None = None,
    address: str = AWAY,
    reading: bool = False,
    trail: AuditTrail | None = None,
) -> AsyncIterator[Stand]:
    access = Access(reviews or FakeReviews(), clock=clock)
    async with stand(
        rig, access=access, client=address, token=token, reading=reading, trail=trail
    ) as at:
        yield at


def paths_of(described: Mapping[str, Any], rig_names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Each method and path of the description, with names in the place of its parameters."""
    return [
        (method, path.format_map(rig_names))
        for path, methods in described["paths"].items()
        for method in methods
        if path not in {"/filter", "/prioritize", "/bind", "/preempt"}
    ]


async def ask(at: Stand, method: str, path: str) -> Response:
    if path == "/fits":
        path = "/fits?request=cpu=1"
    if path in ("/view", "/view/stream"):
        is_tenant = at.client.headers.get("authorization") == "Bearer toms"
        path += "?namespace=default" if is_tenant else ""
        at.views.stopping.set()  # the stream ends after its first event
    if method == "post":
        return await at.post(path, json.dumps({"manifests": []}).encode())
    return await at.get(path)


# --- who asks -------------------------------------------------------------------------------------


async def test_readers_on_the_machine_itself_show_no_token() -> None:
    for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        async with asked_by("", address=address) as at:
            assert (await at.get("/debug/plan")).status_code == 200


async def test_a_site_whose_name_means_this_machine_is_not_nearby() -> None:
    async with asked_by("", address="127.0.0.1") as at:
        for host in ("evil.example", "evil.example:8890", "localhost.evil.example"):
            answer = await at.client.get("/debug/plan", headers={"host": host})
            assert answer.status_code == 401, host
        for host in ("localhost:8890", "127.0.0.1:8890", "[::1]:8890", "10.0.0.1", "a.localhost"):
            answer = await at.client.get("/debug/plan", headers={"host": host})
            assert answer.status_code == 200, host


@pytest.mark.parametrize("reading", [True, False], ids=["second port", "first port"])
async def test_all_but_slots_metrics_and_health_want_a_token_from_elsewhere(reading: bool) -> None:
    rig = Rig()
    rig.group("g", minimum=1)
    names = {"namespace": "default", "name": "g", "podgroup": "g", "file": "index.html"}
    async with asked_by("", rig, reading=reading) as at:
        described = (await at.get("/openapi.json")).json()
        for method, path in paths_of(described, names):
            answer = await ask(at, method, path)
            if path in PUBLIC:
                assert answer.status_code in {200, 404}, path
                continue
            assert answer.status_code == 401, path
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.text == "show a token: Authorization: Bearer …\n"


@pytest.mark.parametrize("shown", ["Basic abc", "Bearer", "Bearer  ", "abc"])
async def test_what_is_no_bearer_token_is_none(shown: str) -> None:
    async with asked_by("") as at:
        answer = await at.client.get("/debug/plan", headers={"authorization": shown})
        assert answer.status_code == 401


async def test_a_token_that_the_api_server_does_not_know_is_refused() -> None:
    async with asked_by("forged") as at:
        answer = await at.get("/debug/plan")
        assert (answer.status_code, answer.text) == (401, "the token is not valid\n")


async def test_an_operator_is_told_everything() -> None:
    async with asked_by("olgas") as at:
        for path in ("/debug/snapshot", "/debug/queues", "/debug/ledger", "/debug/certificates"):
            assert (await at.get(path)).status_code == 200, path


async def test_a_tenant_is_told_of_its_own_namespace_only() -> None:
    rig = Rig()
    rig.group("g", minimum=1)
    async with asked_by("toms", rig) as at:
        assert (await at.get("/explain/default/g")).status_code == 200
        refused = await at.get(f"/explain/{SECRET}/g")
        assert refused.status_code == 403
        assert refused.text == f"tom may not get decisions.pumice.sh in namespace {SECRET}\n"
        refused = await at.get("/debug/queues")
        assert refused.status_code == 403
        assert refused.text == "tom may not get debug.pumice.sh in all namespaces\n"


async def test_without_reviews_all_are_told_everything() -> None:
    access = Access(None, clock=clock)
    async with stand(access=access, client=AWAY) as at:
        assert (await at.get("/debug/queues")).status_code == 200


async def test_an_api_server_that_does_not_answer_is_named() -> None:
    async with asked_by("olgas", reviews=FakeReviews(fails=True)) as at:
        answer = await at.get("/debug/queues")
        assert answer.status_code == 503
        assert answer.text == "the token cannot be looked at now: the API server is away\n"


# --- what is kept ---------------------------------------------------------------------------------


async def test_a_token_and_its_rights_are_asked_about_once_a_minute() -> None:
    reviews = FakeReviews()
    async with asked_by("toms", reviews=reviews) as at:
        for _ in range(5):
            await at.get("/explain/default/g")
        assert reviews.tokens == ["toms"]
        assert reviews.asked == [
            (TENANT, Right("debug", "")),
            (TENANT, Right("decisions", "default")),
        ]
        await advance(KNOWN_S + 1)
        await at.get("/explain/default/g")
        assert reviews.tokens == ["toms"] * 2


async def test_a_refusal_is_believed_for_a_shorter_time() -> None:
    reviews = FakeReviews()
    async with asked_by("eves", reviews=reviews) as at:
        assert (await at.get("/debug/plan")).status_code == 403
        reviews.rights.add(("eve", Right("debug", "")))
        assert (await at.get("/debug/plan")).status_code == 403
        await advance(UNKNOWN_S + 1)
        assert (await at.get("/debug/plan")).status_code == 200


async def test_a_failure_is_not_kept() -> None:
    reviews = FakeReviews(fails=True)
    async with asked_by("olgas", reviews=reviews) as at:
        assert (await at.get("/debug/plan")).status_code == 503
        reviews.fails = False
        assert (await at.get("/debug/plan")).status_code == 200


async def test_equal_questions_at_a_time_are_asked_once() -> None:
    reviews = FakeReviews(takes_s=1.0)
    async with asked_by("olgas", reviews=reviews) as at:
        asking = [asyncio.ensure_future(at.get("/debug/plan")) for _ in range(20)]
        await advance(2)
        assert {(await each).status_code for each in asking} == {200}
        assert reviews.tokens == ["olgas"]


async def test_many_unknown_tokens_at_a_time_are_turned_away() -> None:
    reviews = FakeReviews(takes_s=1.0)
    async with asked_by("", reviews=reviews) as at:
        asking = [
            asyncio.ensure_future(
                at.client.get("/debug/plan", headers={"authorization": f"Bearer t{number}"})
            )
            for number in range(ASKED_AT_ONCE + 5)
        ]
        await advance(2)
        answers = [(await each).status_code for each in asking]
        assert (answers.count(401), answers.count(429)) == (ASKED_AT_ONCE, 5)
        assert len(reviews.tokens) == ASKED_AT_ONCE


async def test_so_many_answers_are_kept_and_no_more() -> None:
    reviews = FakeReviews()
    async with asked_by("", reviews=reviews) as at:
        for number in range(KEPT + 1):
            await at.client.get("/debug/plan", headers={"authorization": f"Bearer t{number}"})
        for number in (KEPT, 0):
            await at.client.get("/debug/plan", headers={"authorization": f"Bearer t{number}"})
        assert len(reviews.tokens) == KEPT + 2, "the oldest one was asked about again"


async def test_guessed_tokens_keep_no_valid_one_from_being_believed_or_renewed() -> None:
    reviews = FakeReviews()
    async with asked_by("", reviews=reviews) as at:

        async def show(token: str) -> int:
            answer = await at.client.get(
                "/debug/plan", headers={"authorization": f"Bearer {token}"}
            )
            return answer.status_code

        assert await show("olgas") == 200
        for number in range(KEPT + 1):
            await show(f"t{number}")
        asked_before = len(reviews.tokens)
        assert await show("olgas") == 200
        assert len(reviews.tokens) == asked_before
        await advance(KNOWN_S + 1)
        reviews.takes_s = 1.0
        guessing = [asyncio.ensure_future(show(f"g{number}")) for number in range(ASKED_AT_ONCE)]
        await advance(0.1)
        assert await show("another guess") == 429
        renewed = asyncio.ensure_future(show("olgas"))
        await advance(2)
        assert await renewed == 200
        assert {await each for each in guessing} == {401}


async def test_a_ledger_is_compared_once_for_all_who_ask_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig, lists = Rig(), 0

    async def list_pods() -> list[Pod]:
        nonlocal lists
        lists += 1
        await asyncio.sleep(1)
        return []

    monkeypatch.setattr(rig.api, "list_pods", list_pods)
    async with stand(rig) as at:
        asking = [asyncio.ensure_future(at.get("/debug/ledger")) for _ in range(10)]
        await advance(3)
        assert {(await each).status_code for each in asking} == {200}
        assert lists == 1
        await asyncio.gather(at.get("/debug/ledger"), advance(3))
        assert lists == 2


# --- what a tenant is told ------------------------------------------------------------------------


class KeptInMind:
    """The decisions of a rig from now on, as the files of the keeper would tell them."""

    def __init__(self, rig: Rig) -> None:
        self.decisions: list[Decision] = []
        rig.cache.decisions.trail.keeper = self.decisions.append

    async def ask(self, question: AuditQuestion) -> AuditAnswer:
        told = [kept(number, each) for number, each in enumerate(self.decisions, 1)]
        found = [
            each
            for each in told
            if each.number > (question.after or 0)
            and question.kind in {"", each.kind}
            and question.job in {"", each.group, each.preemptor}
            and question.pod in {"", f"{each.group.partition('/')[0]}/{each.pod}"}
        ]
        return AuditAnswer(tuple(found), (await NoTrail().ask(question)).coverage)

    async def certificate(self, plan: str) -> Any:
        return next(each.certificate for each in self.decisions if each.plan == plan)


def kept(number: int, decision: Decision) -> KeptDecision:
    """The decision as it is kept."""
    plain = msgspec.to_builtins(decision._asdict(), enc_hook=str)
    if decision.refusal is not None:
        plain["text"] = describe(decision.refusal)
    del plain["certificate"]
    return KeptDecision(number=number, **plain)


def crowded() -> tuple[Contended, KeptInMind]:
    """A gang of ours waits for room of another tenant, whose gang takes a pod of ours meanwhile."""
    rig = Contended()
    trail = KeptInMind(rig)
    rig.see("namespaces", Namespace(SECRET, {}, {}))
    rig.node("n3", "n4", cpu=4000)
    for number in range(4):
        node = NodeName(f"n{number // 2 + 3}")
        name = f"secret-project-{number}"
        rig.store(make_pod(name, namespace=SECRET, node=node, phase="Running", shape=TWO))
    rig.gang("big", size=3, shape=TWO)
    gone = [rig.api.pods[f"{SECRET}/secret-project-{number}"] for number in range(2)]
    queue = QueueName("default")
    victims = tuple(
        VictimPod(pod.uid, SECRET, pod.name, pod.node, pod.group, queue, "priority") for pod in gone
    )
    certificate = {"victims": [{"namespace": SECRET, "name": pod.name} for pod in gone]}
    ours = rig.plan((), [("high-0", "n3"), ("high-1", "n3")], certificate=certificate)
    rig.decide(replace(ours, victims=victims), theirs(rig, certificate=certificate))
    return rig, trail


def theirs(rig: Contended, *, certificate: Mapping[str, object]) -> EvictionPlan:
    """A gang of the other tenant waits for the room of a pod of ours."""
    name = "secret-train"
    group = PodGroup(
        SECRET,
        name,
        uid=f"uid-{name}",
        resource_version="1",
        created=0.0,
        phase=GroupPhase.INQUEUE,
        min_member=1,
    )
    rig.see("podgroups", group)
    waits = make_pod(
        f"{name}-worker-0",
        namespace=SECRET,
        annotations={GROUP_ANNOTATION: name},
        gates=(GATE,),
        shape=TWO,
    )
    rig.store(waits)
    return EvictionPlan(
        EvictionAction.PREEMPT,
        group_key(SECRET, name),
        (rig.victim("low-0"),),
        (rig.pipelined(waits.name, "n1"),),
        certificate=certificate,
    )


POD: Final = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
ABOUT_BOTH: Final = (
    "/explain/default/high",
    "/explain/default/low",
    "/audit?job=default/low",
    "/audit/evictions/default/low-0",
    "/view/jobs/default/high",
    "/view/jobs/default/low",
)
"""Paths below which both tenants have a part in what is told."""
OURS: Final = {
    "namespace": "default",
    "name": "high",
    "podgroup": "high",
    "file": "index.html",
}


async def test_a_tenant_s_token_gets_no_name_of_another_namespace_from_any_path() -> None:
    rig, trail = crowded()
    await rig.cycle()
    told: dict[str, dict[str, str]] = {}
    for token in ("toms", "olgas"):
        async with asked_by(token, rig, trail=trail) as at:
            described = (await at.get("/openapi.json")).json()
            for name in ("high", "big", "low", "low-0"):
                for method, path in paths_of(described, OURS | {"name": name, "podgroup": name}):
                    if path == "/audit":
                        path += f"?job=default/{name}"
                    answer = await ask(at, method, path)
                    told.setdefault(token, {})[path] = answer.text
                    assert answer.status_code < 500, (path, answer.text)
    mine, all_of_it = told["toms"], told["olgas"]
    for path in ABOUT_BOTH:
        assert "another namespace" in mine[path], path
        assert SECRET in all_of_it[path], "the operator is told who it is"
    assert not [path for path, text in mine.items() if SECRET in text or "secret" in text]


async def test_a_tenant_is_told_intent_places_and_what_went_wrong_of_its_own_plan_only() -> None:
    rig, _ = crowded()
    for begun in rig.evictions.under_way():
        begun.why = f"{begun.name} cannot be stored"
    told: dict[str, Any] = {}
    for token in ("toms", "olgas"):
        async with asked_by(token, rig) as at:
            for name in ("high", "low"):
                answer = await at.get(f"/explain/default/{name}")
                [plan] = answer.json()["evictions"]
                told[f"{token} {name}"] = plan["intent"], plan["places"], plan["why"]
    names = "pumice-eviction-uid-high", "pumice-eviction-uid-secret-train"
    why, why_theirs = (f"{name} cannot be stored" for name in names)
    ours = names[0], [["high-0", "n3"], ["high-1", "n3"]], why
    assert told == {
        "toms high": ours,
        "olgas high": ours,
        "toms low": ("", [], ""),
        "olgas low": (names[1], [["secret-train-worker-0", "n1"]], why_theirs),
    }


async def test_a_tenant_tries_out_objects_of_its_namespace_only() -> None:
    rig, _ = crowded()
    await rig.cycle()
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "new"},
        "spec": {
            "minAvailable": 1,
            "tasks": [{"replicas": 1, "template": {"spec": POD}}],
        },
    }
    theirs = {**job, "metadata": {"name": "new", "namespace": SECRET}}
    async with asked_by("toms", rig) as at:

        async def simulated(**question: Any) -> Response:
            return await at.post("/simulate", json.dumps(question).encode())

        assert (await simulated(manifests=[job])).status_code == 200
        assert (await simulated(manifests=[theirs])).status_code == 403
        assert (await simulated(manifests=[job], namespace=SECRET)).status_code == 403
        for change in ({"set": {"queue/default.weight": "2"}}, {"drain": ["n1"]}, {"conf": "a"}):
            refused = await simulated(manifests=[job], **change)
            assert refused.status_code == 403
            assert "for operators" in refused.text


async def test_the_right_to_read_is_not_the_right_to_try_out() -> None:
    reviews = FakeReviews()
    reviews.rights.remove(("tom", Right("decisions", "default", "create")))
    async with asked_by("toms", reviews=reviews) as at:
        answer = await at.post("/simulate", b'{"manifests": []}')
        assert answer.status_code == 403
        assert "may not create decisions.pumice.sh" in answer.text
