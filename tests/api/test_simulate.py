"""What would happen, asked over HTTP: the planner answers, and nothing is decided."""

import asyncio
import copy
import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
import yaml
from httpx2 import Response
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from app.api.body import MAX_QUESTION
from app.api.simulate import Simulation
from app.model.ids import NodeName
from app.model.workload import Namespace, PriorityClass
from app.service.cycle.eta import etas
from tests.api.stand import Stand, job, stand
from tests.builders import make_amounts, make_queue, make_shape
from tests.scale import examples
from tests.service.rig import Rig
from tests.service.virtual_time import START


def cluster(*, nodes: int = 2, cpu: int = 4000, conf: str = "", **how: Any) -> Rig:
    rig = Rig(**how)
    if conf:
        assert rig.parts.configuration.load(conf)
    rig.queue(make_queue("default"))
    rig.cache.set_namespace(Namespace("default", {}, {}))
    for number in range(nodes):
        rig.node(f"n{number}", cpu=cpu)
    return rig


async def asked(at: Stand, *manifests: Mapping[str, Any], **question: Any) -> dict[str, Any]:
    answer = await at.post("/simulate", {"manifests": list(manifests), **question})
    assert answer.status_code == 200, answer.text
    TypeAdapter(Simulation).validate_json(answer.content)
    found: dict[str, Any] = json.loads(answer.content)
    return found


async def test_a_job_that_fits_runs_and_its_places_are_told() -> None:
    rig = cluster()
    async with stand(rig) as at:
        found = await asked(at, job(replicas=4))
    assert found["outcome"] == "runs"
    [fate] = found["asked"]
    assert sorted(place["node"] for place in fate["places"]) == ["n0", "n0", "n1", "n1"]
    assert {place["pod"] for place in fate["places"]} == {
        f"default/j-w-{number}" for number in range(4)
    }
    assert not rig.cache.groups
    assert not rig.api.writes
    assert rig.has_reservations() == 0


def test_manifests_may_be_a_text_of_yaml() -> None:
    text = yaml.safe_dump({"kind": "List", "items": [job("a"), job("b")]})

    async def asking() -> dict[str, Any]:
        async with stand(cluster(by=lambda: START)) as at:
            return await asked(at, job("c", cpu="1"), yaml=f"{text}\n---\n")

    found = asyncio.run(asking())  # threads read texts, so time is not virtual here
    assert {each["group"].partition("-")[0] for each in found["asked"]} == {
        f"default/{name}" for name in "abc"
    }


BOMB = "a: &a [1,2,3,4,5,6,7,8,9]\n" + "".join(
    f"{one}: &{one} [{', '.join([f'*{two}'] * 9)}]\n" for two, one in pairwise("abcdefgh")
)
LONG, DIGITS = f"a: &a {'x' * 40_000}\n", f"a: &a {'9' * 4000}\n"


@pytest.mark.parametrize(
    ("text", "status", "why"),
    [
        ("a: [", 400, "yaml: not YAML: line 1, column 5"),
        ("kind: List\nitems: 3", 400, "yaml: document 1: items: is no list"),
        ("a: .inf", 400, "yaml: document 1: cannot be said in JSON"),
        ("a: &a [*a]", 400, "yaml: document 1: cannot be said in JSON"),
        (BOMB, 400, "yaml: there are more than 100000 values"),
        (LONG + f"b: [{'*a, ' * 5000}]", 400, "yaml: there are more than 100000 values"),
        (DIGITS + f"b: [{'*a, ' * 5000}]", 400, "yaml: there are more than 100000 values"),
        (f"- &a {'x' * 6000}\n" + "- {*a : 1}\n" * 4800, 400, "yaml: there are more than 100000"),
        ("- " * 5000, 400, "yaml: not YAML: nested too deeply"),
        ("#" * 64_001, 413, "yaml: a text of more than 64000 characters"),
    ],
)
def test_a_text_that_is_not_yaml_of_objects_is_refused(text: str, status: int, why: str) -> None:
    async def asking() -> Response:
        async with stand(cluster(by=lambda: START)) as at:
            return await at.post("/simulate", {"yaml": text})

    answer = asyncio.run(asking())
    assert (answer.status_code, answer.text[: len(why)]) == (status, why)


async def test_a_job_that_is_too_large_for_now_waits_and_says_what_it_lacks() -> None:
    rig = cluster()
    rig.pod("busy", node=NodeName("n0"), phase="Running", shape=make_shape(cpu=3000))
    async with stand(rig) as at:
        found = await asked(at, job(replicas=4))
    assert found["outcome"] == "waits"
    [fate] = found["asked"]
    assert fate["places"] == []
    assert "cpu" in fate["text"]


def running(rig: Rig, name: str, *, seconds: str = "", **pods: int) -> None:
    """A gang with a pod of so many cores on each of these nodes; it says how long it runs."""
    said = {"pumice.sh/run-time": seconds} if seconds else {}
    rig.group(name, minimum=1, annotations=said)
    for node, cores in pods.items():
        shape = make_shape(cpu=1000 * cores)
        rig.pod(f"{name}-{node}", group=name, node=NodeName(node), phase="Running", shape=shape)


async def test_of_a_job_that_would_wait_it_is_told_when_it_would_start() -> None:
    rig = cluster(nodes=1)
    running(rig, "train", seconds="20s", n0=3)
    async with stand(rig) as at:
        found = await asked(at, job())
        assert (await asked(at, job(replicas=1, cpu="1")))["asked"][0]["eta"] is None
    [fate] = found["asked"]
    eta = fate["eta"]
    assert (fate["outcome"], eta["outcome"], eta["job"]) == ("waits", "later", "default/j")
    assert eta["p50"] == pytest.approx(eta["now"] + 20, abs=1)
    assert eta["text"] == "It starts in 20s on n0, after the end of default/train."
    assert not rig.planning.etas.answers.all()


async def test_a_job_that_would_wait_for_an_end_that_is_not_known_is_told_so() -> None:
    rig = cluster(nodes=1)
    running(rig, "train", n0=3)
    async with stand(rig) as at:
        [fate] = (await asked(at, job()))["asked"]
    assert fate["eta"]["outcome"] == "unknown"
    assert fate["eta"]["text"].startswith("Unknown: no run time is known of default/train. ")
    assert fate["eta"]["p50"] is None


async def test_a_job_that_would_never_run_has_no_time_of_its_start() -> None:
    async with stand(cluster()) as at:
        [fate] = (await asked(at, job(replicas=1, cpu="5")))["asked"]
    assert (fate["outcome"], fate["eta"]) == ("never", None)


async def test_groups_that_lose_a_node_wait_for_room_on_those_that_are_left() -> None:
    rig = cluster()
    running(rig, "short", seconds="5s", n0=1, n1=1)
    running(rig, "long", seconds="60s", n1=3)
    running(rig, "moves", n0=3)
    async with stand(rig) as at:
        found = await asked(at, drain=["n0"])
    [fate] = [each for each in found["displaced"] if each["group"] == "default/moves"]
    assert fate["outcome"] == "waits"
    assert fate["eta"]["nodes"] == ["n1"]
    assert fate["eta"]["p50"] == pytest.approx(fate["eta"]["now"] + 60, abs=1)


async def test_the_search_for_the_time_of_a_start_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(etas, "FORETOLD_S", -1.0)
    rig = cluster(nodes=1)
    running(rig, "train", seconds="20s", n0=3)
    async with stand(rig) as at:
        [fate] = (await asked(at, job()))["asked"]
    assert fate["eta"]["outcome"] == "beyond"
    assert "so far was looked" in fate["eta"]["text"]


async def test_a_job_that_no_node_can_hold_never_runs() -> None:
    async with stand(cluster()) as at:
        found = await asked(at, job(replicas=1, cpu="5"))
    assert found["outcome"] == "never"
    assert found["asked"][0]["reason"]["never"]


async def test_another_capability_lets_a_job_run() -> None:
    rig = cluster()
    rig.queue(make_queue("default", capability=make_amounts(cpu=2000)))
    async with stand(rig) as at:
        assert (await asked(at, job()))["outcome"] == "never"
        found = await asked(at, job(), set={"queue/default.capability.cpu": "4"})
        assert found["outcome"] == "runs"


@pytest.mark.parametrize("name", ["team.a", "a.b.c", "batch.capability"])
async def test_the_name_of_a_queue_that_is_changed_may_have_dots(name: str) -> None:
    rig = cluster()
    rig.queue(make_queue(name, capability=make_amounts(cpu=2000)))
    async with stand(rig) as at:
        assert (await asked(at, job(queue=name)))["outcome"] == "never"
        wider = {f"queue/{name}.capability.cpu": "4", f"queue/{name}.weight": "2"}
        assert (await asked(at, job(queue=name), set=wider))["outcome"] == "runs"


async def test_a_group_that_waits_is_told_of_when_a_change_lets_it_run() -> None:
    rig = cluster()
    rig.queue(make_queue("default", capability=make_amounts(cpu=2000)))
    rig.gang("g", size=2, shape=make_shape(cpu=2000))
    async with stand(rig) as at:
        found = await asked(at, set={"queue/default.capability.cpu": "4"})
    [other] = found["others"]
    assert (other["group"], other["before"], other["outcome"]) == ("default/g", "never", "runs")


async def test_pods_of_a_lost_node_go_elsewhere_or_wait() -> None:
    rig = cluster()
    rig.group("g", minimum=1)
    two = make_shape(cpu=2000)
    rig.pod("g-0", group="g", node=NodeName("n0"), phase="Running", shape=two)
    async with stand(rig) as at:
        found = await asked(at, drain=["n0"])
        [fate] = found["displaced"]
        assert (found["outcome"], fate["outcome"]) == ("runs", "runs")
        assert [place["node"] for place in fate["places"]] == ["n1"]
        rig.pod("busy", node=NodeName("n1"), phase="Running", shape=make_shape(cpu=3000))
        assert (await asked(at, drain=["n0"]))["outcome"] == "waits"


PREEMPTING = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: proportion
"""


async def test_another_configuration_would_evict_for_it() -> None:
    rig = cluster(nodes=1)
    rig.group("low", minimum=1)
    for number in range(2):
        rig.pod(
            f"low-{number}",
            group="low",
            node=NodeName("n0"),
            phase="Running",
            shape=make_shape(cpu=2000),
        )
    rig.cache.registry.set_class(PriorityClass("high", 1000))
    wanted = job(replicas=1, priorityClassName="high")
    async with stand(rig) as at:
        assert (await asked(at, wanted))["outcome"] == "waits"
        found = await asked(at, wanted, conf=PREEMPTING)
    [fate] = found["asked"]
    assert (fate["outcome"], fate["action"]) == ("evicts", "preempt")
    assert len(fate["victims"]) == 1
    assert [place["node"] for place in fate["places"]] == ["n0"]


@pytest.mark.parametrize(
    ("question", "status", "text"),
    [
        ({"manifests": "a"}, 400, "the question cannot be read"),
        ({"manifest": []}, 400, "unknown field"),
        ({"manifests": [1]}, 400, "document 1 is no object"),
        ({"manifests": [{"kind": "Job", "apiVersion": "v9"}]}, 400, "Job (v9) is none of"),
        ({"manifests": [{"apiVersion": "v1"}]}, 400, "document 1 has no kind or apiVersion"),
        ({"manifests": [job()], "namespace": "none"}, 404, "there is no namespace none"),
        ({"manifests": [job(queue="none")]}, 400, "admission refuses it"),
        ({"manifests": [job(replicas=99_999)]}, 400, "more than 20000 pods"),
        ({"manifests": [job(cpu="many")]}, 400, "cpu"),
        ({"set": {"queue/none.weight": "1"}}, 404, "no queue none is known"),
        ({"set": {"queue/default.weight": "0"}}, 400, "write queue/NAME.capability.cpu=8"),
        ({"set": {"queue/default.capability.cpu": "-1"}}, 400, "set queue/default.capability.cpu"),
        ({"set": {"queue/default.capability": "1"}}, 400, "write queue/NAME.capability.cpu=8"),
        ({"set": {"weight": "1"}}, 400, "write queue/NAME.capability.cpu=8"),
        ({"drain": ["none"]}, 404, "no node none is known"),
        ({"conf": "tiers: 5"}, 400, "conf:"),
    ],
)
async def test_what_cannot_be_asked_says_what_to_write(
    question: dict[str, Any], status: int, text: str
) -> None:
    async with stand(cluster()) as at:
        answer = await at.post("/simulate", question)
        assert (answer.status_code, text in answer.text) == (status, True), answer.text


async def test_a_node_that_goes_while_a_question_waits_is_not_known() -> None:
    rig = cluster()
    async with stand(rig) as at:
        async with rig.planning.simulations.turn():
            waiting = asyncio.ensure_future(at.post("/simulate", {"drain": ["n0"]}))
            for _ in range(50):
                await asyncio.sleep(0)
            rig.cache.drop_node(NodeName("n0"))
        answer = await waiting
    assert (answer.status_code, answer.text) == (404, "drain: no node n0 is known\n")


DEPLOYMENT: Mapping[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 2,
        "template": {
            "metadata": {"labels": {"app": "d"}, "annotations": {"a": "b"}},
            "spec": {
                "schedulerName": "volcano",
                "priorityClassName": "",
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
            },
        },
    },
}
POD: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    **DEPLOYMENT["spec"]["template"],
    "metadata": {"name": "p", "labels": {"app": "p"}, "annotations": {"a": "b"}},
}
POD_GROUP: Mapping[str, Any] = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "pg", "annotations": {"a": "b"}},
    "spec": {"minMember": 2, "queue": "default", "minResources": {"cpu": "2"}},
}
WORKLOADS = {
    "Job": job(queue="default", priorityClassName="", plugins={"svc": []}),
    "Deployment": DEPLOYMENT,
    "KubernetesJob": {
        **DEPLOYMENT,
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {"parallelism": 2, "template": DEPLOYMENT["spec"]["template"]},
    },
    "Pod": POD,
    "PodGroup": POD_GROUP,
}
Steps = tuple[str | int, ...]


def with_value(item: Any, path: Steps, value: Any) -> dict[str, Any]:
    """A copy of ``item`` with ``value`` at ``path``."""
    made: dict[str, Any] = copy.deepcopy(dict(item))
    at: Any = made
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return made


def paths(item: Any, at: Steps = ()) -> list[Steps]:
    """Where something stands in ``item``."""
    inside = item.items() if isinstance(item, dict) else enumerate(item)
    return [
        path
        for key, each in inside
        for path in [
            (*at, key),
            *(paths(each, (*at, key)) if isinstance(each, dict | list) else []),
        ]
    ]


@pytest.mark.parametrize(
    ("kind", "path", "value", "field"),
    [
        ("Deployment", "spec.template.metadata", "x", "spec.template.metadata"),
        ("Deployment", "spec.template.spec", "x", "spec.template.spec"),
        ("Deployment", "spec.template", [], "spec.template"),
        ("Deployment", "spec.replicas", "x", "spec.replicas"),
        ("Deployment", "spec.replicas", True, "spec.replicas"),
        ("KubernetesJob", "spec.parallelism", 1.5, "spec.parallelism"),
        ("Deployment", "metadata.annotations", [1], "metadata.annotations"),
        ("Pod", "spec.priorityClassName", [1], "spec.priorityClassName"),
        ("Pod", "metadata.annotations", [1], "metadata.annotations"),
        ("Pod", "metadata.labels", {"a": 1}, "metadata.labels[a]"),
        ("Job", "spec.tasks.0.replicas", "x", "spec.tasks[0].replicas"),
        ("Job", "spec.tasks.0.template.spec", "x", "spec.tasks[0].template.spec"),
        ("Job", "spec.minAvailable", "x", "spec.minAvailable"),
        ("PodGroup", "spec.minMember", "x", "spec.minMember"),
        ("PodGroup", "spec.minMember", 2**70, "spec.minMember"),
    ],
)
async def test_a_field_of_another_type_is_told_with_its_object(
    kind: str, path: str, value: Any, field: str
) -> None:
    steps = tuple(int(step) if step.isdigit() else step for step in path.split("."))
    wrong = with_value(WORKLOADS[kind], steps, value)
    async with stand(cluster()) as at:
        answer = await at.post("/simulate", {"manifests": [wrong]})
    assert answer.status_code == 400, answer.text
    assert answer.text.startswith("document 1: "), answer.text
    assert field in answer.text


VALUES = ["x", "", 0, -1, 2**70, 1.5, True, None, [], [1], [{}], ["a"], {}, {"a": 1}, {"a": "b"}]


@examples(40)
@given(st.data())
async def test_no_manifest_is_answered_with_an_error_of_the_server(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(WORKLOADS)))
    wrong = WORKLOADS[kind]
    for _ in range(data.draw(st.integers(1, 2))):
        where = data.draw(st.sampled_from([p for p in paths(wrong) if p != ("kind",)]))
        wrong = with_value(wrong, where, data.draw(st.sampled_from(VALUES)))

    async with stand(cluster()) as at:
        answer = await at.post("/simulate", {"manifests": [wrong]})
        assert answer.status_code < 500, answer.text


async def fits(at: Stand, query: str) -> dict[str, Any]:
    answer = await at.get(f"/fits?{query}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = json.loads(answer.content)
    return found


async def test_the_largest_gang_that_starts_now_is_found() -> None:
    rig = cluster(cpu=5000)
    rig.pod("busy", node=NodeName("n0"), phase="Running", shape=make_shape(cpu=2000))
    async with stand(rig) as at:
        found = await fits(at, "request=cpu%3D2")
        assert (found["members"], found["nodes"]) == (3, {"n0": 1, "n1": 2})
        assert "cpu" in found["text"]
        rig.queue(make_queue("default", capability=make_amounts(cpu=6000)))
        assert (await fits(at, "request=cpu%3D2"))["members"] == 2
        assert (await fits(at, "request=cpu%3D6"))["members"] == 0
    assert not rig.cache.groups.keys() - {rig.member("busy").group}


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("request=cpu", 400, "write request=cpu=4,memory=8Gi"),
        ("request=cpu%3D0", 400, "write request=cpu=4,memory=8Gi"),
        ("request=cpu%3D1,cpu%3D2", 400, "request: cpu is there twice; write request=cpu=4"),
        ("request=cpu%3D1&request=cpu%3D2", 400, "request is asked twice"),
        ("request=cpu%3D1&queue=none", 404, "no queue none is known"),
        ("request=cpu%3D1&namespace=none", 404, "there is no namespace none"),
        ("request=example.com/a%3D1", 404, "no node has example.com/a"),
    ],
)
async def test_what_cannot_be_fitted_says_why(query: str, status: int, text: str) -> None:
    async with stand(cluster()) as at:
        answer = await at.get(f"/fits?{query}")
        assert (answer.status_code, text in answer.text) == (status, True), answer.text


async def test_a_question_is_no_larger_than_an_object_of_the_api_server() -> None:
    async with stand() as at:
        answer = await at.post("/simulate", {"manifests": ["x" * MAX_QUESTION]})
    assert answer.status_code == 413
    assert answer.text.endswith(f"is over the limit of {MAX_QUESTION}\n")


def test_a_text_that_takes_long_to_read_keeps_no_call_waiting() -> None:
    async def asking() -> int:
        turns, done = 0, asyncio.Event()

        async def others() -> None:
            nonlocal turns
            while not done.is_set():
                turns += 1
                await asyncio.sleep(0.001)

        async with stand(Rig(by=lambda: START)) as at:
            beside = asyncio.ensure_future(others())
            text = "a: {" + ", ".join(f"k{number}: 1" for number in range(1500)) + "}"
            answer = await at.post("/simulate", {"yaml": text})
            done.set()
            await beside
        assert answer.status_code == 400
        return turns

    assert asyncio.run(asking()) >= 5


async def test_a_name_of_any_length_is_quoted_in_part() -> None:
    async with stand() as at:
        answer = await at.get(f"/fits?request=cpu%3D1&queue={'q' * 50_000}")
    assert answer.status_code == 404
    assert answer.text.startswith("no queue qqq")
    assert answer.text.endswith("qqq is known\n")
    assert len(answer.text) < 1_000
