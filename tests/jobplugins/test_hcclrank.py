"""hcclrank."""

import pytest

from app.jobplugins import catalogue
from app.jobplugins.plugin import PodOfJob
from app.wire.unstructured import Object
from tests.controllers.jobplugins.jobs import Plugins, bare_pod, container, job, pod, task, wanted

RANK: Plugins = {"hcclrank": []}


def rank(of: Object, task_name: str, index: int = 0) -> str | None:
    found = pod(of, task_name, index)["metadata"]["annotations"]
    value: str | None = found.get("hccl/rankIndex")
    return value


@pytest.mark.parametrize(
    ("flags", "tasks", "place", "found"),
    [
        ([], [task("master", 2), task("worker", 2)], ("master", 1), "1"),
        ([], [task("master", 2), task("worker", 2)], ("worker", 0), "2"),
        ([], [task("master", 2), task("worker", 2)], ("worker", 1), "3"),
        ([], [task("worker", 2)], ("worker", 1), "1"),
        ([], [task("master"), task("board")], ("board", 0), None),
        (["--master=a", "--worker=b"], [task("a"), task("b")], ("b", 0), "1"),
        (
            [],
            [task("worker", 2, containers=[container(env=[{"name": "RANK", "value": "7"}])])],
            ("worker", 1),
            "7",
        ),
        (
            [],
            [task("worker", 2, containers=[container(env=[{"name": "RANK", "valueFrom": {}}])])],
            ("worker", 1),
            "1",
        ),
    ],
)
def test_the_rank_is_the_place_in_the_job(
    flags: list[str], tasks: list[Object], place: tuple[str, int], found: str | None
) -> None:
    assert rank(job({"hcclrank": flags}, *tasks), *place) == found


def test_an_annotation_that_is_there_stays() -> None:
    given = job(RANK, task("worker"))
    own = bare_pod(given, "worker", 0)
    own["metadata"]["annotations"]["hccl/rankIndex"] = "9"
    made = catalogue.parse(given).pod(own, PodOfJob("worker", 0))
    assert made["metadata"]["annotations"]["hccl/rankIndex"] == "9"


def test_a_pod_without_annotations_gets_them() -> None:
    given = job(RANK, task("worker"))
    own = bare_pod(given, "worker", 0)
    del own["metadata"]["annotations"]
    made = catalogue.parse(given).pod(own, PodOfJob("worker", 0))
    assert made["metadata"]["annotations"] == {"hccl/rankIndex": "0"}


def test_it_takes_the_rank_that_pytorch_has_set() -> None:
    given = job({"hcclrank": ["--master=none"], "pytorch": []}, task("master"), task("worker", 2))
    assert [rank(given, "worker", index) for index in (0, 1)] == ["1", "2"]


def test_it_makes_no_objects() -> None:
    assert wanted(job(RANK, task("worker"))) == {}
