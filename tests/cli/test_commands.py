"""How flags may be written, the help of every command, and completion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from app.cli import root, vcctl
from app.cli.standalone import PROGRAMS
from app.wire.kinds import JOBS
from tests.cli.stand import Stand, job

COMMAND = Path(sys.executable).with_name("vcctl")
runner = CliRunner()

VERBS = {
    "job": ["run", "list", "view", "suspend", "resume", "delete"],
    "queue": ["create", "delete", "operate", "list", "get"],
    "jobflow": ["create", "list", "get", "describe", "delete"],
    "jobtemplate": ["create", "list", "get", "describe", "delete"],
    "pod": ["list"],
}


@pytest.mark.parametrize("program", [vcctl.app, root.app], ids=["vcctl", "pumice"])
def test_every_verb_has_help_and_says_where_the_cluster_is(program: typer.Typer) -> None:
    for group, verbs in VERBS.items():
        for verb in verbs:
            done = runner.invoke(program, [group, verb, "--help"], env={"COLUMNS": "200"})
            assert done.exit_code == 0, done.output
            for flag in ("-k, --kubeconfig", "-s, --master", "--context"):
                assert flag in done.output


FLAGS = {
    "job run": "-i --image -n --namespace -N --name -m --min -r --replicas -R --requests "
    "-L --limits -S --scheduler -f --filename --wait --timeout -o --output",
    "job list": "-q --queue -n --namespace -S --scheduler -A --all-namespaces --selector -o",
    "job view": "-n --namespace -N --name -o",
    "job suspend": "-n --namespace -N --name",
    "job resume": "-n --namespace -N --name",
    "job delete": "-n --namespace -N --name",
    "queue create": "-n --name -w --weight -S --state",
    "queue delete": "-n --name",
    "queue operate": "-n --name -w --weight -a --action",
    "queue get": "-n --name -o",
    "queue list": "-o",
    "queue preview": "-n --name --capability --extender-url -o",
    "jobflow create": "-f --file",
    "jobflow list": "-n --namespace --all-namespaces -o",
    "jobflow get": "-n --namespace -N --name -o",
    "jobflow describe": "-n --namespace -N --name -o --format",
    "jobflow delete": "-n --namespace -N --name -f --file",
    "jobtemplate create": "-f --file",
    "jobtemplate list": "-n --namespace -o",
    "jobtemplate get": "-n --namespace -N --name -o",
    "jobtemplate describe": "-n --namespace -N --name -o --format",
    "jobtemplate delete": "-n --namespace -N --name -f --file",
    "pod list": "-q --queue -j --job -n --namespace --all-namespaces -o",
}


@pytest.mark.parametrize("command", FLAGS)
def test_volcano_s_flags_are_there(command: str) -> None:
    done = runner.invoke(vcctl.app, [*command.split(), "-h"], env={"COLUMNS": "200"})
    words = {word.strip(",") for word in done.output.split()}
    assert set(FLAGS[command].split()) <= words


STANDALONE = {
    "vsub": "-i --image -N --namespace -n --name -m --min -r --replicas -R --requests -L --limits "
    "-S --scheduler -c --command --wait --timeout -o",
    "vjobs": "-N --namespace -n --name -S --scheduler --all-namespaces --selector -o",
    "vqueues": "-n --name -o",
    "vcancel": "-N --namespace -n --name",
    "vsuspend": "-N --namespace -n --name",
    "vresume": "-N --namespace -n --name",
}


@pytest.mark.parametrize("program", STANDALONE)
def test_the_flags_of_volcano_s_small_programs_are_there(program: str) -> None:
    done = runner.invoke(PROGRAMS[program], ["-h"], env={"COLUMNS": "200"})
    words = {word.strip(",") for word in done.output.split()}
    assert {*STANDALONE[program].split(), "-k", "--kubeconfig", "-s", "--master"} <= words


@pytest.mark.parametrize("word", ["true", "True", "1", "t", "false", "False", "0", "f"])
def test_a_switch_takes_a_value(word: str, stand: Stand) -> None:
    stand.create(job("a"))
    rows = stand.printed("job", "list", f"--all-namespaces={word}", "-n", "kube-system")
    assert rows.startswith("Namespace" if word.lower() in {"true", "1", "t"} else "No resources")


def test_a_short_flag_takes_its_value_behind_an_equals_sign(stand: Stand) -> None:
    assert stand.printed("job", "run", "-N=a", "-r=2", "-c", "-n=5") == "run job a successfully\n"
    [made] = stand.all(JOBS)
    [task] = made["spec"]["tasks"]
    assert task["replicas"] == 2
    assert task["template"]["spec"]["containers"][0]["command"] == ["-n=5"]
    assert stand.printed("job", "list", "-n=default", "-o=name") == "job.batch.volcano.sh/a\n"


@pytest.mark.parametrize("flags", [["-v", "4"], ["-v4"], ["--v=4"], ["--vmodule=a=1", "-v=2"]])
def test_flags_of_logging_mean_nothing(flags: list[str], stand: Stand) -> None:
    stand.create(job("a"))
    words = ["job", "list", "-o", "name"]
    for place in range(3):
        written = [*words[:place], *flags, *words[place:]]
        assert stand.printed(*written) == "job.batch.volcano.sh/a\n"


@pytest.mark.parametrize("words", [[], ["job"], ["job", "run"]])
def test_help_is_a_command_of_vcctl_too(words: list[str]) -> None:
    asked = runner.invoke(vcctl.app, ["help", *words])
    assert (asked.exit_code, asked.output) == (0, runner.invoke(vcctl.app, [*words, "-h"]).output)


def test_there_is_no_help_about_what_is_no_command() -> None:
    asked = runner.invoke(vcctl.app, ["help", "job", "burn"])
    assert asked.exit_code == 2
    assert "Error: No such command 'burn'." in asked.output


@pytest.mark.parametrize("command", [[], ["explain"], ["extender"], ["job", "run"]])
def test_help_is_asked_for_by_one_letter_too(command: list[str]) -> None:
    asked = runner.invoke(root.app, [*command, "-h"])
    assert asked.exit_code == 0
    assert asked.output == runner.invoke(root.app, [*command, "--help"]).output


def test_a_switch_takes_no_other_value(stand: Stand) -> None:
    done = stand.run("job", "list", "-A=perhaps")
    assert done.code == 2
    assert done.err.splitlines()[-1] == (
        "Error: Invalid value: -A: 'perhaps' is neither true nor false"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["job", "list", "-o", "xml"],
        ["job", "list", "surplus"],
        ["job", "run", "--min", "many"],
        ["job", "burn"],
        ["queue", "create", "--state", "Ajar"],
        ["job", "view", "--nonsense"],
    ],
)
def test_bad_flags_are_one_line_and_code_2(arguments: list[str], stand: Stand) -> None:
    done = stand.run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert len([line for line in done.err.splitlines() if line.startswith("Error: ")]) == 1


def test_vcctl_says_its_version() -> None:
    done = runner.invoke(vcctl.app, ["version"])
    assert [line.split(": ")[0] for line in done.output.splitlines()] == [
        "API Version",
        "Version",
        "Python Version",
        "OS/Arch",
    ]


@pytest.mark.parametrize(
    ("program", "arguments", "flag"),
    [
        (root.app, ["job", "view", "a"], "--name or -N"),
        (root.app, ["job", "delete", "-N", "a", "b"], "--name or -N"),
        (vcctl.app, ["queue", "create", "a"], "--name or -n"),
        (root.app, ["jobflow", "get", "a"], "--name or -N"),
        (PROGRAMS["vcancel"], ["a"], "--name or -n"),
    ],
)
def test_a_name_behind_the_verb_is_told_its_flag(
    program: typer.Typer, arguments: list[str], flag: str, stand: Stand
) -> None:
    code, why = stand.refusal(*arguments, program=program)
    assert code == 2
    surplus = f"Error: Got unexpected extra argument(s) ({arguments[-1]})"
    assert why.splitlines()[-1] == f"{surplus}; a name is given by {flag}"


@pytest.mark.parametrize(
    "arguments", [["--kubeconfig", "x", "job", "list"], ["job", "-n", "x", "list"]]
)
def test_a_flag_before_its_command_is_told_its_place(arguments: list[str], stand: Stand) -> None:
    code, why = stand.refusal(*arguments, program=vcctl.app)
    assert code == 2
    last = why.splitlines()[-1]
    assert last.startswith("Error: No such option: -")
    assert last.endswith("; flags of a command stand behind its name")


def test_the_shell_completes_commands_and_values() -> None:
    def completed(words: str) -> list[str]:
        done = subprocess.run(
            [COMMAND],
            env={
                **os.environ,
                "_VCCTL_COMPLETE": "complete_bash",
                "COMP_WORDS": words,
                "COMP_CWORD": str(len(words.split(" ")) - 1),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.split()

    assert set(VERBS) <= set(completed("vcctl "))
    assert completed("vcctl job s") == ["suspend"]
    assert completed("vcctl job list -o ya") == ["yaml"]
