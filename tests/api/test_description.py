"""What ``/openapi.json`` says is what is served: bodies, answers and refusals."""

from typing import Any

import pytest
from fastapi import Response
from pydantic import TypeAdapter, ValidationError

from app.api import scheduler_types
from app.api.application import Route
from app.service.telling.explanations import Story
from tests.api.stand import args, binding, recorded, stand
from tests.builders import make_shape
from tests.service.rig import Rig

VERBS = ("filter", "prioritize", "bind", "preempt")


async def described() -> dict[str, Any]:
    async with stand() as at:
        document: dict[str, Any] = (await at.get("/openapi.json")).json()
        return document


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("filter.request", scheduler_types.ExtenderArgs),
        ("filter.nodes.request", scheduler_types.ExtenderArgs),
        ("filter.nominated.request", scheduler_types.ExtenderArgs),
        ("filter.response", scheduler_types.ExtenderFilterResult),
        ("filter.nodes.response", scheduler_types.ExtenderFilterResult),
        ("prioritize.request", scheduler_types.ExtenderArgs),
        ("prioritize.nodes.request", scheduler_types.ExtenderArgs),
        ("prioritize.response", scheduler_types.HostPriorityList),
        ("bind.request", scheduler_types.ExtenderBindingArgs),
        ("bind.response", scheduler_types.ExtenderBindingResult),
        ("preempt.request", scheduler_types.ExtenderPreemptionArgs),
        ("preempt.nodes.request", scheduler_types.ExtenderPreemptionArgs),
        ("preempt.response", scheduler_types.ExtenderPreemptionResult),
    ],
)
def test_the_described_types_are_those_of_the_stock_scheduler(name: str, model: Any) -> None:
    TypeAdapter(model).validate_json(recorded(name), strict=True)


@pytest.mark.parametrize("verb", VERBS)
async def test_an_empty_body_is_neither_described_nor_served(verb: str) -> None:
    async with stand() as at:
        answer = await at.post(f"/{verb}", b"{}")
        assert answer.status_code == 400
        with pytest.raises(ValidationError):
            TypeAdapter(scheduler_types.BODIES[verb].asked).validate_json(b"{}")


@pytest.mark.parametrize("verb", VERBS)
async def test_a_call_s_body_answer_and_refusals_are_described(verb: str) -> None:
    document = await described()
    call = document["paths"][f"/{verb}"]["post"]
    body = call["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"]
    assert "$ref" not in str(body)
    assert set(call["responses"]) == {"200", "400", "404", "413", "503"}
    assert call["responses"]["200"]["content"]["application/json"]["schema"]
    for status in ("400", "404", "413", "503"):
        assert set(call["responses"][status]["content"]) == {"text/plain"}


async def test_refusals_are_among_those_described() -> None:
    paths = (await described())["paths"]
    async with stand() as at:
        at.waits.append("something")
        for path, asked in {
            "/explain/{namespace}/{name}": await at.get("/explain/default/none"),
            "/plan/{namespace}/{podgroup}": await at.get("/plan/default/none"),
            "/preview/queue/{name}": await at.get("/preview/queue/none"),
            "/readyz": await at.get("/readyz"),
            "/healthz": await at.get("/healthz"),
        }.items():
            assert asked.status_code >= 400
            assert str(asked.status_code) in paths[path]["get"]["responses"], path
        for verb, body in {"filter": args(), "prioritize": args(), "bind": binding()}.items():
            refused = await at.post(f"/{verb}", body)
            assert refused.status_code == 404
            assert "404" in paths[f"/{verb}"]["post"]["responses"]


async def test_nothing_is_described_that_never_comes() -> None:
    for path, operations in (await described())["paths"].items():
        for operation in operations.values():
            assert "422" not in operation["responses"], path


def test_a_route_looks_at_the_types_of_its_answers_once_it_is_described() -> None:
    async def answer() -> Response:
        return Response()

    told: dict[int | str, dict[str, Any]] = {200: {"model": Story}, 404: {"description": "none"}}
    route = Route("/a", answer, responses=told, tags=["explain"])
    assert route.response_fields == {}
    described = route.described()
    assert set(described.response_fields) == {200}
    assert described.responses == told
    assert (described.path, described.endpoint, described.tags) == ("/a", answer, ["explain"])


async def test_a_story_and_the_slots_are_what_is_described() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("g", size=3, gated=True, shape=make_shape(cpu=9000))
    await rig.cycle()
    document = await described()
    async with stand(rig) as at:
        story = await at.get("/explain/default/g")
        TypeAdapter(Story).validate_json(story.content)
        slots = (await at.get("/plan/default/g")).json()
    for path, name in (
        ("/explain/{namespace}/{name}", "Story"),
        ("/plan/{namespace}/{podgroup}", "Slots"),
    ):
        answer = document["paths"][path]["get"]["responses"]["200"]["content"]
        reference = {"$ref": f"#/components/schemas/{name}"}
        assert answer["application/json"]["schema"] == reference
    assert set(slots) == set(document["components"]["schemas"]["Slots"]["properties"])
