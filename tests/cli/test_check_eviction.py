"""``pumice check-eviction``: what it accepts, what it rejects, and what it cannot read."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app.cli import certificates
from app.cli.root import app
from tests.core.victims.decisions import Case, Runner, decided

CHECKER = Path(certificates.__file__)
runner = CliRunner()


@pytest.fixture
def certificate() -> dict[str, Any]:
    """Of a pod of two cores that evicts two of one."""
    found = decided(Case((4,), (Runner("low", (0, 0, 0, 0)),), wanted=(2,)))
    assert found is not None
    return found.certificate


def run(*arguments: str, stdin: str | None = None) -> Result:
    return runner.invoke(app, ["check-eviction", *arguments], input=stdin)


def written(path: Path, value: object) -> str:
    path.write_text(json.dumps(value))
    return str(path)


def test_a_good_certificate_is_accepted(certificate: dict[str, Any], tmp_path: Path) -> None:
    file = written(tmp_path / "good.json", certificate)
    done = run(file)
    assert done.exit_code == 0
    assert done.stdout == (
        f"{file}: accepted: preempt evicts 2 pods for default/new; needed: 2 by a bound\n"
    )


def test_it_may_come_from_standard_input(certificate: dict[str, Any]) -> None:
    done = run("-", stdin=json.dumps(certificate))
    assert done.exit_code == 0
    assert done.stdout.startswith("-: accepted: ")


def test_each_violation_is_a_line_with_the_numbers(
    certificate: dict[str, Any], tmp_path: Path
) -> None:
    certificate["gangs"]["default/low"]["priority"] = 10
    file = written(tmp_path / "bad.json", certificate)
    done = run(file)
    assert done.exit_code == 1
    text = "priority 10 is not lower than 10 of the preemptor"
    assert done.stdout.splitlines() == [
        f"{file}: rejected: pods[default/low-0] {text}",
        f"{file}: rejected: pods[default/low-1] {text}",
        f"{file}: rejected: cost is gangs 0, lostWork 500000000, pods 2, priority 10, "
        "not gangs 0, lostWork 500000000, pods 2, priority 0",
    ]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "not JSON: "),
        ("{", "not JSON: "),
        ("[" * 100_000, "not JSON: "),
        ("[]", "no certificate: "),
        ("{}", "no certificate: KeyError: 'format'"),
        ('{"format": "x", "version": 1}', "no certificate: its format is not "),
        ('{"format": "pumice.sh/eviction", "version": 1, "units": []}', "no certificate: "),
    ],
)
def test_what_is_no_certificate_is_code_2(content: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(content)
    done = run(str(file))
    assert done.exit_code == 2
    assert done.stderr.startswith(f"{file}: {why}")
    assert done.stdout == ""


def test_a_number_that_is_none_is_code_2(certificate: dict[str, Any], tmp_path: Path) -> None:
    certificate["nodes"]["n0"]["used"]["cpu"] = "4"
    assert run(written(tmp_path / "odd.json", certificate)).exit_code == 2


def test_of_several_files_each_is_told_and_the_worst_counts(
    certificate: dict[str, Any], tmp_path: Path
) -> None:
    good = written(tmp_path / "good.json", certificate)
    bad = written(tmp_path / "bad.json", certificate | {"victims": []})
    missing = str(tmp_path / "missing.json")
    done = run(good, bad, missing)
    assert done.exit_code == 2
    assert [line.split(": ")[1] for line in done.stdout.splitlines()] == [
        "accepted",
        "rejected",
        "rejected",
    ]
    assert done.stderr == f"{missing}: No such file or directory\n"
    assert run(good, bad).exit_code == 1


def test_programs_get_the_same_as_json(certificate: dict[str, Any], tmp_path: Path) -> None:
    file = written(tmp_path / "bad.json", certificate | {"cost": {}})
    [verdict] = json.loads(run(file, "-o", "json").stdout)
    assert (verdict["file"], verdict["accepted"], verdict["victims"]) == (file, False, 2)
    assert verdict["witnesses"] == {"bound": 2}
    assert [each["where"] for each in verdict["violations"]] == ["cost"]


def test_the_checker_is_small_and_needs_nothing_but_python() -> None:
    text = CHECKER.read_text()
    assert len(text.splitlines()) < 300
    imported = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    modules = {str(node.module).partition(".")[0] for node in imported}
    assert modules <= sys.stdlib_module_names
    assert not any(isinstance(node, ast.Import) for node in ast.walk(ast.parse(text)))
