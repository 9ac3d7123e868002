"""jax."""

import pytest

from app.wire.unstructured import Object
from tests.controllers.jobplugins.jobs import Plugins, job, pod, pod_variables, task, wanted

JAX: Plugins = {"jax": []}


def process(address: str, processes: int, index: int) -> dict[str, str]:
    return {
        "JAX_COORDINATOR_ADDRESS": address,
        "JAX_NUM_PROCESSES": str(processes),
        "JAX_PROCESS_ID": str(index),
    }


BOTH = [task("coordinator"), task("worker", 2)]


@pytest.mark.parametrize(
    ("flags", "tasks", "place", "found"),
    [
        ([], [task("worker", 2)], ("worker", 0), process("job-worker-0.job:1234", 2, 0)),
        ([], [task("worker", 2)], ("worker", 1), process("job-worker-0.job:1234", 2, 1)),
        ([], BOTH, ("coordinator", 0), process("job-coordinator-0.job:1234", 3, 0)),
        ([], BOTH, ("worker", 1), process("job-coordinator-0.job:1234", 3, 2)),
        ([], [*BOTH, task("board")], ("board", 0), {}),
        (
            ["--coordinator=a", "--worker=b", "--port=1"],
            [task("a"), task("b")],
            ("b", 0),
            process("job-a-0.job:1", 2, 1),
        ),
        (
            ["--coordinator=worker"],
            [task("worker", 2)],
            ("worker", 1),
            process("job-worker-0.job:1234", 2, 1),
        ),
    ],
)
def test_every_process_knows_the_coordinator_and_itself(
    flags: list[str], tasks: list[Object], place: tuple[str, int], found: dict[str, str]
) -> None:
    assert pod_variables(job({"jax": flags}, *tasks), *place) == found


def test_the_coordinator_declares_its_port() -> None:
    given = job(JAX, task("worker", 2))
    (first,), (second,) = (pod(given, "worker", index)["spec"]["containers"] for index in (0, 1))
    assert first["ports"] == [{"name": "jaxjob-port", "containerPort": 1234}]
    assert "ports" not in second


def test_svc_comes_with_it() -> None:
    assert "Service/job" in wanted(job(JAX, task("worker")))
