"""Warnings about plugins that will not do what is expected."""

import pytest

from app.jobplugins.rules.advice import advice
from app.jobplugins.rules.catalogue import read
from app.jobplugins.rules.job_tasks import JobTasks, TaskRow


def told(given: dict[str, list[str]], *tasks: TaskRow, job: str = "job") -> list[str]:
    job_tasks = JobTasks(job, tasks)
    reading = read(given, tasks=[task.name for task in tasks])
    return [str(warning) for warning in advice(reading.arguments, job_tasks)]


@pytest.mark.parametrize(
    ("plugin", "task"),
    [
        ("env", "a"),
        ("svc", "a"),
        ("ssh", "a"),
        ("tensorflow", "evaluator"),
        ("pytorch", "master"),
        ("jax", "worker"),
        ("hcclrank", "worker"),
    ],
)
def test_a_job_that_fits_its_plugins_gets_no_advice(plugin: str, task: str) -> None:
    assert told({plugin: []}, TaskRow(task, 2)) == []


@pytest.mark.parametrize(
    ("given", "task", "warning"),
    [
        (
            {"tensorflow": []},
            "a",
            "spec.plugins.tensorflow: there is no task chief, evaluator, ps, worker:"
            " TF_CONFIG lists no hosts;"
            " write --ps=TASK or --worker=TASK or --chief=TASK or --evaluator=TASK",
        ),
        (
            {"pytorch": []},
            "worker",
            "spec.plugins.pytorch: there is no task master:"
            " no pod gets MASTER_ADDR or RANK; write --master=TASK",
        ),
        (
            {"pytorch": ["--elastic"]},
            "a",
            "spec.plugins.pytorch: there is no task master, worker:"
            " no pod is told of a rendezvous; write --master=TASK or --worker=TASK",
        ),
        (
            {"mpi": []},
            "master",
            "spec.plugins.mpi: there is no task worker: MPI_HOST is not set; write --worker=TASK",
        ),
        (
            {"jax": []},
            "a",
            "spec.plugins.jax: there is no task coordinator, worker:"
            " no pod is told of a coordinator; write --coordinator=TASK or --worker=TASK",
        ),
        (
            {"hcclrank": []},
            "a",
            "spec.plugins.hcclrank: there is no task master, worker:"
            " no rank is computed; write --master=TASK or --worker=TASK",
        ),
    ],
)
def test_a_role_that_nobody_plays_is_told(
    given: dict[str, list[str]], task: str, warning: str
) -> None:
    assert told(given, TaskRow(task, 2)) == [warning]


def test_a_rendezvous_does_without_a_master() -> None:
    assert told({"pytorch": ["--elastic"]}, TaskRow("worker", 2)) == []


def test_ray_is_told_of_containers_that_do_not_exist() -> None:
    head, worker = (TaskRow(name, 1, containers=("main",)) for name in ("head", "worker"))
    assert told({"ray": ["--workerContainer=main"]}, head, worker) == [
        "spec.plugins.ray: task head has no container head: Ray is not started in it;"
        " write --headContainer=CONTAINER"
    ]


def test_lists_of_hosts_that_do_not_fit_are_told() -> None:
    tasks = (TaskRow("worker", 6000), TaskRow("ps", 2))
    job = "a" * 40
    size = sum(len(f"{job}-worker-{index}.{job},") for index in range(6000))
    total = 2 * (size + 2 * len(f"{job}-ps-0.{job},"))
    config_map = (
        f"spec.plugins.svc: the lists of hosts take {total} bytes, a ConfigMap holds 1048576;"
        " shorten the names of the job and its tasks or split the job"
    )
    variable = (
        f"spec.plugins.svc: the hosts of task worker take {size} bytes, a variable holds 131072:"
        " containers will not start; add --inject-hosts-env=false"
    )
    assert told({"svc": []}, *tasks, job=job) == [config_map, variable]
    assert told({"svc": ["--inject-hosts-env=false"]}, *tasks, job=job) == [config_map]
