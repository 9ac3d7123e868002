"""pytorch with ``--elastic``: what torchrun reads."""

import pytest

from app.wire.unstructured import Object
from tests.controllers.jobplugins.jobs import container, job, pod, pod_variables, task


def elastic(*flags: str) -> dict[str, list[str]]:
    return {"pytorch": ["--elastic", *flags]}


def rendezvous(**values: str) -> dict[str, str]:
    """The variables by default for one master and two workers, and what differs from that."""
    found = {
        "RDZV_BACKEND": "c10d",
        "RDZV_ENDPOINT": "job-master-0.job:23456",
        "RDZV_ID": "u1",
        "NNODES": "3:3",
        "NPROC_PER_NODE": "1",
        "RDZV_CONF": "is_host=false",
    }
    return {f"PET_{name}": value for name, value in {**found, **values}.items() if value}


MASTER_AND_WORKERS = [task("master"), task("worker", 2)]


@pytest.mark.parametrize(
    ("flags", "tasks", "place", "found"),
    [
        ([], MASTER_AND_WORKERS, ("master", 0), rendezvous(RDZV_CONF="is_host=true")),
        ([], MASTER_AND_WORKERS, ("worker", 0), rendezvous()),
        ([], MASTER_AND_WORKERS, ("worker", 1), rendezvous()),
        ([], [*MASTER_AND_WORKERS, task("board")], ("board", 0), {}),
        (
            [],
            [task("worker", 4, least=2)],
            ("worker", 0),
            rendezvous(
                RDZV_ENDPOINT="job-worker-0.job:23456", NNODES="2:4", RDZV_CONF="is_host=true"
            ),
        ),
        (
            [],
            [task("worker", 4, least=2)],
            ("worker", 3),
            rendezvous(RDZV_ENDPOINT="job-worker-0.job:23456", NNODES="2:4"),
        ),
        ([], [task("board")], ("board", 0), {}),
        (
            [],
            [task("worker", 2, least=0)],
            ("worker", 1),
            rendezvous(RDZV_ENDPOINT="job-worker-0.job:23456", NNODES="1:2"),
        ),
        (["--min-nodes=1"], MASTER_AND_WORKERS, ("worker", 0), rendezvous(NNODES="1:3")),
        (["--max-nodes=8"], MASTER_AND_WORKERS, ("worker", 0), rendezvous(NNODES="3:8")),
        (["--max-nodes=2"], MASTER_AND_WORKERS, ("worker", 0), rendezvous(NNODES="2:2")),
        (
            ["--min-nodes=2", "--max-nodes=6"],
            MASTER_AND_WORKERS,
            ("worker", 0),
            rendezvous(NNODES="2:6"),
        ),
        (["--max-restarts=3"], MASTER_AND_WORKERS, ("worker", 0), rendezvous(MAX_RESTARTS="3")),
        (
            ["--nproc-per-node=auto"],
            MASTER_AND_WORKERS,
            ("worker", 0),
            rendezvous(NPROC_PER_NODE="auto"),
        ),
        (
            ["--port=29400"],
            MASTER_AND_WORKERS,
            ("worker", 0),
            rendezvous(RDZV_ENDPOINT="job-master-0.job:29400"),
        ),
        (
            ["--rdzv-backend=etcd-v2", "--rdzv-endpoint=etcd:2379"],
            MASTER_AND_WORKERS,
            ("master", 0),
            rendezvous(RDZV_BACKEND="etcd-v2", RDZV_ENDPOINT="etcd:2379", RDZV_CONF=""),
        ),
        (
            ["--rdzv-endpoint=elsewhere:1"],
            MASTER_AND_WORKERS,
            ("worker", 0),
            rendezvous(RDZV_ENDPOINT="elsewhere:1", RDZV_CONF=""),
        ),
    ],
)
def test_every_node_is_told_where_and_how_many(
    flags: list[str], tasks: list[Object], place: tuple[str, int], found: dict[str, str]
) -> None:
    assert pod_variables(job(elastic(*flags), *tasks), *place) == found


@pytest.mark.parametrize(
    ("limits", "processes"),
    [
        ({"nvidia.com/gpu": 4}, "4"),
        ({"nvidia.com/gpu": "2", "amd.com/gpu": "1"}, "3"),
        ({"cpu": "8", "nvidia.com/gpu": "0"}, "1"),
        ({}, "1"),
    ],
)
def test_a_node_runs_a_process_for_each_of_its_gpus(
    limits: dict[str, object], processes: str
) -> None:
    given = task("worker", 2, containers=[container(resources={"limits": limits})])
    found = pod_variables(job(elastic(), given), "worker")
    assert found["PET_NPROC_PER_NODE"] == processes


@pytest.mark.parametrize(
    ("tasks", "waits"),
    [
        (MASTER_AND_WORKERS, {("master", 0): False, ("worker", 0): True, ("worker", 1): True}),
        ([task("worker", 2)], {("worker", 0): False, ("worker", 1): True}),
    ],
)
def test_all_but_the_host_can_wait_for_it(
    tasks: list[Object], waits: dict[tuple[str, int], bool]
) -> None:
    given = job(elastic("--wait-master-enabled"), *tasks)
    assert {place: "initContainers" in pod(given, *place)["spec"] for place in waits} == waits


def test_nobody_waits_for_a_server_elsewhere() -> None:
    flags = ("--wait-master-enabled", "--rdzv-endpoint=etcd:2379")
    given = job(elastic(*flags), *MASTER_AND_WORKERS)
    assert "initContainers" not in pod(given, "worker")["spec"]
