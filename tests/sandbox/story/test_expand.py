"""What becomes of the story's jobs: groups and pods as a job controller would make them."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

from app.sandbox.documents import Document
from app.sandbox.story import expand


@pytest.fixture(scope="module")
def documents() -> dict[str, Document]:
    return expand.story(files("app.sandbox.story").joinpath("jobs.yaml").read_text())


def test_the_story_has_its_queue_and_its_jobs(documents: dict[str, Document]) -> None:
    assert list(documents) == [
        "Queue/test",
        "Job/job-1",
        "Job/job-2",
        "Job/tensorflow-benchmark",
        "Job/test-job",
        "Job/training-a",
        "Job/training-b",
    ]
    assert documents["Queue/test"]["spec"] == {
        "weight": 1,
        "reclaimable": False,
        "capability": {"cpu": "2"},
    }


@pytest.mark.parametrize(
    ("job", "spec"),
    [
        (
            "job-1",
            {
                "minMember": 1,
                "minTaskMember": {"nginx": 1},
                "queue": "test",
                "minResources": {"cpu": "1"},
            },
        ),
        (
            "tensorflow-benchmark",
            {
                "minMember": 3,
                "minTaskMember": {"ps": 1, "worker": 2},
                "queue": "default",
                "minResources": {"cpu": "5", "memory": "6Gi"},
            },
        ),
        # Of six pods any three will do: no role has a minimum of its own.
        (
            "test-job",
            {
                "minMember": 3,
                "minTaskMember": {},
                "queue": "default",
                "minResources": {"cpu": "3"},
            },
        ),
    ],
)
def test_a_job_has_one_group(documents: dict[str, Document], job: str, spec: Any) -> None:
    group = expand.pod_group(documents[f"Job/{job}"])
    assert group["metadata"] == {"name": job}
    assert group["spec"] == spec


def test_pods_are_named_and_marked_task_by_task(documents: dict[str, Document]) -> None:
    pods = expand.pods(documents["Job/tensorflow-benchmark"])
    assert [pod["metadata"]["name"] for pod in pods] == [
        "tensorflow-benchmark-ps-0",
        "tensorflow-benchmark-worker-0",
        "tensorflow-benchmark-worker-1",
    ]
    last = pods[-1]
    assert last["spec"]["schedulerName"] == "volcano"
    assert last["metadata"]["labels"] == {
        "volcano.sh/job-name": "tensorflow-benchmark",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": "1",
        "volcano.sh/queue-name": "default",
    }
    group = last["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
    assert group == "tensorflow-benchmark"


def test_six_pods_of_one_task(documents: dict[str, Document]) -> None:
    assert len(expand.pods(documents["Job/test-job"])) == 6
