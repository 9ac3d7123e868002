from __future__ import annotations

import math

import pytest

from app.sandbox.commands import Program, parse_command, program_of, unreadable_annotations
from tests.sandbox.documents import pod


@pytest.mark.parametrize(
    ("command", "seconds", "code"),
    [
        (["sleep", "5"], 5.0, 0),
        (["sleep", "1m"], 60.0, 0),
        (["sleep", "infinity"], math.inf, 0),
        (["sleep", "soon"], 0.0, 1),
        (["/bin/true"], 0.0, 0),
        (["false"], 0.0, 1),
        (["sh", "-c", "sleep 5; exit 3"], 5.0, 3),
        (["/bin/bash", "-ec", "sleep 2 && sleep 3"], 5.0, 0),
        (["sh", "-c", "false && sleep 9"], 0.0, 1),
        (["sh", "-c", "false || sleep 9"], 9.0, 0),
        (["sh", "-c", "exit 2; sleep 9"], 0.0, 2),
        (["sh", "-c", "X=1 sleep 1\necho done"], 1.0, 0),
        (["sh", "-c", "sleep 1; python train.py"], None, 0),
        (["sh", "-ec", "false; sleep 1"], 0.0, 1),
        (["sh", "-e", "-c", "false; sleep 1"], 0.0, 1),
        (["bash", "-o", "errexit", "-c", "false; sleep 1"], 0.0, 1),
        (["sh", "-xc", "false; sleep 1"], 1.0, 0),
        (["sh", "-c", "set -e\nfalse\nexit 0"], 0.0, 1),
        (["sh", "-c", "set -euo pipefail\nfalse\nexit 0"], 0.0, 1),
        (["sh", "-c", "set -o errexit; false; exit 0"], 0.0, 1),
        (["sh", "-ec", "set +e; false; exit 0"], 0.0, 0),
        (["sh", "-ec", "false || sleep 2; sleep 1"], 3.0, 0),
        (["sh", "-ec", "false && sleep 2; sleep 1"], 1.0, 0),
        (["sh", "-ec", "true && false; sleep 1"], 0.0, 1),
        (["sh", "-ec", "false ||\n sleep 2"], 2.0, 0),
        (["sh", "-c", "false; exit $?"], 0.0, 1),
        (["sh", "-c", "false; exit"], 0.0, 1),
        (["sh", "-c", "false; true; exit $?"], 0.0, 0),
        (["sh"], None, 0),
        (["python", "train.py"], None, 0),
        ([], None, 0),
    ],
)
def test_a_command_tells_how_long_it_runs_and_how_it_ends(
    command: list[str], seconds: float | None, code: int
) -> None:
    program = parse_command(command)
    assert (program.seconds, program.exit_code) == (seconds, code)


def test_a_shell_does_not_listen_to_sigterm() -> None:
    assert parse_command(["sh", "-c", "sleep 5"]).ignores_term
    assert not parse_command(["sleep", "5"]).ignores_term


def test_what_a_script_echoes_is_its_output() -> None:
    assert parse_command(["sh", "-c", "echo hello world; echo bye"]).output == (
        "hello world",
        "bye",
    )
    assert parse_command(["sh", "-c", "false; echo ended with $?"]).output == ("ended with 1",)


def test_annotations_overrule_the_command() -> None:
    noted = pod(
        metadata={
            "annotations": {
                "pumice.sh/sandbox-run-seconds": "7",
                "pumice.sh/sandbox-exit-code": "4",
            }
        },
        command=["sleep", "99"],
    )
    program = program_of(noted, noted["spec"]["containers"][0])
    assert (program.seconds, program.exit_code) == (7.0, 4)


@pytest.mark.parametrize(
    ("seconds", "code"), [("abc", "x"), ("", ""), ("-1", "-1"), ("nan", "256"), ("inf", "1.0")]
)
def test_an_annotation_that_cannot_be_read_counts_as_absent(seconds: str, code: str) -> None:
    annotations = {"pumice.sh/sandbox-run-seconds": seconds, "pumice.sh/sandbox-exit-code": code}
    noted = pod(metadata={"annotations": annotations}, command=["sleep", "99"])
    assert program_of(noted, noted["spec"]["containers"][0]) == Program(seconds=99.0)
    assert unreadable_annotations(noted) == [
        f'pumice.sh/sandbox-run-seconds is ignored: "{seconds}" is not a number of seconds',
        f'pumice.sh/sandbox-exit-code is ignored: "{code}" is not an exit code from 0 to 255',
    ]


def test_of_annotations_that_can_be_read_nobody_complains() -> None:
    annotations = {"pumice.sh/sandbox-run-seconds": "0.5", "pumice.sh/sandbox-exit-code": "255"}
    assert unreadable_annotations(pod(metadata={"annotations": annotations})) == []
    assert unreadable_annotations(pod()) == []


def test_an_exit_code_alone_ends_a_server_at_once() -> None:
    noted = pod(metadata={"annotations": {"pumice.sh/sandbox-exit-code": "1"}})
    assert program_of(noted, noted["spec"]["containers"][0]) == Program(
        seconds=0.0, exit_code=1, stop_code=0
    )
