"""What is filled into a new job."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from app.model.ids import FILLED_IN
from app.webhooks.world import Options
from app.wire.unstructured import Object
from tests.webhooks.objects import ask, job, new_queue, patched, pod_spec, task


def filled(given: Object, *, options: Options | None = None) -> Any:
    """The spec as it is stored."""
    verdict = ask("/jobs/mutate", given, options=options)
    assert verdict.allowed
    return patched(copy.deepcopy(given), verdict)["spec"]


def bare(*tasks: Object, **spec: Any) -> Object:
    """A job that names no queue."""
    given = job(*tasks, **spec)
    del given["spec"]["queue"]
    return given


def test_queue_scheduler_and_retries_are_filled_in() -> None:
    spec = filled(bare())
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"]) == ("default", "volcano", 3)


def test_the_first_of_our_scheduler_names_is_the_default() -> None:
    assert filled(bare(), options=Options(schedulers=("b", "a")))["schedulerName"] == "b"


def test_what_is_given_stays() -> None:
    given = job(
        task("a", 3, minAvailable=1, maxRetry=7),
        queue="q",
        schedulerName="s",
        maxRetry=5,
        minAvailable=2,
        plugins={"env": [], "svc": ["--disable-network-policy=true"]},
    )
    assert ask("/jobs/mutate", given).patch == []


def test_tasks_get_names_by_their_place() -> None:
    tasks = filled(job(task(""), task("b"), {"replicas": 1}))["tasks"]
    assert [each["name"] for each in tasks] == ["default0", "b", "default2"]


@pytest.mark.parametrize(
    ("fields", "least"),
    [
        ({}, 4),
        ({"minAvailable": 0}, 0),
        ({"minAvailable": 2}, 2),
        ({"partitionPolicy": {"totalPartitions": 2, "partitionSize": 2}}, 4),
        ({"partitionPolicy": {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}}, 2),
    ],
    ids=["all replicas", "given as none", "given", "all partitions", "the fewest partitions"],
)
def test_the_minimum_of_a_task(fields: Object, least: int) -> None:
    spec = filled(job(task("a", 4, **fields)))
    assert spec["tasks"][0]["minAvailable"] == least
    assert spec["tasks"][0]["maxRetry"] == 3


def test_the_minimum_of_a_job_is_that_of_its_tasks() -> None:
    assert filled(job(task("a", 2), task("b", 5, minAvailable=3)))["minAvailable"] == 5
    assert filled(job(task("a", 2), minAvailable=1))["minAvailable"] == 1


def noted(given: Object) -> Any:
    """What admission notes of the minima that it fills in."""
    made = patched(copy.deepcopy(given), ask("/jobs/mutate", given))
    return made["metadata"].get("annotations", {}).get(FILLED_IN)


SAID: dict[str, Any] = {"minAvailable": 1}


@pytest.mark.parametrize(
    ("given", "note"),
    [
        (job(task("a"), task("b")), "minAvailable,tasks[*]"),
        (job(task("a"), task("b"), **SAID), "tasks[*]"),
        (job(task("a", **SAID), task("b"), task("c"), **SAID), "tasks[1],tasks[2]"),
        (job(task("a", **SAID)), "minAvailable"),
        (job(task("a", **SAID), **SAID), None),
    ],
    ids=["all", "of all tasks", "of some tasks", "of the job", "none"],
)
def test_what_is_filled_in_is_noted(given: Object, note: str | None) -> None:
    assert noted(given) == note


def test_a_note_of_others_holds_no_longer_than_it_is_true() -> None:
    made = patched(
        job(task("a", 2), task("b", 3)), ask("/jobs/mutate", job(task("a", 2), task("b", 3)))
    )
    assert noted(copy.deepcopy(made)) == "minAvailable,tasks[*]"
    made["spec"]["tasks"][0]["minAvailable"] = 1
    assert noted(copy.deepcopy(made)) == "tasks[1]"
    made["spec"]["tasks"][1]["minAvailable"] = 1
    assert noted(made) is None


def test_other_annotations_stay() -> None:
    given = job()
    given["metadata"]["annotations"] = {"a": "b"}
    made = patched(copy.deepcopy(given), ask("/jobs/mutate", given))
    assert made["metadata"]["annotations"]["a"] == "b"


@pytest.mark.parametrize(
    ("plugins", "stored"),
    [
        ({"tensorflow": []}, {"tensorflow": [], "svc": []}),
        ({"pytorch": ["--master=m"]}, {"pytorch": ["--master=m"], "svc": []}),
        ({"mpi": []}, {"mpi": [], "svc": [], "ssh": []}),
        ({"ray": []}, {"ray": [], "svc": []}),
        ({"mpi": [], "ssh": ["--ssh-port=2"]}, {"mpi": [], "svc": [], "ssh": ["--ssh-port=2"]}),
        ({"env": []}, {"env": []}),
        ({"svc": None}, {"svc": []}),
    ],
)
def test_plugins_bring_those_they_need(plugins: Object, stored: Object) -> None:
    assert filled(job(plugins=plugins))["plugins"] == stored


@pytest.mark.parametrize(
    ("pod", "policy"),
    [
        ({"hostNetwork": True}, "ClusterFirstWithHostNet"),
        ({"hostNetwork": True, "dnsPolicy": "Default"}, "Default"),
        ({}, None),
    ],
)
def test_pods_on_the_hosts_network_find_services(pod: Object, policy: str | None) -> None:
    given = job(task("a", template={"spec": pod_spec(**pod)}))
    assert filled(given)["tasks"][0]["template"]["spec"].get("dnsPolicy") == policy


def test_filling_in_twice_changes_nothing() -> None:
    once = {**bare(task("", 2)), "spec": filled(bare(task("", 2), plugins={"mpi": []}))}
    assert ask("/jobs/mutate", once).patch == []


@pytest.mark.parametrize("tasks", ["no list", [1, "a"], None], ids=str)
def test_what_the_schema_will_refuse_is_passed_on(tasks: Any) -> None:
    given = job()
    given["spec"]["tasks"] = tasks
    assert filled(given)["tasks"] == tasks


def test_a_job_without_a_spec_is_passed_on() -> None:
    given = {**job(), "spec": None}
    assert ask("/jobs/mutate", given).patch == []


def test_of_queues_only_creation_is_expected() -> None:
    verdict = ask("/queues/mutate", new_queue(), old=new_queue())
    assert not verdict.allowed
    assert verdict.message == "expect operation to be 'CREATE' "
