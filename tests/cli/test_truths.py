"""Switches, which every command reads alike, in flags and in variables."""

import pytest
import yaml
from typer.testing import CliRunner

from app.cli.root import app
from app.cli.truths import TRUTHS
from app.settings.controllers import ControllersSettings

runner = CliRunner()

WORDS = [*TRUTHS, *(word.capitalize() for word in TRUTHS), "FALSE", "TRUE"]
NO_WORDS = ["perhaps", "2", "enabled"]


def elects(arguments: list[str], env: dict[str, str]) -> bool | str:
    """Whether kube-scheduler is to elect a leader, or what is said against it."""
    given = ["scheduler-config", "--extender-url=http://h", *arguments]
    done = runner.invoke(app, given, env=env)
    if done.exit_code:
        return done.output.splitlines()[-1]
    found: bool = yaml.safe_load(done.output)["leaderElection"]["leaderElect"]
    return found


def sandbox_says(arguments: list[str], env: dict[str, str]) -> str:
    """What ends it: that form b takes the real control plane, if not what is looked at before."""
    return runner.invoke(app, ["sandbox", "--form=b", *arguments], env=env).output


@pytest.mark.parametrize("word", WORDS)
def test_a_word_means_the_same_in_every_variable(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    means = TRUTHS[word.lower()]
    monkeypatch.setenv("PUMICE_LEADER_ELECT", word)
    assert ControllersSettings().leader_elect is means
    assert elects([], {"PUMICE_LEADER_ELECT": word}) is means
    assert sandbox_says([], {"PUMICE_WEBHOOKS": word}).endswith("needs --control-plane real\n")


@pytest.mark.parametrize("word", WORDS)
def test_and_in_every_flag(word: str) -> None:
    assert elects([f"--leader-elect={word}"], {}) is TRUTHS[word.lower()]
    assert sandbox_says([f"--webhooks={word}"], {}).endswith("needs --control-plane real\n")


def test_the_switch_of_the_sandbox_may_stand_alone() -> None:
    assert sandbox_says(["--webhooks"], {}).endswith("needs --control-plane real\n")


@pytest.mark.parametrize("word", NO_WORDS)
def test_any_other_word_is_refused_by_name(word: str) -> None:
    complaint = f"{word!r} is neither true nor false"
    for said in (
        elects([f"--leader-elect={word}"], {}),
        elects([], {"PUMICE_LEADER_ELECT": word}),
    ):
        assert said == (
            "Error: Invalid value for '--leader-elect' (env var: 'PUMICE_LEADER_ELECT'): "
            + complaint
        )
    assert complaint in sandbox_says([f"--webhooks={word}"], {})
    assert complaint in sandbox_says([], {"PUMICE_WEBHOOKS": word})
