"""The host names of a job's pods."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.jobplugins.rules.job_tasks import JobTasks, TaskRow, label, variable

NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,120}[a-z0-9])?", fullmatch=True)


@pytest.mark.parametrize(
    ("task", "hosts"),
    [
        (TaskRow("ps", 2), ("job-ps-0.job", "job-ps-1.job")),
        (TaskRow("ps", 0), ()),
        (TaskRow("ps", 2, subdomain="net"), ("job-ps-0.net", "job-ps-1.net")),
        (TaskRow("ps", 3, hostname="h"), ("h.job",)),
        (TaskRow("ps", 0, hostname="h"), ()),
        (TaskRow("ps", 1, hostname="h", subdomain="net"), ("h.net",)),
        (TaskRow("a-b", 1), ("job-a-b-0.job",)),
    ],
)
def test_hosts_follow_names_and_replicas(task: TaskRow, hosts: tuple[str, ...]) -> None:
    assert JobTasks("job", (task,)).hosts(task) == hosts


def test_the_first_host_has_a_name_even_before_it_is_wanted() -> None:
    job_tasks = JobTasks("job", ())
    assert job_tasks.first_host(TaskRow("ps", 0)) == "job-ps-0.job"
    assert job_tasks.first_host(TaskRow("ps", 2, hostname="h", subdomain="net")) == "h.net"


def test_a_task_is_found_by_its_name() -> None:
    task = TaskRow("ps", 1)
    assert JobTasks("job", (task,)).task("ps") is task
    assert JobTasks("job", (task,)).task("worker") is None


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("job-ps-0", "job-ps-0"),
        ("job.v1", "job-v1-6d0c1c4b"),
        ("3d", "3d"),
        ("x" * 63, "x" * 63),
    ],
)
def test_a_label_stays_and_other_names_become_one(name: str, made: str) -> None:
    if name == made:
        assert label(name) == made
    else:
        assert re.fullmatch(re.escape(made[:-8]) + "[0-9a-f]{8}", label(name))


def test_names_without_a_letter_become_labels_too() -> None:
    assert re.fullmatch(r"x-[0-9a-f]{8}", label("..."))


@given(NAMES, NAMES)
def test_labels_are_valid_and_as_distinct_as_the_names(one: str, other: str) -> None:
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", label(one))
    assert (label(one) == label(other)) == (one == other)


@given(
    st.lists(st.from_regex(r"[a-z]([-a-z]{0,60}[a-z])?", fullmatch=True), unique=True, max_size=4),
    NAMES,
)
def test_no_two_pods_of_a_job_have_the_same_host(tasks: list[str], job: str) -> None:
    job_tasks = JobTasks(job, tuple(TaskRow(name, 3) for name in tasks))
    hosts = [host for task in job_tasks.tasks for host in job_tasks.hosts(task)]
    assert len(set(hosts)) == len(hosts) == 3 * len(tasks)


@pytest.mark.parametrize(
    ("task", "name"), [("ps", "PS"), ("default-nginx", "DEFAULT_NGINX"), ("Ps", "PS")]
)
def test_variables_are_upper_case(task: str, name: str) -> None:
    assert variable(task) == name
