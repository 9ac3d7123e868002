"""ETAs over HTTP: of one group, of all, and what a tenant is told of them."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from app.api.eta import GroupEtas
from app.model.ids import NodeName
from app.model.workload import Namespace, PodGroup
from app.service.telling.etas import GroupEta
from tests.api.stand import Stand, stand
from tests.api.test_access import SECRET, asked_by
from tests.builders import make_pod, make_shape
from tests.service.rig import Rig

FULL = make_shape(cpu=8000)


def submit(
    rig: Rig,
    name: str,
    *,
    namespace: str = "default",
    seconds: str = "",
    node: str = "",
    created: float = 0.0,
) -> None:
    """A gang of one pod that needs a whole node; with ``node`` it runs there."""
    said = {"pumice.sh/run-time": seconds} if seconds else {}
    uid = f"uid-{name}"
    group = PodGroup(
        namespace,
        name,
        uid=uid,
        resource_version="1",
        created=created,
        min_member=1,
        annotations=said,
    )
    rig.see("namespaces", Namespace(namespace, {}, {}))
    rig.see("podgroups", group)
    where: dict[str, Any] = {"node": NodeName(node), "phase": "Running"} if node else {}
    annotations = {"scheduling.k8s.io/group-name": name}
    rig.store(make_pod(name, namespace=namespace, annotations=annotations, shape=FULL, **where))


async def asked(at: Stand, path: str) -> dict[str, Any]:
    answer = await at.get(path)
    assert answer.status_code == 200, answer.text
    model: Any = GroupEta if path.count("/") == 3 else GroupEtas
    TypeAdapter(model).validate_json(answer.content)
    found: dict[str, Any] = json.loads(answer.content)
    return found


async def cluster() -> Rig:
    """A node that another tenant's job has, and two jobs of ours that wait."""
    rig = Rig()
    rig.node("n1")
    submit(rig, "secret-train", namespace=SECRET, seconds="20s", node="n1")
    submit(rig, "next", seconds="60s")
    submit(rig, "last", created=1.0)
    await rig.cycle()
    return rig


async def test_a_group_that_waits_is_told_when_where_and_after_which_end() -> None:
    rig = await cluster()
    async with stand(rig) as at:
        found = await asked(at, "/eta/default/last")
        assert found["outcome"] == "later"
        assert found["p50"] == found["p90"] == pytest.approx(found["now"] + 80, abs=1)
        assert found["nodes"] == ["n1"]
        assert found["after"] == ["default/next", f"{SECRET}/secret-train"]
        assert found["ahead"] == 1
        after = f"after the end of default/next, {SECRET}/secret-train"
        assert found["text"] == f"It starts in 80s on n1, {after}."


async def test_a_tenant_is_told_how_many_jobs_of_others_it_waits_for() -> None:
    rig = await cluster()
    async with asked_by("toms", rig) as at:
        found = await asked(at, "/eta/default/last")
        assert (found["after"], found["after_others"]) == (["default/next"], 1)
        assert "after the end of default/next and 1 job of another namespace" in found["text"]
        many = await asked(at, "/eta/default")
        assert [each["group"] for each in many["etas"]] == ["default/next", "default/last"]
        assert SECRET not in json.dumps([found, many])
        assert (await at.get("/eta")).status_code == 403
        assert (await at.get(f"/eta/{SECRET}/secret-train")).status_code == 403


async def test_an_operator_is_told_of_all_groups_that_wait() -> None:
    rig = await cluster()
    submit(rig, "hidden", namespace=SECRET)
    await rig.cycle()
    async with asked_by("olgas", rig) as at:
        many = await asked(at, "/eta")
        assert {each["group"] for each in many["etas"]} == {
            *("default/next", "default/last", f"{SECRET}/hidden")
        }


async def test_a_job_whose_run_time_is_not_known_is_named() -> None:
    rig = Rig()
    rig.node("n1")
    submit(rig, "first", node="n1")
    submit(rig, "next")
    await rig.cycle()
    async with stand(rig) as at:
        found = await asked(at, "/eta/default/next")
        assert (found["outcome"], found["p50"], found["lasting"]) == (
            *("unknown", None),
            ["default/first"],
        )
        assert found["text"].startswith("Unknown: no run time is known of default/first. ")
        runs = await asked(at, "/eta/default/first")
        assert (runs["outcome"], runs["text"]) == ("running", "It runs.")


async def test_a_group_that_no_node_can_take_never_starts() -> None:
    rig = Rig()
    rig.node("n1", cpu=4000)
    submit(rig, "large")
    async with stand(rig) as at:
        before = await asked(at, "/eta/default/large")
        await rig.cycle()
        found = await asked(at, "/eta/default/large")
        assert (before["outcome"], found["outcome"]) == ("never", "never")
        assert found["text"].startswith("Never: ")
        assert found["reason"]["never"] is not None


async def test_a_group_with_its_places_starts_now() -> None:
    rig = Rig()
    rig.node("n1")
    submit(rig, "next")
    await rig.cycle()
    async with stand(rig) as at:
        found = await asked(at, "/eta/default/next")
        assert (found["outcome"], found["text"]) == ("now", "It has its places and starts now.")


async def test_what_is_not_known_is_not_found() -> None:
    async with stand(Rig()) as at:
        answer = await at.get("/eta/default/nothing")
        assert answer.status_code == 404
        assert answer.text == "no PodGroup, job or pod default/nothing is known\n"
