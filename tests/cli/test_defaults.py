"""The options of processes and their defaults in the help: those that hold."""

import re

import pytest
from typer.testing import CliRunner

from app.cli.root import app
from app.settings.controllers import ControllersSettings
from app.settings.extender import ExtenderSettings
from app.settings.process import ProcessSettings
from app.settings.together import roles_of
from app.settings.webhooks import WebhookSettings

runner = CliRunner()


def told(command: str) -> dict[str, str]:
    """The default that the help tells of each option, where it tells one."""
    text = " ".join(runner.invoke(app, [command, "--help"]).output.split()).replace("- ", "-")
    defaults = {}
    for about in text.partition("Options: ")[2].split(" --"):
        option, _, rest = about.removeprefix("--").partition(" ")
        _, mark, default = rest.partition("(default: ")
        if mark:
            defaults[option.rstrip(",").replace("-", "_")] = default.partition(")")[0]
    return defaults


IN_WORDS = {
    "scheduler_conf": "Volcano's",
    "leader_identity": "the host name",
    "token_audience": "the API server",
    "enabled_admission": "all",
}


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        ("extender", ExtenderSettings),
        ("controllers", ControllersSettings),
        ("webhooks", WebhookSettings),
    ],
)
def test_every_default_is_told(command: str, settings: type[ProcessSettings]) -> None:
    defaults = {name: field.default for name, field in settings.model_fields.items()}
    wanted = {
        name: IN_WORDS.get(name) or (f"{value:g}" if isinstance(value, float) else str(value))
        for name, value in defaults.items()
        if value not in {None, ""} or name in IN_WORDS
    }
    found = told(command)
    for name, value in wanted.items():
        assert found.pop(name).lower() == value.lower(), name
    assert not found


def test_those_of_all_are_those_of_its_parts() -> None:
    roles = roles_of()
    assert roles.webhooks is not None
    found = told("all")
    assert found["port"] == str(roles.extender.port)
    assert found["webhook_port"] == str(roles.webhooks.port)
    assert found["healthz_address"] == roles.controllers.healthz_address
    parts = (roles.extender, roles.controllers, roles.webhooks)
    own, same, other = (f"{part.kube_api_qps:g}" for part in parts)
    assert own == same
    assert found["kube_api_qps"] == f"{own}, the webhooks' {other}"
    own, same, other = (str(part.kube_api_burst) for part in parts)
    assert own == same
    assert found["kube_api_burst"] == f"{own}, the webhooks' {other}"


def test_those_of_the_sandbox_stand_beside_its_variables() -> None:
    help_of_it = " ".join(runner.invoke(app, ["sandbox", "--help"]).output.split())
    for default in ("default: 10;", "default: 16Gi]", "default: true]", "default: embedded]"):
        assert default in help_of_it


@pytest.mark.parametrize(
    ("command", "settings"),
    [
        ("extender", ExtenderSettings),
        ("controllers", ControllersSettings),
        ("webhooks", WebhookSettings),
    ],
)
def test_every_setting_is_an_option_and_says_what_it_does(
    command: str, settings: type[ProcessSettings]
) -> None:
    text = runner.invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    options = set(re.findall(r"^  (?:-\w, )?--([-a-z]+)", text, re.M)) - {"version", "help"}
    assert options == {name.replace("_", "-") for name in settings.model_fields}
    assert all(field.description for field in settings.model_fields.values())
