"""The command itself."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
import yaml
from typer.testing import CliRunner

from app.cli import vcctl
from app.cli.root import app
from app.cli.standalone import PROGRAMS

COMMAND = Path(sys.executable).with_name("pumice")
runner = CliRunner()


def test_it_says_its_version() -> None:
    done = runner.invoke(app, ["version"])
    assert (done.exit_code, done.output) == (0, f"pumice {version('pumice')}\n")


@pytest.mark.parametrize("process", ["extender", "controllers", "webhooks", "all"])
def test_every_process_says_its_version(process: str) -> None:
    done = runner.invoke(app, [process, "--version"])
    assert (done.exit_code, done.output) == (0, f"pumice {version('pumice')}\n")


@pytest.mark.parametrize("program", [app, vcctl.app, *PROGRAMS.values()])
def test_every_program_says_its_version(program: typer.Typer) -> None:
    done = runner.invoke(program, ["--version"])
    assert (done.exit_code, done.output) == (0, f"pumice {version('pumice')}\n")


@pytest.mark.parametrize("program", [app, vcctl.app, *PROGRAMS.values()])
@pytest.mark.parametrize("flag", ["--install-completion", "--show-completion"])
@pytest.mark.parametrize("form", ["{} {}", "{}={}"])
def test_what_is_no_shell_is_not_completed(program: typer.Typer, flag: str, form: str) -> None:
    done = runner.invoke(program, form.format(flag, "nonsense").split())
    assert done.exit_code == 2
    why = f"Error: Invalid value: {flag}: 'nonsense' is none of bash, zsh, fish, powershell, pwsh"
    assert done.output.splitlines()[-1] == why


@pytest.mark.parametrize(("shell", "word"), [("bash", "COMPREPLY"), ("zsh", "compdef")])
def test_a_shell_may_be_named_for_completion(shell: str, word: str) -> None:
    done = runner.invoke(app, ["--show-completion", shell])
    assert done.exit_code == 0
    assert word in done.output


def test_the_installed_command_is_the_same() -> None:
    done = subprocess.run([COMMAND, "version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"pumice {version('pumice')}\n"


def test_the_help_names_every_command() -> None:
    done = runner.invoke(app, ["--help"])
    assert done.exit_code == 0
    for command in ("extender", "sandbox", "demo", "crds", "scheduler-config", "version"):
        assert command in done.output


@pytest.mark.parametrize("command", ["extender", "sandbox", "demo", "crds", "scheduler-config"])
def test_every_command_has_help(command: str) -> None:
    done = runner.invoke(app, [command, "--help"])
    assert done.exit_code == 0
    assert done.output.startswith(f"Usage: root {command} ")


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["version", "surplus"], ["--nonsense"]])
def test_what_is_no_command_ends_with_2(arguments: list[str]) -> None:
    assert runner.invoke(app, arguments).exit_code == 2


@pytest.mark.parametrize("form", ["a", "b", "c"])
def test_a_configuration_of_every_form_is_printed_by_variables_alone(form: str) -> None:
    env = {
        "PUMICE_EXTENDER_URL": "http://127.0.0.1:1234",
        "PUMICE_FORM": form,
        "PUMICE_KUBECONFIG": "/k",
    }
    done = runner.invoke(app, ["scheduler-config"], env=env)
    assert done.exit_code == 0
    config = yaml.safe_load(done.output)
    assert config["kind"] == "KubeSchedulerConfiguration"
    assert config["extenders"][0]["urlPrefix"] == "http://127.0.0.1:1234"
    assert config["clientConnection"]["kubeconfig"] == "/k"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--extender-url=nonsense"],
        ["--extender-url=http://x", "--form=d"],
        ["--extender-url=http://x", "--leader-elect=perhaps"],
        ["--extender-url=http://x", "--extender-ca-file=/ca"],
    ],
)
def test_a_bad_configuration_is_one_line_and_exit_code_2(arguments: list[str]) -> None:
    done = runner.invoke(app, ["scheduler-config", *arguments])
    assert done.exit_code == 2
    [_] = [line for line in done.output.splitlines() if line.startswith("Error: ")]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        *(
            (url, "is no http or https URL, such as http://host:port")
            for url in ("http://h:notaport", "http://h:99999", "http://:80", "http:// ", " ", "#")
        ),
        ("http://h#", "has a query or a fragment, behind which no path can be put"),
        ("http://h?a=b", "has a query or a fragment, behind which no path can be put"),
    ],
)
def test_controllers_are_not_sent_to_an_address_that_nobody_can_call(url: str, why: str) -> None:
    done = runner.invoke(app, ["controllers", f"--extender-url={url}"])
    assert done.exit_code == 2
    assert done.output == f"pumice: --extender-url: {url!r} {why}\n"
