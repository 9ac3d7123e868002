"""Switches of processes, written as in manifests of Volcano's."""

from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from app.cli.processes import Switch
from app.cli.root import app
from app.cli.switches import Process

runner = CliRunner()


def read(*arguments: str) -> dict[str, Any]:
    """What the command is given."""
    given: dict[str, Any] = {}
    program = typer.Typer(pretty_exceptions_enable=False)

    @program.command(cls=Process)
    def start(
        leader_elect: Switch | None = None, port: int | None = None, name: str | None = None
    ) -> None:
        said = {"leader_elect": leader_elect, "port": port, "name": name}
        given.update({key: value for key, value in said.items() if value is not None})

    done = runner.invoke(program, arguments)
    return given if done.exit_code == 0 else {"exit": done.exit_code, "said": done.output}


@pytest.mark.parametrize(
    ("spelling", "meaning"),
    [
        *((word, "true") for word in ("1", "t", "T", "TRUE", "true", "True")),
        *((word, "false") for word in ("0", "f", "F", "FALSE", "false", "False")),
    ],
)
def test_every_word_of_gos_is_understood(spelling: str, meaning: str) -> None:
    assert read(f"--leader-elect={spelling}") == {"leader_elect": meaning}
    assert read("--leader-elect", spelling, "--port=1") == {"leader_elect": meaning, "port": 1}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--leader-elect", "--port", "0"],
        ["--port", "0", "--leader-elect"],
        ["--leader-elect", "--port=0"],
    ],
)
def test_a_switch_alone_is_true(arguments: list[str]) -> None:
    assert read(*arguments) == {"leader_elect": "true", "port": 0}


def test_the_value_of_another_flag_is_no_switch() -> None:
    assert read("--name", "--leader-elect") == {"name": "--leader-elect"}


@pytest.mark.parametrize(
    "arguments", [["--leader-elect=perhaps"], ["--leader-elect="], ["--leader-elect", "perhaps"]]
)
def test_what_is_neither_true_nor_false_is_refused(arguments: list[str]) -> None:
    assert read(*arguments)["exit"] == 2


def test_the_switch_of_a_process_may_stand_alone() -> None:
    done = runner.invoke(app, ["extender", "--leader-elect", "--port", "many"])
    assert done.exit_code == 2
    assert "Invalid value for '--port'" in done.output


def test_a_bare_switch_reaches_the_configuration_of_kube_scheduler() -> None:
    arguments = ["--kubeconfig=/k", "--extender-url=http://127.0.0.1:1", "--leader-elect"]
    done = runner.invoke(app, ["scheduler-config", *arguments])
    assert "leaderElect: true" in done.output
