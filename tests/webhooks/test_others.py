"""HyperNodes, JobFlows and CronJobs."""

from __future__ import annotations

from typing import Any

import pytest

from app.kit.patterns import pattern_problem
from app.wire.unstructured import Object
from tests.webhooks.objects import ask, job, task

DELETED = {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"}


def hyper_node(*selectors: Any, tier: int = 1) -> Object:
    members = [{"type": "Node", "selector": selector} for selector in selectors]
    return {"metadata": {"name": "h"}, "spec": {"tier": tier, "members": members}}


@pytest.mark.parametrize(
    "selector",
    [
        {"exactMatch": {"name": "node-1.example"}},
        {"regexMatch": {"pattern": "^node-[0-9]+$"}},
        {"regexMatch": {"pattern": r"(?i)(?P<rack>a)\\1"}},
        {"labelMatch": {"matchLabels": {"a": "b"}}},
    ],
    ids=str,
)
def test_a_member_is_accepted(selector: Object) -> None:
    assert ask("/hypernodes/validate", hyper_node(selector)).allowed
    assert ask("/hypernodes/validate", hyper_node(selector), old=hyper_node()).allowed


AT = "spec.members[0].selector"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (hyper_node(), "spec.members: member must have at least one member;"),
        (
            hyper_node({}),
            f"{AT}: Either ExactMatch or RegexMatch or LabelMatch must be specified;",
        ),
        (
            hyper_node({"exactMatch": {"name": "a"}, "labelMatch": {}}),
            f"{AT}: Only one of ExactMatch, RegexMatch, or LabelMatch can be specified;",
        ),
        (
            hyper_node({"exactMatch": {"name": ""}}),
            f"{AT}.exactMatch.name: member exactMatch name is required;",
        ),
        (
            hyper_node({"exactMatch": {"name": "A_"}}),
            f"{AT}.exactMatch.name: member exactMatch validate failed [a lowercase RFC 1123",
        ),
        (
            hyper_node({"regexMatch": {"pattern": ""}}),
            f"{AT}.regexMatch.pattern: member regexMatch pattern is required;",
        ),
        (
            hyper_node({"regexMatch": {"pattern": "a["}}),
            f"{AT}.regexMatch.pattern: member regexMatch pattern is invalid: error parsing regexp",
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_member_is_refused(given: Object, message: str) -> None:
    for old in (None, hyper_node({"exactMatch": {"name": "a"}})):
        verdict = ask("/hypernodes/validate", given, old=old)
        assert not verdict.allowed
        assert verdict.message.startswith(message)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({}, "labelMatch has no requirement"),
        ({"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}, "Near"),
        ({"matchLabels": {"a": "b"}}, ""),
    ],
)
def test_labels_that_select_nothing_are_warned_of(labels: Object, said: str) -> None:
    verdict = ask("/hypernodes/validate", hyper_node({"labelMatch": labels}))
    assert verdict.allowed
    if not said:
        assert verdict.warnings == ()
        return
    (warning,) = verdict.warnings
    assert warning.startswith(f"{AT}.labelMatch: selects nothing: ")
    assert said in warning


@pytest.mark.parametrize("pattern", ["a(?=b)", "(?!a)", "(?<=a)b", "(?<!a)b", r"(a)\1", "(?>a)"])
def test_what_re2_does_not_know_is_no_pattern(pattern: str) -> None:
    assert "is not supported" in pattern_problem(pattern)


def flow(*edges: tuple[str, list[str]]) -> Object:
    flows = [{"name": name, "dependsOn": {"targets": targets}} for name, targets in edges]
    return {"metadata": {"name": "f", "namespace": "default"}, "spec": {"flows": flows}}


@pytest.mark.parametrize(
    "given",
    [
        flow(),
        flow(("a", [])),
        flow(("a", []), ("b", ["a"]), ("c", ["b"])),
        flow(("a", []), ("b", ["a"]), ("c", ["a"]), ("d", ["b", "c"])),
        flow(("a", []), ("a", []), ("b", ["a"])),
        {"metadata": {"name": "f"}, "spec": {}},
    ],
    ids=["empty", "one", "chain", "diamond", "a name twice", "no flows"],
)
def test_a_flow_is_accepted(given: Object) -> None:
    assert ask("/jobflows/validate", given).allowed


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (flow(("a", ["a"])), "spec.flows: jobflow Flow is not DAG: a cycle holds [a];"),
        (flow(("a", ["b"]), ("b", ["a"])), "jobflow Flow is not DAG: a cycle holds [a b];"),
        (
            flow(("a", []), ("b", ["x"])),
            "spec.flows[1].dependsOn.targets: jobflow Flow is not DAG: vertex is not defined: x;",
        ),
    ],
    ids=["itself", "two", "undefined"],
)
def test_a_flow_is_refused(given: Object, message: str) -> None:
    for old in (None, flow()):
        verdict = ask("/jobflows/validate", given, old=old)
        assert not verdict.allowed
        assert message in verdict.message


@pytest.mark.parametrize("phase", ["Succeed", "Failed", "Terminating"])
def test_flows_are_not_added_to_a_job_flow_that_has_ended(phase: str) -> None:
    old = {**flow(("a", [])), "status": {"state": {"phase": phase}}}
    verdict = ask("/jobflows/validate", flow(("a", []), ("b", ["a"]), ("c", [])), old=old)
    assert verdict.message == (
        f"spec.flows: the JobFlow has ended ({phase}), create another one for flows that are to"
        " run: [b c];"
    )


@pytest.mark.parametrize(
    ("phase", "given"),
    [
        ("Running", flow(("a", []), ("b", ["a"]))),
        ("Pending", flow(("a", []), ("b", ["a"]))),
        ("Succeed", flow(("a", []))),
        ("Succeed", flow()),
    ],
)
def test_a_job_flow_may_change_otherwise(phase: str, given: Object) -> None:
    old = {**flow(("a", [])), "status": {"state": {"phase": phase}}}
    assert ask("/jobflows/validate", given, old=old).allowed


def cron(called: str = "c", **spec: Any) -> Object:
    body = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": job()["spec"]}, **spec}
    return {"metadata": {"name": called, "namespace": "default"}, "spec": body}


@pytest.mark.parametrize(
    "schedule",
    [
        "* * * * *",
        "0 9-17/2 1,15 jan-mar MON-FRI",
        "59 23 31 12 0",
        "@hourly",
        "@every 1h30m",
        "0 0 ? * 6",
    ],
)
def test_a_schedule_is_accepted(schedule: str) -> None:
    assert ask("/cronjobs/validate", cron(schedule=schedule)).message == ""


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Etc/GMT+5"])
def test_a_zone_is_accepted(zone: str) -> None:
    assert ask("/cronjobs/validate", cron(timeZone=zone)).message == ""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (cron(schedule=""), "spec.schedule: schedule is required, but got empty;"),
        (
            cron(schedule="TZ=UTC * * * * *"),
            "spec.schedule: schedule should not contain TZ or CRON_TZ, TZ should only be set in "
            "the timeZone field;",
        ),
        *(
            (
                cron(schedule=schedule),
                f"spec.schedule: schedule is not a valid cron expression: {why};",
            )
            for schedule, why in (
                ("* * * *", "5 fields are expected, 4 found"),
                ("* * * * * *", "5 fields are expected, 6 found"),
                ("60 * * * *", '"60" is not within 0-59'),
                ("0 0 * * 1-7", '"1-7" is not within 0-6'),
                ("0 0 * * 5-2", '"5-2" runs backwards'),
                ("@sometimes", '"@sometimes" is no known schedule'),
                ("@every x", '"x" is no duration'),
                ("@every 99999999h", '"99999999h" is too long'),
                ("a b c d e", '"a" is no number'),
                ("* * L * *", '"L" is no number'),
                ("R * * * *", '"R" is no number'),
                ("5-1-2 * * * *", '"1-2" is no number'),
                (", * * * *", '"," says nothing'),
                ("*/0 * * * *", '"*/0" has a step of 0'),
            )
        ),
        (
            cron(timeZone=""),
            "spec.timeZone: timeZone must be nil or non-empty string, got empty string;",
        ),
        (cron(timeZone="../etc"), "spec.timeZone: unknown timeZone;"),
        (cron(timeZone="-a"), "spec.timeZone: unknown timeZone;"),
        (cron(timeZone="a b"), "spec.timeZone: unknown timeZone;"),
        (
            cron(timeZone="Local"),
            "spec.timeZone: timeZone can't be Local, and must be defined in "
            "https://www.iana.org/time-zones;",
        ),
        (cron(timeZone="Mars/Olympus"), "spec.timeZone: invalid timeZone;"),
        (
            cron("c" * 53),
            "metadata.name: cronJob name must be no more than 52 characters to accommodate job "
            "name suffix;",
        ),
        (cron("A"), 'metadata.name: invalid cronJob name "A": [a lowercase RFC 1123 subdomain'),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_cron_job_is_refused(given: Object, message: str) -> None:
    verdict = ask("/cronjobs/validate", given)
    assert not verdict.allowed
    assert message in verdict.message


def test_a_name_that_is_stored_already_is_not_judged_again() -> None:
    assert ask("/cronjobs/validate", cron("c" * 53), old=cron("c" * 53)).allowed


@pytest.mark.parametrize(("called", "warnings"), [("c" * 47, 0), ("c" * 48, 1)])
def test_a_name_that_is_too_long_for_pods_of_its_jobs_is_warned_of(
    called: str, warnings: int
) -> None:
    body = {"queue": "default", "tasks": [task("work", 1, minAvailable=1)], "minAvailable": 1}
    verdict = ask("/cronjobs/validate", cron(called, jobTemplate={"spec": body}))
    assert verdict.allowed
    assert len(verdict.warnings) == warnings
    assert all("no more than 63 characters" in warning for warning in verdict.warnings)


def test_what_is_wrong_with_its_jobs_is_told_as_warnings() -> None:
    body = job(task("a", 1, minAvailable=2), queue="nowhere")["spec"]
    verdict = ask("/cronjobs/validate", cron(jobTemplate={"spec": body}))
    assert verdict.allowed
    assert [warning.split(": ")[0] for warning in verdict.warnings] == [
        "spec.jobTemplate.spec.tasks[0].minAvailable",
        "spec.jobTemplate.spec.queue",
    ]


@pytest.mark.parametrize(
    ("path", "broken"),
    [
        ("/hypernodes/validate", hyper_node()),
        ("/jobflows/validate", flow(("a", ["a"]))),
        ("/cronjobs/validate", cron(schedule="x")),
    ],
)
def test_what_is_being_deleted_may_lose_its_finalizers(path: str, broken: Object) -> None:
    assert ask(path, {**broken, "metadata": DELETED}, old=broken).allowed


def colocation(**spec: Any) -> Object:
    return {
        "apiVersion": "config.volcano.sh/v1alpha1",
        "kind": "ColocationConfiguration",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "memoryQos": {"lowRatio": 10}, **spec},
    }


def expression(**fields: Any) -> Object:
    return {"matchExpressions": [{"key": "a", **fields}]}


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        ({}, ""),
        ({"selector": {}}, ""),
        ({"selector": expression(operator="In", values=["b"])}, ""),
        ({"selector": expression(operator="Exists")}, ""),
        (
            {"selector": expression(operator="Gt", values=["1"])},
            'spec.selector.matchExpressions[0].operator: "Gt" is not an operator',
        ),
        (
            {"selector": expression(operator="In")},
            "spec.selector.matchExpressions[0].values: an expression with In lacks values",
        ),
        (
            {"selector": expression(operator="Exists", values=["b"])},
            "spec.selector.matchExpressions[0].values: an expression with Exists has values",
        ),
        (
            {"selector": {"matchLabels": {"a": 1}}},
            "spec.selector.matchLabels[...]: Expected `str`, got `int`",
        ),
    ],
    ids=str,
)
def test_the_selector_of_a_colocation_configuration_has_to_be_readable(
    spec: dict[str, Any], refused: str
) -> None:
    verdict = ask("/colocationconfigurations/validate", colocation(**spec))
    assert (verdict.allowed, verdict.warnings) == (not refused, ())
    assert refused in verdict.message


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        ({"selector": None}, "spec.selector: no pod is selected; {} selects all pods"),
        ({"memoryQos": None}, "spec.memoryQos: it says nothing, so nothing changes"),
    ],
    ids=str,
)
def test_a_colocation_configuration_that_changes_nothing_is_warned_of(
    spec: dict[str, Any], warned: str
) -> None:
    verdict = ask("/colocationconfigurations/validate", colocation(**spec))
    assert verdict.allowed
    assert [each[: len(warned)] for each in verdict.warnings] == [warned]
