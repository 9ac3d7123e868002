"""``pumice all`` on the command line: one set of flags for three parts."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from app.cli.processes import settings_of
from app.cli.root import app
from app.cli.together import together
from app.settings.together import roles_of

runner = CliRunner()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PUMICE_")]:
        monkeypatch.delenv(name)


def test_every_flag_is_in_the_help() -> None:
    done = runner.invoke(app, ["all", "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    for name in inspect.signature(together).parameters:
        assert f"--{name.replace('_', '-')}" in done.output


def test_the_parts_share_what_is_said_once(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.touch()
    roles = settings_of(
        roles_of, {"kubeconfig": config, "scheduler_name": "batch", "leader_elect": "false"}
    )
    assert roles.webhooks is not None
    for settings in (roles.extender, roles.controllers, roles.webhooks):
        assert settings.kubeconfig == config
        assert settings.schedulers() == ("batch",)
        assert not settings.leader_elect


def test_each_part_has_its_own_port_and_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_PORT", "1")
    monkeypatch.setenv("PUMICE_LISTEN_ADDRESS", "127.0.0.1:2")
    monkeypatch.setenv("PUMICE_WEBHOOK_PORT", "3")
    monkeypatch.setenv("PUMICE_LEADER_ELECT_RESOURCE_NAME", "one-for-all")
    roles = settings_of(roles_of, {"webhook_bind_address": "127.0.0.1"})
    assert roles.webhooks is not None
    assert (roles.extender.port, roles.extender.listen_address) == (1, "127.0.0.1:2")
    assert roles.controllers.listen_address == ""
    assert (roles.webhooks.bind_address, roles.webhooks.port) == ("127.0.0.1", 3)
    leases = [
        part.leader_elect_resource_name
        for part in (roles.extender, roles.controllers, roles.webhooks)
    ]
    assert leases == ["pumice-scheduler", "pumice-controllers", "pumice-webhooks"]


def test_certificates_are_the_webhooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = tmp_path / "there"
    there.touch()
    monkeypatch.setenv("PUMICE_TLS_CERT_FILE", str(there))
    monkeypatch.setenv("PUMICE_TLS_PRIVATE_KEY_FILE", str(there))
    roles = settings_of(roles_of, {})
    assert roles.webhooks is not None
    assert roles.webhooks.tls_cert_file == there
    assert roles.extender.tls_cert_file is None


def test_webhooks_can_be_left_out() -> None:
    assert settings_of(roles_of, {"webhooks": "false"}).webhooks is None


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("webhook_port", 70000, "pumice: --webhook-port: "),
        ("kubeconfig", Path("/nowhere"), "pumice: --kubeconfig: /nowhere does not exist"),
        ("healthz_address", "x", "pumice: --healthz-address: 'x' is no address:port"),
        ("public_url", "http://x", "pumice: --public-url: 'http://x' is no https URL"),
    ],
)
def test_a_bad_value_of_any_part_ends_the_command(
    name: str, value: object, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as end:
        settings_of(roles_of, {name: value})
    assert end.value.exit_code == 2
    assert capsys.readouterr().err.startswith(said)
