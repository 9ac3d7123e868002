"""READY, STATUS and RESTARTS of a pod, as kubectl and vcctl show them."""

from __future__ import annotations

from typing import Any

import pytest

from app.wire.documents import Document
from app.wire.pod_columns import POD_COLUMNS

NOW = 1_700_000_060.0
ENDED = "2023-11-14T22:13:20Z"
"""A minute before."""

RUNNING = {"ready": True, "state": {"running": {}}}
WAITING = {"state": {"waiting": {"reason": "PodInitializing"}}}
DONE = {"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}
FAILED = {"state": {"terminated": {"exitCode": 1, "reason": "Error"}}}
SIDECAR = {"started": True, **RUNNING}
INITIALIZED = [{"type": "Initialized", "status": "True"}]


def again(status: Document, times: int) -> Document:
    """The same after that many restarts."""
    return {**status, "restartCount": times, "lastState": {"terminated": {"finishedAt": ENDED}}}


def pod(init: list[Document], main: list[Document], *, sidecars: str = "", **more: Any) -> Document:
    """Containers that are named by their place, in init and then in the others."""

    def named(statuses: list[Document]) -> list[Document]:
        return [{"name": str(place), **status} for place, status in enumerate(statuses)]

    declared: list[Document] = [
        {"name": each["name"], **({"restartPolicy": "Always"} if each["name"] in sidecars else {})}
        for each in named(init)
    ]
    return {
        "metadata": {"name": "p", **more.pop("metadata", {})},
        "spec": {"initContainers": declared, "containers": named([{}] * len(main))},
        "status": {
            "phase": "Running",
            "initContainerStatuses": named(init),
            "containerStatuses": named(main),
            **more,
        },
    }


CELLS = {
    "all run": (pod([], [RUNNING, RUNNING]), ("2/2", "Running", "0")),
    "one has failed": (pod([], [RUNNING, FAILED]), ("1/2", "Error", "0")),
    "a sidecar runs": (pod([SIDECAR], [RUNNING], sidecars="0"), ("2/2", "Running", "0")),
    "a sidecar that is not ready yet": (
        pod([{**SIDECAR, "ready": False}], [RUNNING], sidecars="0"),
        ("1/2", "Running", "0"),
    ),
    "a sidecar that has not started yet": (
        pod([DONE, RUNNING, WAITING], [WAITING], sidecars="1"),
        ("0/2", "Init:1/3", "0"),
    ),
    "the one after the sidecar": (
        pod([SIDECAR, RUNNING], [WAITING], sidecars="0"),
        ("1/2", "Init:1/2", "0"),
    ),
    "the second": (pod([DONE, RUNNING], [WAITING]), ("0/1", "Init:1/2", "0")),
    "none has begun": (pod([WAITING, WAITING], [WAITING]), ("0/1", "Init:0/2", "0")),
    "it failed": (pod([FAILED], [WAITING]), ("0/1", "Init:Error", "0")),
    "it failed again": (pod([again(FAILED, 2)], [WAITING]), ("0/1", "Init:Error", "2 (60s ago)")),
    "what init was restarted is forgotten": (
        pod([again(DONE, 2)], [again(RUNNING, 1)]),
        ("1/1", "Running", "1 (60s ago)"),
    ),
    "what the sidecar was restarted is not": (
        pod([again(SIDECAR, 3)], [RUNNING], sidecars="0"),
        ("2/2", "Running", "3 (60s ago)"),
    ),
    "a sidecar that fails later": (
        pod([{"started": False, **FAILED}], [RUNNING], sidecars="0", conditions=INITIALIZED),
        ("1/2", "Init:Error", "0"),
    ),
    "its node is not reached": (
        pod([], [RUNNING], metadata={"deletionTimestamp": ENDED}, reason="NodeLost"),
        ("1/1", "Unknown", "0"),
    ),
}


@pytest.mark.parametrize(("given", "cells"), CELLS.values(), ids=CELLS)
def test_a_pod_is_shown(given: Document, cells: tuple[str, str, str]) -> None:
    columns = {column.name: column for column in POD_COLUMNS}
    shown = [columns[name].cell(given, NOW) for name in ("Ready", "Status", "Restarts")]
    assert tuple(shown) == cells
