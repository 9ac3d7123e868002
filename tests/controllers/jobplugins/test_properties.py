"""What holds for jobs of every shape."""

import json
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from app.jobplugins import catalogue
from app.jobplugins.facts import facts_of
from app.jobplugins.plugin import PodOfJob
from app.jobplugins.svc import host_lists
from app.wire.unstructured import Object
from tests.controllers.jobplugins.jobs import bare_pod, job, one_key, pod_variables, task

ROLES = ("ps", "worker", "chief", "evaluator", "master", "coordinator", "a-b")


@st.composite
def tasks(draw: st.DrawFn, *always: str) -> list[Object]:
    """Tasks by role, some in a subdomain of their own."""
    names = draw(st.lists(st.sampled_from(ROLES), unique=True))
    chosen = [*always, *(name for name in names if name not in always)]
    return [
        task(
            name,
            draw(st.integers(1 if name in always else 0, 4)),
            subdomain=draw(st.sampled_from(["", "net"])),
        )
        for name in draw(st.permutations(chosen))
    ]


def places(of: Object) -> Iterator[PodOfJob]:
    for one in of["spec"]["tasks"]:
        for index in range(one["replicas"]):
            yield PodOfJob(one["name"], index)


@given(tasks("worker"))
def test_tf_config_lists_every_host_once_and_each_pod_finds_itself(given: list[Object]) -> None:
    made = job({"tensorflow": []}, *given)
    if len(given) == 1 and given[0]["replicas"] == 1:
        return
    expected = {
        one["name"]: one["replicas"]
        for one in given
        if one["name"] in {"ps", "worker", "chief", "evaluator"} and one["replicas"]
    }
    for place in places(made):
        config = json.loads(pod_variables(made, place.task, place.index)["TF_CONFIG"])
        assert {role: len(hosts) for role, hosts in config["cluster"].items()} == expected
        hosts = [host for listed in config["cluster"].values() for host in listed]
        assert len(set(hosts)) == len(hosts)
        assert config["task"] == {"type": place.task, "index": place.index}
        if place.task in expected:
            assert config["cluster"][place.task][place.index].startswith(
                f"job-{place.task}-{place.index}."
            )


@given(tasks("master"))
def test_pytorch_ranks_are_the_numbers_below_the_world_size(given: list[Object]) -> None:
    made = job({"pytorch": []}, *given)
    seen = [pod_variables(made, place.task, place.index) for place in places(made)]
    ranks = sorted(int(found["RANK"]) for found in seen if "RANK" in found)
    assert {int(found["WORLD_SIZE"]) for found in seen} == {len(ranks)}
    assert ranks == list(range(len(ranks)))


@given(tasks("worker"))
def test_jax_processes_are_numbered_without_gaps(given: list[Object]) -> None:
    made = job({"jax": []}, *given)
    seen = [pod_variables(made, place.task, place.index) for place in places(made)]
    numbers = sorted(int(found["JAX_PROCESS_ID"]) for found in seen if found)
    assert numbers == list(range(len(numbers)))
    assert {found["JAX_NUM_PROCESSES"] for found in seen if found} == {str(len(numbers))}
    assert len({found["JAX_COORDINATOR_ADDRESS"] for found in seen if found}) == 1


@given(tasks("worker"))
def test_exactly_one_elastic_node_is_the_host(given: list[Object]) -> None:
    made = job({"pytorch": ["--elastic"]}, *given)
    seen = [pod_variables(made, place.task, place.index) for place in places(made)]
    conf = [found["PET_RDZV_CONF"] for found in seen if found]
    assert conf.count("is_host=true") == 1
    hosts = [
        f"job-{place.task}-{place.index}."
        for place, found in zip(places(made), seen, strict=True)
        if found and found["PET_RDZV_CONF"] == "is_host=true"
    ]
    endpoints = {found["PET_RDZV_ENDPOINT"] for found in seen if found}
    assert [endpoint.startswith(hosts[0]) for endpoint in endpoints] == [True]


@given(tasks("worker"))
def test_hccl_ranks_are_distinct(given: list[Object]) -> None:
    made = job({"hcclrank": []}, *given)
    plugins = catalogue.parse(made)
    ranks = []
    for place in places(made):
        annotations = plugins.pod(bare_pod(made, place.task, place.index), place)["metadata"][
            "annotations"
        ]
        if "hccl/rankIndex" in annotations:
            ranks.append(annotations["hccl/rankIndex"])
    assert len(set(ranks)) == len(ranks)


@given(tasks("worker"))
def test_files_and_variables_list_the_same_hosts(given: list[Object]) -> None:
    lists = host_lists(facts_of(job({}, *given)))
    for one in given:
        name = one["name"].replace("-", "_")
        lines = lists[f"{name}.host"].split("\n") if one["replicas"] else []
        variable = lists[f"VC_{name.upper()}_HOSTS"]
        assert (variable.split(",") if variable else []) == lines
        assert lists[f"VC_{name.upper()}_NUM"] == str(len(lines)) == str(one["replicas"])


@given(tasks("worker"), tasks("worker"))
def test_objects_that_were_brought_up_to_date_need_nothing_more(
    before: list[Object], after: list[Object]
) -> None:
    plugins: dict[str, list[str]] = {"svc": [], "ssh": []}
    first = catalogue.parse(job(plugins, *before), make_keys=one_key).objects()
    second = catalogue.parse(job(plugins, *after), make_keys=one_key).objects()
    for old, new in zip(first, second, strict=True):
        created = old.step(None)
        stored = {**getattr(created, "item", {})}
        change = new.step(stored)
        if change is not None:
            stored["data"] = {**stored["data"], **getattr(change, "patch", {})["data"]}
        assert new.step(stored) is None
