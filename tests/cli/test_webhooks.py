"""``pumice webhooks`` on the command line: flags over environment over defaults."""

from __future__ import annotations

import inspect
import os
import socket
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from app.cli.processes import settings_of
from app.cli.root import app
from app.cli.webhooks import webhooks
from app.settings.webhooks import WebhookSettings
from app.webhooks.admission import PATHS

runner = CliRunner()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PUMICE_")]:
        monkeypatch.delenv(name)


def complaint(given: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What is said about bad values, exit code 2."""
    with pytest.raises(typer.Exit) as end:
        settings_of(WebhookSettings, given)
    assert end.value.exit_code == 2
    return capsys.readouterr().err.splitlines()


def test_every_setting_is_a_flag_and_every_flag_a_setting() -> None:
    flags = set(inspect.signature(webhooks).parameters) - {"version"}
    assert flags == set(WebhookSettings.model_fields)


def test_every_flag_is_in_the_help() -> None:
    done = runner.invoke(app, ["webhooks", "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    for name in WebhookSettings.model_fields:
        assert f"--{name.replace('_', '-')}" in done.output
    assert "--webhook-url" in done.output


def test_the_defaults() -> None:
    settings = settings_of(WebhookSettings, {})
    assert settings.paths() == PATHS
    assert settings.schedulers() == ("volcano",)
    assert (settings.port, settings.max_queue_depth, settings.failure_policy) == (8443, 5, "Ignore")
    assert settings.enable_root_queue_protection
    assert not settings.enable_queue_allocated_pods_check
    assert not settings.queue_gates()
    assert settings.server_names() == (
        "pumice-webhooks.pumice-system.svc",
        "pumice-webhooks.pumice-system.svc.cluster.local",
        "pumice-webhooks.pumice-system",
    )


def test_a_url_s_host_is_one_of_the_certificate_s_names() -> None:
    settings = settings_of(WebhookSettings, {"public_url": "https://[::1]:8443/"})
    assert settings.public_url == "https://[::1]:8443"
    assert settings.server_names()[0] == "::1"


LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must"
    " start and end with an alphanumeric character"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.',"
    " and must start and end with an alphanumeric character"
)

VALUES: dict[str, tuple[str, object]] = {
    "scheduler_name": ("b,a", "b,a"),
    "bind_address": ("127.0.0.1", "127.0.0.1"),
    "port": ("1", 1),
    "public_url": ("https://h:1", "https://h:1"),
    "webhook_namespace": ("n", "n"),
    "webhook_service_name": ("s", "s"),
    "webhook_service_port": ("8443", 8443),
    "webhook_configuration_name": ("c", "c"),
    "certificate_secret": ("s", "s"),
    "register_webhooks": ("false", False),
    "failure_policy": ("Fail", "Fail"),
    "enabled_admission": ("/jobs/mutate", "/jobs/mutate"),
    "max_queue_depth": ("3", 3),
    "enable_root_queue_protection": ("false", False),
    "enable_queue_allocated_pods_check": ("true", True),
    "loose_volumes": ("true", True),
    "gate_pods": ("true", True),
    "feature_gates": ("A=true", "A=true"),
    "leader_elect": ("false", False),
    "leader_elect_resource_name": ("l", "l"),
    "leader_elect_resource_namespace": ("n", "n"),
    "kube_api_qps": ("7.5", 7.5),
    "kube_api_burst": ("9", 9),
    "log_level": ("debug", "DEBUG"),
    "log_format": ("json", "json"),
}
FILES = ("kubeconfig", "tls_cert_file", "tls_private_key_file", "ca_cert_file", "admission_conf")


def test_every_setting_is_tried() -> None:
    assert set(VALUES) | set(FILES) == set(WebhookSettings.model_fields)


@pytest.mark.parametrize("name", VALUES)
def test_a_variable_is_read_and_a_flag_goes_before_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, value = VALUES[name]
    monkeypatch.setenv(f"PUMICE_{name.upper()}", text)
    assert getattr(settings_of(WebhookSettings, {}), name) == value
    default = WebhookSettings.model_fields[name].default
    assert getattr(settings_of(WebhookSettings, {name: default}), name) == default


def test_files_are_read_from_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "there"
    there.touch()
    for name in FILES:
        monkeypatch.setenv(f"PUMICE_{name.upper()}", str(there))
    settings = settings_of(WebhookSettings, {})
    assert {getattr(settings, name) for name in FILES} == {there}


@pytest.mark.parametrize(
    ("gates", "on"),
    [
        ("SchedulingGatesQueueAdmission=true", True),
        ("Other=true, SchedulingGatesQueueAdmission=True", True),
        ("SchedulingGatesQueueAdmission=false", False),
        ("Other=true", False),
    ],
)
def test_one_of_volcano_s_features_is_known(gates: str, on: bool) -> None:
    assert settings_of(WebhookSettings, {"feature_gates": gates}).queue_gates() is on


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"port": 70000}, "--port: 70000 is greater than 65535"),
        ({"scheduler_name": ","}, "--scheduler-name: there is no name in it"),
        ({"enabled_admission": " "}, "--enabled-admission: there is no name in it"),
        *(
            (
                {"public_url": url},
                f"--public-url: {url!r} is no https URL, such as https://host:port",
            )
            for url in ("http://h", "h:1", " ", "#", "https://#", "https:// ", "https://h:99999")
        ),
        (
            {"public_url": "https://h#"},
            "--public-url: 'https://h#' has a query or a fragment, behind which no path can be put",
        ),
        (
            {"public_url": "https://me@h"},
            "--public-url: 'https://me@h' is no https URL, such as https://host:port",
        ),
        *(
            ({name: ""}, f"--{name.replace('_', '-')}: '' is no name: {rule}")
            for name, rule in (
                ("webhook_service_name", LABEL),
                ("webhook_namespace", LABEL),
                ("webhook_configuration_name", SUBDOMAIN),
                ("certificate_secret", SUBDOMAIN),
                ("leader_elect_resource_name", SUBDOMAIN),
                ("leader_elect_resource_namespace", LABEL),
            )
        ),
        (
            {"webhook_service_name": "A." * 32},
            f"--webhook-service-name: '{'A.' * 32}' is no name: must be no more than 63 characters,"
            f" {LABEL}",
        ),
        ({"admission_conf": "/no"}, "--admission-conf: /no does not exist"),
        ({"max_queue_depth": 0}, "--max-queue-depth: 0 is less than 1"),
        ({"failure_policy": "x"}, "--failure-policy: 'x' is not 'Ignore' or 'Fail'"),
        ({"feature_gates": "A"}, "--feature-gates: 'A' is not Name=true or Name=false"),
        (
            {"tls_cert_file": __file__},
            "--tls-cert-file and --tls-private-key-file go together",
        ),
        ({"ca_cert_file": __file__}, "--ca-cert-file needs --tls-cert-file"),
    ],
    ids=str,
)
def test_a_bad_value_is_told_in_a_line(
    given: dict[str, Any], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaint(given, capsys) == [f"pumice: {line}"]


def test_an_address_in_use_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = ["webhooks", "--bind-address=127.0.0.1", f"--port={port}"]
        done = runner.invoke(app, arguments)
    assert done.exit_code == 2
    assert f"pumice: cannot listen on 127.0.0.1:{port}: " in done.output


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--kubeconfig={file}"], "pumice: {file} is not a kubeconfig"),
        (
            ["--kubeconfig={good}", "--enabled-admission=/x"],
            "pumice: --enabled-admission: no webhook at /x; there are /jobs/mutate, ",
        ),
        (
            ["--kubeconfig={good}", "--admission-conf={file}"],
            "pumice: --admission-conf: the file holds no mapping",
        ),
    ],
    ids=["kubeconfig", "paths", "admission configuration"],
)
def test_what_it_cannot_start_with_is_told(tmp_path: Path, flags: list[str], line: str) -> None:
    file, good = tmp_path / "file", tmp_path / "good"
    file.write_text("nonsense")
    good.write_text(GOOD_KUBECONFIG)
    given = [flag.format(file=file, good=good) for flag in flags]
    done = runner.invoke(app, ["webhooks", "--bind-address=127.0.0.1", "--port=0", *given])
    assert done.exit_code == 2
    assert line.format(file=file) in done.output


GOOD_KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: me, user: {}}]
"""


def test_a_bad_value_of_any_length_is_quoted_in_part() -> None:
    done = runner.invoke(app, ["webhooks", "--feature-gates", "g" * 100_000])
    assert done.exit_code == 2
    assert len(done.output) < 1_100
    assert done.output.startswith("pumice: --feature-gates: 'ggg")
    assert done.output.endswith("ggg' is not Name=true or Name=false\n")
