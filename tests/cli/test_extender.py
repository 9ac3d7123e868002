"""``pumice extender`` on the command line: flags over environment over defaults."""

import inspect
import os
import socket
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from app.cli.extender import extender
from app.cli.processes import settings_of
from app.cli.root import app
from app.service.limits import PlacementHint
from app.settings.extender import ExtenderSettings

runner = CliRunner()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PUMICE_")]:
        monkeypatch.delenv(name)


def complaint(given: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What is said about bad values, exit code 2."""
    with pytest.raises(typer.Exit) as end:
        settings_of(ExtenderSettings, given)
    assert end.value.exit_code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_every_setting_is_a_flag_and_every_flag_a_setting() -> None:
    flags = set(inspect.signature(extender).parameters) - {"version"}
    assert flags == set(ExtenderSettings.model_fields)


def test_every_flag_is_in_the_help() -> None:
    done = runner.invoke(app, ["extender", "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    for name in ExtenderSettings.model_fields:
        assert f"--{name.replace('_', '-')} " in done.output
    assert "PUMICE_" in done.output


def test_the_defaults_are_those_of_volcano_where_it_has_them() -> None:
    settings = settings_of(ExtenderSettings, {})
    assert settings.schedulers() == ("volcano",)
    assert settings.default_queue == "default"
    assert settings.leader_elect
    assert settings.bind_address == "127.0.0.1"


VALUES: dict[str, tuple[str, object]] = {
    "scheduler_name": ("volcano,batch", "volcano,batch"),
    "default_queue": ("batch", "batch"),
    "namespace": ("pumice", "pumice"),
    "bind_address": ("0.0.0.0", "0.0.0.0"),
    "port": ("1234", 1234),
    "kube_api_qps": ("7.5", 7.5),
    "kube_api_burst": ("9", 9),
    "leader_elect": ("false", False),
    "leader_elect_resource_name": ("a", "a"),
    "leader_elect_resource_namespace": ("b", "b"),
    "leader_identity": ("me", "me"),
    "placement": ("guide", PlacementHint.GUIDE),
    "listen_address": ("127.0.0.1:8", "127.0.0.1:8"),
    "barrier_timeout": ("3", 3.0),
    "barrier_limit": ("9", 9.0),
    "planned_timeout": ("4", 4.0),
    "prebind_timeout": ("8", 8.0),
    "slot_timeout": ("5", 5.0),
    "veto_time": ("0", 0.0),
    "eviction_rate": ("5", 5.0),
    "eviction_patience": ("9", 9.0),
    "protect_above": ("0", 0),
    "urgency": ("0", 0),
    "bind_foreign_pods": ("true", True),
    "anonymous_reads": ("true", True),
    "token_audience": ("pumice", "pumice"),
    "hide_other_namespaces": ("true", True),
    "front": ("false", False),
    "audit_dir": ("kept", Path("kept")),
    "audit_size": ("3", 3),
    "audit_days": ("0.5", 0.5),
    "record_size": ("0", 0),
    "log_level": ("warning", "WARNING"),
    "log_format": ("json", "json"),
}


def test_every_setting_but_the_files_is_tried_below() -> None:
    files = {"kubeconfig", "scheduler_conf", "tls_cert_file", "tls_private_key_file"}
    assert set(VALUES) | files | {"client_ca_file"} == set(ExtenderSettings.model_fields)


@pytest.mark.parametrize("name", VALUES)
def test_a_variable_is_read_and_a_flag_goes_before_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, value = VALUES[name]
    monkeypatch.setenv(f"PUMICE_{name.upper()}", text)
    assert getattr(settings_of(ExtenderSettings, {}), name) == value
    default = ExtenderSettings.model_fields[name].default
    assert getattr(settings_of(ExtenderSettings, {name: default}), name) == default


def test_files_are_read_from_variables_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "there"
    there.touch()
    for name in ("KUBECONFIG", "SCHEDULER_CONF", "TLS_CERT_FILE", "TLS_PRIVATE_KEY_FILE"):
        monkeypatch.setenv(f"PUMICE_{name}", str(there))
    settings = settings_of(ExtenderSettings, {"client_ca_file": there})
    assert settings.kubeconfig == settings.scheduler_conf == settings.client_ca_file == there


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_SCHEDULER_CONF", "")
    monkeypatch.setenv("PUMICE_PORT", "")
    settings = settings_of(ExtenderSettings, {})
    assert settings.scheduler_conf is None
    assert settings.port == 8890


def test_the_protocol_s_times_are_set_by_flags() -> None:
    limits = settings_of(
        ExtenderSettings,
        {"barrier_timeout": 3, "planned_timeout": 4, "slot_timeout": 5, "veto_time": 6},
    ).limits()
    assert (limits.barrier_s, limits.planned_s, limits.slot_s, limits.veto_s) == (3, 4, 5, 6)
    assert (
        settings_of(ExtenderSettings, {"placement": "pin", "protect_above": 1}).limits().hint
        is PlacementHint.PIN
    )


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"port": 70000}, "--port: 70000 is greater than 65535"),
        ({"port": -1}, "--port: -1 is less than 0"),
        ({"scheduler_name": " , "}, "--scheduler-name: there is no name in it"),
        ({"default_queue": ""}, "--default-queue: String should have at least 1 character"),
        ({"kubeconfig": "/no_such_file"}, "--kubeconfig: /no_such_file does not exist"),
        ({"scheduler_conf": "/"}, "--scheduler-conf: / is not a file"),
        ({"client_ca_file": "/no"}, "--client-ca-file: /no does not exist"),
        (
            {"tls_cert_file": __file__},
            "--tls-cert-file and --tls-private-key-file go together",
        ),
        ({"client_ca_file": __file__}, "--client-ca-file needs --tls-cert-file"),
        (
            {"leader_elect_resource_name": "a_b"},
            "--leader-elect-resource-name: 'a_b' is no name: a lowercase RFC 1123 subdomain must "
            "consist of lower case alphanumeric characters, '-' or '.', and must start and end with"
            " an alphanumeric character",
        ),
        ({"kube_api_qps": 0}, "--kube-api-qps: 0 is not greater than 0"),
        ({"barrier_timeout": 0}, "--barrier-timeout: 0 is not greater than 0"),
        (
            {"log_level": "loud"},
            "--log-level: 'LOUD' is not 'DEBUG', 'INFO', 'WARNING' or 'ERROR'",
        ),
        ({"log_format": "xml"}, "--log-format: 'xml' is not 'text' or 'json'"),
    ],
)
def test_a_bad_value_is_one_line(
    given: dict[str, Any], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaint(given, capsys) == [f"pumice: {line}"]


def test_a_blank_variable_is_no_name_of_a_lease(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PUMICE_LEADER_ELECT_RESOURCE_NAMESPACE", " ")
    [line] = complaint({}, capsys)
    assert line.startswith("pumice: --leader-elect-resource-namespace: ' ' is no name: ")


def test_bad_variables_are_a_line_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PUMICE_PORT", "many")
    monkeypatch.setenv("PUMICE_LEADER_ELECT", "perhaps")
    first, second = sorted(complaint({}, capsys))
    assert first.startswith("pumice: --leader-elect: ")
    assert second.startswith("pumice: --port: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "many"],
        ["--leader-elect=perhaps"],
        ["--placement", "sideways"],
        ["--nonsense"],
        ["surplus"],
        ["--port"],
    ],
)
def test_a_bad_flag_is_one_line_and_exit_code_2(arguments: list[str]) -> None:
    done = runner.invoke(app, ["extender", *arguments])
    assert done.exit_code == 2
    assert [line for line in done.output.splitlines() if line.startswith("Error: ")]


def test_a_taken_port_is_one_line_and_exit_code_2() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = runner.invoke(app, ["extender", f"--port={port}"])
    assert done.exit_code == 2
    assert done.output == f"pumice: cannot listen on 127.0.0.1:{port}: Address already in use\n"
