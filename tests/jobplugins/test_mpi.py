"""mpi."""

import pytest

from app.wire.unstructured import Object
from tests.controllers.jobplugins.jobs import (
    Plugins,
    container,
    job,
    pod,
    pod_variables,
    task,
    variables,
    wanted,
)

MPI: Plugins = {"mpi": []}
PORT_22 = [{"name": "mpijob-port", "containerPort": 22}]


@pytest.mark.parametrize(
    ("flags", "tasks", "place", "found"),
    [
        (
            [],
            [task("master"), task("worker", 2)],
            ("master", 0),
            {"MPI_HOST": "job-worker-0.job,job-worker-1.job"},
        ),
        ([], [task("master"), task("worker", 2)], ("worker", 0), {}),
        ([], [task("master"), task("worker", 0)], ("master", 0), {"MPI_HOST": ""}),
        ([], [task("master")], ("master", 0), {}),
        (
            [],
            [task("master"), task("worker", 3, hostname="h", subdomain="net")],
            ("master", 0),
            {"MPI_HOST": "h.net"},
        ),
        (
            ["--master=mpimaster", "--worker=mpiworker"],
            [task("mpimaster"), task("mpiworker", 1)],
            ("mpimaster", 0),
            {"MPI_HOST": "job-mpiworker-0.job"},
        ),
    ],
)
def test_the_master_knows_the_workers(
    flags: list[str], tasks: list[Object], place: tuple[str, int], found: dict[str, str]
) -> None:
    assert pod_variables(job({"mpi": flags}, *tasks), *place) == found


def test_init_containers_are_told_too() -> None:
    given = task("master", containers=[container("a")], initContainers=[container("b")])
    spec = pod(job(MPI, given, task("worker", 1)), "master")["spec"]
    for one in (*spec["containers"], *spec["initContainers"]):
        assert variables(one)["MPI_HOST"] == "job-worker-0.job"
        assert one["ports"] == PORT_22


@pytest.mark.parametrize("name", ["master", "worker", "other"])
def test_every_pod_declares_the_port(name: str) -> None:
    given = job(MPI, task("master"), task("worker"), task("other"))
    assert pod(given, name)["spec"]["containers"][0]["ports"] == PORT_22


def test_another_port_is_declared_beside_those_there() -> None:
    there = [{"containerPort": 22}]
    given = job({"mpi": ["--port=2022"]}, task("master", containers=[container(ports=there)]))
    assert pod(given, "master")["spec"]["containers"][0]["ports"] == [
        *there,
        {"name": "mpijob-port", "containerPort": 2022},
    ]


def test_svc_and_ssh_come_with_it() -> None:
    given = job(MPI, task("master"), task("worker"))
    assert list(wanted(given)) == [
        "ConfigMap/job-svc",
        "Service/job",
        "NetworkPolicy/job",
        "Secret/job-ssh",
    ]
