"""pytorch without ``--elastic``."""

import shutil
import socket
import subprocess

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

TORCH: Plugins = {"pytorch": []}


def world(address: str, size: int, rank: int | None, port: int = 23456) -> dict[str, str]:
    found = {"MASTER_ADDR": address, "MASTER_PORT": str(port), "WORLD_SIZE": str(size)}
    return found if rank is None else {**found, "RANK": str(rank)}


@pytest.mark.parametrize(
    ("flags", "tasks", "place", "found"),
    [
        ([], [task("master"), task("worker", 2)], ("master", 0), world("job-master-0.job", 3, 0)),
        ([], [task("master"), task("worker", 2)], ("worker", 0), world("job-master-0.job", 3, 1)),
        ([], [task("master"), task("worker", 2)], ("worker", 1), world("job-master-0.job", 3, 2)),
        (
            [],
            [task("master"), task("worker", 2), task("board")],
            ("board", 0),
            world("job-master-0.job", 3, None),
        ),
        ([], [task("master")], ("master", 0), world("job-master-0.job", 1, 0)),
        ([], [task("worker", 2)], ("worker", 0), {}),
        (
            ["--master=main", "--worker=rest", "--port=1"],
            [task("main"), task("rest")],
            ("rest", 0),
            world("job-main-0.job", 2, 1, port=1),
        ),
        (
            [],
            [task("master", hostname="h", subdomain="net"), task("worker")],
            ("worker", 0),
            world("h.net", 2, 1),
        ),
    ],
)
def test_the_world_as_each_pod_sees_it(
    flags: list[str], tasks: list[Object], place: tuple[str, int], found: dict[str, str]
) -> None:
    assert pod_variables(job({"pytorch": flags}, *tasks), *place) == found


def test_several_masters_have_ranks_of_their_own() -> None:
    given = job(TORCH, task("master", 2), task("worker", 2))
    places = [("master", 0), ("master", 1), ("worker", 0), ("worker", 1)]
    assert [pod_variables(given, *place)["RANK"] for place in places] == ["0", "1", "2", "3"]


def test_the_port_is_declared_once() -> None:
    there = [{"name": "mine", "containerPort": 23456}]
    given = task("worker", containers=[container("a"), container("b", ports=there)])
    spec = pod(job(TORCH, task("master"), given), "worker")["spec"]
    assert spec["containers"][0]["ports"] == [{"name": "pytorchjob-port", "containerPort": 23456}]
    assert spec["containers"][1]["ports"] == there


def test_what_a_container_sets_itself_stays() -> None:
    given = task("worker", containers=[container(env=[{"name": "RANK", "value": "7"}])])
    found = pod_variables(job(TORCH, task("master"), given), "worker")
    assert found == {**world("job-master-0.job", 2, 7)}


def test_nobody_waits_unless_asked() -> None:
    spec = pod(job(TORCH, task("master"), task("worker")), "worker")["spec"]
    assert "initContainers" not in spec


def waiting(*flags: str, worker: Object | None = None) -> Object:
    return job(
        {"pytorch": ["--wait-master-enabled", *flags]}, task("master"), worker or task("worker")
    )


def test_workers_wait_for_the_master_after_their_own_preparations() -> None:
    own = container("own")
    given = waiting(
        "--wait-master-image=alpine", "--port=1", worker=task("worker", initContainers=[own])
    )
    first, waiter = pod(given, "worker")["spec"]["initContainers"]
    assert first["name"] == "own"
    assert (waiter["name"], waiter["image"]) == ("wait-for-master", "alpine")
    assert waiter["command"][:2] == ["sh", "-c"]
    assert "job-master-0.job 1" in waiter["command"][2]
    assert "initContainers" not in pod(given, "master")["spec"]


def test_a_waiter_of_the_template_stays() -> None:
    own = container("wait-for-master", image="mine")
    spec = pod(waiting(worker=task("worker", initContainers=[own])), "worker")["spec"]
    assert [one["image"] for one in spec["initContainers"]] == ["mine"]


def test_only_variables_of_the_containers_proper_are_set() -> None:
    given = job(TORCH, task("master"), task("worker", initContainers=[container("own")]))
    (own,) = pod(given, "worker")["spec"]["initContainers"]
    assert "RANK" not in variables(own)


def script(port: int, *, timeout_s: int) -> str:
    """What a worker runs to wait, aimed at this machine."""
    flags = (f"--port={port}", f"--wait-master-timeout={timeout_s}")
    (waiter,) = pod(waiting(*flags), "worker")["spec"]["initContainers"]
    text = waiter["command"][2]
    assert isinstance(text, str)
    return text.replace("job-master-0.job", "127.0.0.1")


BASH = shutil.which("bash") or ""


@pytest.mark.skipif(not BASH, reason="the script is run by bash, whose sh can open sockets")
def test_the_script_ends_when_the_port_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = script(server.getsockname()[1], timeout_s=60)
        done = subprocess.run([BASH, "-c", text], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not BASH, reason="the script is run by bash, whose sh can open sockets")
def test_the_script_gives_up_after_its_time() -> None:
    with socket.socket() as taken:  # by nobody who listens, and by nobody else meanwhile
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        done = subprocess.run(
            [BASH, "-c", script(port, timeout_s=1)], capture_output=True, timeout=60, check=False
        )
    assert done.returncode == 1
    assert done.stderr == f"127.0.0.1:{port} was not reachable within 1 s\n".encode()


def test_svc_comes_with_it() -> None:
    assert "Service/job" in wanted(job(TORCH, task("master")))
