"""Why a pod that has a node does not do its work."""

from typing import Any

import pytest
from msgspec import json

from app.wire.objects.troubles import NONE, trouble_in
from tests.wire.manifests import decoded


def container(state: dict[str, Any], name: str = "main", **said: Any) -> dict[str, Any]:
    return {"name": name, "state": state, **said}


def waits(reason: str, message: str | None = None) -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def ended(code: int, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason}}


RUNS: dict[str, Any] = {"running": {"startedAt": "2026-11-30T07:00:00Z"}}


@pytest.mark.parametrize(
    ("status", "reason", "text"),
    [
        (
            {"containerStatuses": [container(waits("ImagePullBackOff", 'no image "x"'))]},
            "ImagePullBackOff",
            'container main: ImagePullBackOff: no image "x"',
        ),
        (
            {
                "containerStatuses": [
                    container(
                        waits("CrashLoopBackOff", "back-off 5m0s restarting failed container"),
                        restartCount=5,
                        lastState=ended(137, "OOMKilled"),
                    )
                ]
            },
            "CrashLoopBackOff",
            "container main: CrashLoopBackOff, 5 restarts, last ended with exit code 137 "
            "(OOMKilled)",
        ),
        (
            {"containerStatuses": [container(waits("CrashLoopBackOff"), restartCount=1)]},
            "CrashLoopBackOff",
            "container main: CrashLoopBackOff, 1 restart",
        ),
        (
            {"containerStatuses": [container(RUNS), container(ended(3), "helper")]},
            "Error",
            "container helper: ended with exit code 3",
        ),
        (
            {
                "initContainerStatuses": [container(ended(1, "ContainerCannotRun"), "fetch")],
                "containerStatuses": [container(waits("PodInitializing"))],
            },
            "ContainerCannotRun",
            "container fetch: ended with exit code 1 (ContainerCannotRun)",
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory. "},
            "Evicted",
            "Evicted: The node was low on memory",
        ),
        (
            {"phase": "Failed", "containerStatuses": [container(ended(2))]},
            "Error",
            "container main: ended with exit code 2",
        ),
        ({"phase": "Failed"}, "", ""),
        ({"containerStatuses": [container(RUNS, restartCount=3, lastState=ended(1))]}, "", ""),
        ({"containerStatuses": [container(waits("ContainerCreating"))]}, "", ""),
        ({"containerStatuses": [container({"waiting": {}})]}, "", ""),
        ({"containerStatuses": [container(ended(0, "Completed"))]}, "", ""),
        ({"containerStatuses": [{"name": "main"}]}, "", ""),
        ({"containerStatuses": None}, "", ""),
        ({}, "", ""),
    ],
)
def test_the_first_thing_that_is_wrong_is_told(
    status: dict[str, Any], reason: str, text: str
) -> None:
    assert trouble_in(json.encode(status)) == (reason, text)


def test_a_message_is_one_line_that_can_be_printed_and_is_not_long() -> None:
    said = f"one\n\x1b[2J  two {'x' * 500}"
    status = {"containerStatuses": [container(waits("CreateContainerError", said))]}
    text = trouble_in(json.encode(status)).text
    assert text.startswith("container main: CreateContainerError: one [2J two xxx")
    assert text.endswith("x…")
    assert len(text) < 250


def test_a_pod_that_is_told_to_go_is_not_in_trouble() -> None:
    status = {"phase": "Running", "containerStatuses": [container(ended(143))]}
    gone = {"deletionTimestamp": "2026-11-30T07:00:00Z"}
    assert decoded(nodeName="n1", status=status).trouble
    assert not decoded(nodeName="n1", status=status, meta=gone).trouble


def test_nothing_is_wrong_with_most_pods() -> None:
    assert trouble_in(b'{"phase": "Running"}') == NONE
