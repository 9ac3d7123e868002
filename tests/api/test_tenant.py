"""A tenant that means ill is told no names of others, and leaves room for their questions."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest

from app.api.questions import MOST_OF_TENANT
from app.model.ids import NodeName
from app.model.names import LONGEST_SUBDOMAIN
from app.model.pod import GROUP_ANNOTATION
from app.model.workload import Namespace
from tests.api.stand import stand
from tests.api.test_access import OURS, SECRET, ask, asked_by, paths_of
from tests.api.test_eta import cluster, submit
from tests.builders import make_amounts, make_pod, make_queue, make_shape
from tests.service.rig import Rig
from tests.service.virtual_time import advance
from tests.topology import hard, racks, zone

TWO: Final = make_shape(cpu=2000)
Scene = Callable[[], Awaitable[Rig]]


def theirs(rig: Rig, name: str, *, node: str, cpu: int, group: str = "", **fields: Any) -> None:
    """A pod of the other tenant runs."""
    said = {GROUP_ANNOTATION: group} if group else {}
    at, shape = NodeName(node), make_shape(cpu=cpu)
    running: dict[str, Any] = {"node": at, "phase": "Running", "annotations": said, "shape": shape}
    rig.store(make_pod(name, namespace=SECRET, **running, **fields))


async def expected_starts() -> Rig:
    """Jobs of ours start after the end of theirs, and theirs come before ours."""
    rig = await cluster()
    submit(rig, "secret-ahead", namespace=SECRET, seconds="30s", created=0.5)
    submit(rig, "high", created=2.0)
    return rig


async def groups_of_any_text() -> Rig:
    """Annotations of their pods name groups by texts that no PodGroup can have as its name."""
    rig = Rig()
    rig.see("namespaces", Namespace(SECRET, {}, {}))
    rig.node("n1", "n2", cpu=4000)
    theirs(rig, "secret-0", node="n1", cpu=4000, group="Secret Project 7; held by secret/x")
    theirs(rig, "secret-1", node="n2", cpu=3000, group="SECRET")
    theirs(rig, "secret-2", node="n2", cpu=500, group=".secret " * 10_000)
    rig.queue(make_queue("default", capability=make_amounts(cpu=7500)))
    rig.gang("high", size=2, shape=TWO)
    return rig


async def namespace_of_which_only_pods_were_seen() -> Rig:
    rig = Rig()
    rig.node("n1", cpu=4000)
    theirs(rig, "secret-0", node="n1", cpu=4000)
    rig.queue(make_queue("default", capability=make_amounts(cpu=4000)))
    rig.gang("high", size=2, shape=TWO)
    return rig


async def domains_that_they_fill() -> Rig:
    rig = Rig()
    rig.see("namespaces", Namespace(SECRET, {}, {}))
    rig.node("n0", "n1", "n2", "n3")
    rig.see("hypernodes", *racks(r0="n0 n1", r1="n2 n3"), zone("z", "r0", "r1"))
    theirs(rig, "secret-0", node="n0", cpu=6000)
    theirs(rig, "secret-1", node="n2", cpu=6000)
    rig.group("high", minimum=6, topology=hard(1))
    for number in range(6):
        rig.pod(f"g-{number}", group="high", shape=TWO)
    return rig


SCENES: Final[tuple[Scene, ...]] = (
    expected_starts,
    groups_of_any_text,
    namespace_of_which_only_pods_were_seen,
    domains_that_they_fill,
)


async def told_of(rig: Rig, token: str) -> dict[str, str]:
    """What each path answers to the owner of the token."""
    told: dict[str, str] = {}
    async with asked_by(token, rig) as at:
        described = (await at.get("/openapi.json")).json()
        for method, path in paths_of(described, OURS):
            asked = f"{path}?job=default/high" if path == "/audit" else path
            answer = await ask(at, method, asked)
            assert answer.status_code < 500, (path, answer.text)
            told[path] = answer.text
        await advance(2)  # a forecast of the view has come
        told["/view then"] = (await at.get("/view?namespace=default")).text
    return told


@pytest.mark.parametrize("scene", SCENES)
async def test_other_tenants_are_named_to_operators_only(scene: Scene) -> None:
    rig = await scene()
    for _ in range(3):
        await rig.cycle()
    mine, all_of_it = await told_of(rig, "toms"), await told_of(rig, "olgas")
    assert not [path for path, text in mine.items() if SECRET in text or "secret" in text.lower()]
    for path in ("/explain/default/high", "/view/jobs/default/high"):
        assert SECRET in all_of_it[path], path
        assert "another namespace" in mine[path] or "of other namespaces" in mine[path], path


async def test_the_view_tells_a_tenant_when_its_jobs_start_without_names_of_others() -> None:
    rig = await expected_starts()
    await rig.cycle()
    told: dict[str, list[str]] = {}
    for token in ("toms", "olgas"):
        async with asked_by(token, rig) as at:
            await at.get("/view?namespace=default")
            await advance(2)
            view = json.loads((await at.get("/view?namespace=default")).text)
            texts = [job["eta"]["text"] for job in view["jobs"] if job["eta"]]
            told[token] = texts + [row["text"] for row in view["future"]]
    assert len(told["toms"]) > 2
    assert any("after the end of a job of another namespace" in text for text in told["toms"])
    assert "secret" not in str(told)
    assert told["toms"] == told["olgas"], "an operator that names a namespace is told the same"


async def test_a_text_that_names_a_group_is_told_at_a_bounded_length() -> None:
    rig = await groups_of_any_text()
    await rig.cycle()
    async with stand(rig) as at:
        story = (await at.get("/explain/default/high")).json()
    assert "team-b/Secret%20Project%207%3B%20held%20by%20secret%2Fx (cpu 4)" in story["summary"]
    assert len(story["summary"]) < 3 * LONGEST_SUBDOMAIN


@pytest.mark.parametrize("nested", [b"[", b'{"a":'], ids=["lists", "objects"])
@pytest.mark.parametrize("levels", [900, 990, 100_000])
async def test_a_question_that_is_nested_too_deeply_is_refused(nested: bytes, levels: int) -> None:
    end = b"]" if nested == b"[" else b"1}"
    deep = nested * levels + (b"" if end == b"]" else b"1") + end[-1:] * levels
    spec = b'{"tasks": [], "plugins": ' + deep + b"}"
    job = b'{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}, '
    async with asked_by("toms") as at:
        answer = await at.post("/simulate", b'{"manifests": [' + job + b'"spec": ' + spec + b"}]}")
        assert answer.status_code == 400, answer.text


async def test_questions_of_one_namespace_leave_room_for_those_of_others() -> None:
    rig = await cluster()
    job = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "new"},
        "spec": {"minMember": 1},
    }
    body = json.dumps({"manifests": [job]}).encode()
    async with asked_by("toms", rig) as toms, asked_by("olgas", rig) as olgas:
        async with rig.planning.simulations.turn():
            asking = [asyncio.ensure_future(toms.post("/simulate", body)) for _ in range(8)]
            asking += [asyncio.ensure_future(toms.get("/eta/default/last")) for _ in range(8)]
            others = asyncio.ensure_future(olgas.post("/simulate", body))
            await advance(1)
        answers = [await each for each in asking]
        refused = [each for each in answers if each.status_code == 429]
        assert len(refused) == len(answers) - MOST_OF_TENANT
        assert refused[0].text == (
            f"{MOST_OF_TENANT} questions about namespace default are being answered; "
            "ask again later\n"
        )
        assert (await others).status_code == 200
        assert (await toms.post("/simulate", body)).status_code == 200
