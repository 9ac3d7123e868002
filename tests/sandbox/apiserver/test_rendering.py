"""Cells of tables: durations, JSONPath, the word under STATUS."""

from __future__ import annotations

import pytest

from app.sandbox.apiserver.columns import custom_columns
from app.sandbox.apiserver.jsonpath import lookup
from app.wire.ages import human_duration
from app.wire.documents import Document
from app.wire.pod_columns import pod_status


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (5, "5s"),
        (119, "119s"),
        (200, "3m20s"),
        (720, "12m"),
        (5 * 3600 + 600, "5h10m"),
        (10 * 3600, "10h"),
        (3 * 86400 + 4 * 3600, "3d4h"),
        (40 * 86400, "40d"),
        (800 * 86400, "2y70d"),
        (-5, "<invalid>"),
    ],
)
def test_ages_get_coarser(seconds: int, shown: str) -> None:
    assert human_duration(seconds) == shown


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]),
        (".list[0].n", [1]),
        (".list[*].n", [1, 2]),
        (".list[-1].n", [2]),
        ('.list[?(@.t=="y")].n', [2]),
        (".m['k.x']", [3]),
        (".m.k\\.x", [3]),
        (".none.b", []),
    ],
)
def test_a_path_finds_values(path: str, found: list[int]) -> None:
    document = {
        "a": {"b": 1},
        "list": [{"n": 1, "t": "x"}, {"n": 2, "t": "y"}],
        "m": {"k.x": 3},
    }
    assert lookup(document, path) == found


def test_a_date_column_shows_an_age() -> None:
    column = custom_columns([{"name": "Age", "type": "date", "jsonPath": ".t"}])[1]
    assert column.cell({"t": "2023-11-14T22:13:20Z"}, 1_700_000_060.0) == "60s"
    assert column.cell({}, 0.0) == "<unknown>"


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Pending"}, "Pending"),
        (
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}],
            },
            "SchedulingGated",
        ),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]},
            "ContainerCreating",
        ),
        (
            {
                "phase": "Succeeded",
                "containerStatuses": [
                    {"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}
                ],
            },
            "Completed",
        ),
        (
            {"containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]},
            "ExitCode:3",
        ),
    ],
    ids=["phase", "gated", "waiting", "completed", "exit code"],
)
def test_one_word_sums_a_pod_up(status: Document, shown: str) -> None:
    assert pod_status({"metadata": {"name": "p"}, "status": status}) == shown


def test_a_pod_that_is_asked_to_go_is_terminating() -> None:
    metadata = {"name": "p", "deletionTimestamp": "2023-11-14T22:13:20Z"}
    assert pod_status({"metadata": metadata, "status": {"phase": "Running"}}) == "Terminating"
