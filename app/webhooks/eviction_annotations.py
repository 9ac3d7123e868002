"""Annotations about the eviction of pods: values without effect, or for which pods are refused.

A pod has those of its vcjob and those of its template; of the two budgets of a job the first.
"""

import re
from collections.abc import Mapping
from typing import Any

from app.kit.durations import parse_duration
from app.model.booleans import boolean
from app.model.disruption import BUDGETS
from app.model.pod import COOLDOWN_TIME, PREEMPTABLE, REVOCABLE_ZONE
from app.wire.findings import Findings
from app.wire.reading import text

_POSITIVE = re.compile(r"\+?0*[1-9][0-9]*")
_PERCENT = re.compile(r"0*([1-9][0-9]?)%")


def lint_eviction(given: Mapping[str, Any], path: str, findings: Findings) -> None:
    """Warn of values that cannot be read; ``given`` are the annotations at ``path``."""
    for key in (PREEMPTABLE, COOLDOWN_TIME, REVOCABLE_ZONE):
        value = text(given.get(key))
        if key in given and (problem := _problem(key, value)):
            findings.warn(f"{path}[{key}]", f'"{value}" {problem}')


def lint_budgets(
    of_job: Mapping[str, Any], of_template: Mapping[str, Any], path: str, findings: Findings
) -> None:
    """Warn where the pods of a task are refused for a budget; ``path`` is that of the template's.

    What is wrong with the budget of the job itself is told by :func:`lint_budget`.
    """
    inherited = next((key for key in BUDGETS if key in of_job), None)
    for key in BUDGETS:
        if key not in of_template:
            continue
        lint_budget(of_template, key, path, findings)
        if inherited not in (None, key):
            findings.warn(
                f"{path}[{key}]",
                f"the pods of the task are refused, as they have {inherited} of the job too: "
                "a pod may have only one of them",
            )


def lint_budget(given: Mapping[str, Any], key: str, path: str, findings: Findings) -> None:
    """Warn of a budget for which pods are refused."""
    if key in given and (problem := budget_problem(key, text(given[key]))):
        findings.warn(f"{path}[{key}]", f"pods with it are refused: {problem}")


def budget_problem(key: str, value: str) -> str:
    """What is wrong with the value of a disruption budget; empty: nothing."""
    if "%" in value:
        if _PERCENT.fullmatch(value):
            return ""
        return (
            f'invalid value <"{value}"> for {key}, it must be a valid percentage which between '
            "1% ~ 99%"
        )
    if _POSITIVE.fullmatch(value):
        return ""
    return f'invalid value <"{value}"> for {key}, it must be a positive integer'


def _problem(key: str, value: str) -> str:
    if key == PREEMPTABLE:
        return "" if boolean(value) is not None else 'counts as "false": write "true" or "false"'
    if key == REVOCABLE_ZONE:
        return "" if value == "*" else 'has no effect: write "*"'
    try:
        parse_duration(value)
    except ValueError:
        return "has no effect: write how long a pod is not evicted, such as 90s or 1h30m"
    return ""
