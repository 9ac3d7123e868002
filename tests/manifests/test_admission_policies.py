"""The admission policies: bound, of a kind, and of one mind with the code of the webhooks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from app.jobplugins.rules import catalogue
from app.webhooks import job_policies

POLICY = Path(__file__).resolve().parents[2] / "manifests" / "policy"
FILES = (
    "complete-objects.yaml",
    "reserve-annotations.yaml",
    "validate-commands.yaml",
    "validate-jobs.yaml",
    "validate-queues.yaml",
    "validate-submissions.yaml",
    "validate-others.yaml",
    "warn-owners.yaml",
)

Document = dict[str, Any]


def documents() -> list[Document]:
    return [
        document
        for name in FILES
        for document in yaml.safe_load_all((POLICY / name).read_text(encoding="utf-8"))
    ]


POLICIES = {d["metadata"]["name"]: d for d in documents() if "Binding" not in d["kind"]}
BINDINGS = {d["metadata"]["name"]: d for d in documents() if "Binding" in d["kind"]}


def variable(policy: str, name: str) -> Any:
    """The value of a variable that is a literal."""
    expressions = {v["name"]: v["expression"] for v in POLICIES[policy]["spec"]["variables"]}
    return yaml.safe_load(expressions[name])


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_bound_by_its_name(name: str) -> None:
    binding = BINDINGS[name]
    assert binding["kind"] == f"{POLICIES[name]['kind']}Binding"
    assert binding["spec"]["policyName"] == name
    assert name.endswith(".pumice.sh")


def test_no_binding_is_left_over() -> None:
    assert set(BINDINGS) == set(POLICIES)


@pytest.mark.parametrize("name", POLICIES)
def test_what_refuses_fails_closed_and_all_that_does_not_fails_open(
    name: str,
) -> None:
    policy = POLICIES[name]
    opens = policy["kind"] == "MutatingAdmissionPolicy" or "paramKind" in policy["spec"]
    opens |= BINDINGS[name]["spec"].get("validationActions") == ["Warn"]
    assert policy["spec"]["failurePolicy"] == ("Ignore" if opens else "Fail")


@pytest.mark.parametrize("name", POLICIES)
def test_a_refusal_is_forbidden_as_a_webhook_s_is_and_names_everything(name: str) -> None:
    for validation in POLICIES[name]["spec"].get("validations", ()):
        assert validation["reason"] == "Forbidden"
        assert {"message", "messageExpression"} & set(validation)


def test_parameters_that_are_missing_refuse_nothing() -> None:
    for name, policy in POLICIES.items():
        reference = BINDINGS[name]["spec"].get("paramRef")
        assert (reference is not None) == ("paramKind" in policy["spec"])
        assert reference is None or reference["parameterNotFoundAction"] == "Allow"


def test_the_plugins_are_those_there_are() -> None:
    assert variable("validate-jobs.pumice.sh", "knownPlugins") == sorted(catalogue.KNOWN)


def test_plugins_bring_the_same_others() -> None:
    pairs = [[name, needed] for name, others in catalogue.NEEDS.items() for needed in others]
    assert sorted(variable("complete-jobs.pumice.sh", "needs")) == sorted(pairs)


@pytest.mark.parametrize(
    ("name", "words"), [("events", job_policies.EVENTS), ("actions", job_policies.ACTIONS)]
)
def test_events_and_actions_are_those_there_are(name: str, words: tuple[str, ...]) -> None:
    assert variable("validate-jobs.pumice.sh", name) == list(words)
