"""``pumice pod list``: which pods, and how they are shown."""

from __future__ import annotations

import json
import re

import pytest

from app.cli import pod_rows
from tests.cli.stand import CREATED, Object, Stand, pod

NOW = 1_700_000_090.0
JOB, QUEUE = "volcano.sh/job-name", "volcano.sh/queue-name"
QUEUED = "scheduling.volcano.sh/queue-name"


def running(name: str, *, restarts: int = 0) -> Object:
    item = pod(
        name,
        status={
            "phase": "Running",
            "containerStatuses": [
                {"name": "c", "ready": True, "restartCount": restarts, "state": {"running": {}}}
            ],
        },
    )
    item["metadata"]["creationTimestamp"] = CREATED
    return item


def test_columns_are_as_wide_as_what_is_in_them_and_eight_blanks() -> None:
    gated = pod(
        "b",
        status={
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}],
        },
    )
    gated["metadata"]["creationTimestamp"] = CREATED
    assert pod_rows.rows([gated, running("job-work-0", restarts=2)], now=NOW) == (
        "Name              Ready      Status                 Restart  Age        \n"
        "b                 0/1        SchedulingGated        0        90s        \n"
        "job-work-0        1/1        Running                2        90s        \n"
    )


def test_the_namespace_comes_first_where_there_are_many() -> None:
    there = running("a")
    there["metadata"]["namespace"] = "x"
    text = pod_rows.rows([running("z"), there], now=NOW, all_namespaces=True)
    assert text == (
        "Namespace      Name     Ready      Status         Restart  Age        \n"
        "default        z        1/1        Running        0        90s        \n"
        "x              a        1/1        Running        0        90s        \n"
    )


def test_wide_shows_the_node() -> None:
    item = running("a")
    item["spec"]["nodeName"] = "n1"
    head, row = pod_rows.rows([item], now=NOW, wide=True).splitlines()
    assert re.split(" {2,}", head.strip())[-4:] == [
        "IP",
        "Node",
        "Nominated Node",
        "Readiness Gates",
    ]
    assert row.split()[-4:] == ["<none>", "n1", "<none>", "<none>"]


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ([], ["a0", "b0"]),
        (["-j", "a"], ["a0"]),
        (["--job", "a", "--queue", "q"], ["a0"]),
        (["-q", "q"], ["a0", "plain"]),
        (["-q", "none"], []),
        (["-n", "kube-system"], []),
    ],
)
def test_pods_are_chosen(flags: list[str], names: list[str], stand: Stand) -> None:
    stand.create(
        pod("a0", labels={JOB: "a", QUEUE: "q"}),
        pod("b0", labels={JOB: "b", QUEUE: "other"}),
        pod("plain", annotations={QUEUED: "q"}),
        pod("foreign"),
    )
    listed = json.loads(stand.printed("pod", "list", *flags, "-o", "json"))["items"]
    assert [item["metadata"]["name"] for item in listed] == names


def test_a_job_that_is_in_another_queue_is_refused(stand: Stand) -> None:
    stand.create(pod("a0", labels={JOB: "a", QUEUE: "q"}))
    assert stand.refusal("pod", "list", "-j", "a", "-q", "other") == (
        2,
        "Failed to list pod: the input vcjob a does not match the queue other\n",
    )


def test_the_table_is_printed(stand: Stand) -> None:
    assert stand.printed("pod", "list") == "No resources found\n"
    stand.create(pod("a0", labels={JOB: "a"}))
    head, row = stand.printed("pod", "list", "-A").splitlines()
    assert head.split() == ["Namespace", "Name", "Ready", "Status", "Restart", "Age"]
    assert row.split()[:5] == ["default", "a0", "0/1", "Pending", "0"]
