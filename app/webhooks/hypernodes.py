"""HyperNodes: every member is named in exactly one way that can work (volcano.md §6.6).

Patterns are RE2 in Volcano, which knows neither look-around nor back references; what Python
compiles and RE2 does not is refused too.
"""

from collections.abc import Mapping
from typing import Any

from app.kit.patterns import pattern_problem
from app.model.names import subdomain_problems
from app.webhooks.world import Request, World
from app.wire.findings import Findings, at, listed
from app.wire.objects.hyper_nodes import members_of
from app.wire.reading import mapping, mappings, text
from app.wire.unstructured import is_deleting

SELECTORS = ("exactMatch", "regexMatch", "labelMatch")


def check_hyper_node(request: Request, _world: World) -> Findings:
    """What is wrong with the members."""
    findings = Findings()
    if is_deleting(request.item):
        return findings
    members = mappings(mapping(request.item.get("spec")).get("members"))
    if not members:
        findings.refuse("spec.members", "member must have at least one member")
    for index, member in enumerate(members):
        selector = mapping(member.get("selector"))
        _check_selector(selector, at("spec.members", index, "selector"), findings)
    return findings


def _check_selector(selector: Mapping[str, Any], path: str, findings: Findings) -> None:
    given = [key for key in SELECTORS if isinstance(selector.get(key), dict)]
    if not given:
        findings.refuse(path, "Either ExactMatch or RegexMatch or LabelMatch must be specified")
    if len(given) > 1:
        findings.refuse(path, "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified")
    if "exactMatch" in given:
        _check_name(text(selector["exactMatch"].get("name")), at(path, "exactMatch.name"), findings)
    if "regexMatch" in given:
        pattern = text(selector["regexMatch"].get("pattern"))
        _check_pattern(pattern, at(path, "regexMatch.pattern"), findings)
    if "labelMatch" in given:
        _lint_labels(selector, at(path, "labelMatch"), findings)


def _lint_labels(selector: Mapping[str, Any], path: str, findings: Findings) -> None:
    """Volcano takes any; one that cannot be read selects nothing, and its HyperNode says so."""
    for member in members_of({"members": [{"type": "Node", "selector": selector}]}):
        if member.problem:
            findings.warn(path, f"selects nothing: {member.problem}")


def _check_name(name: str, path: str, findings: Findings) -> None:
    if not name:
        findings.refuse(path, "member exactMatch name is required")
        return
    problems = subdomain_problems(name)
    if problems:
        findings.refuse(path, f"member exactMatch validate failed {listed(problems)}")


def _check_pattern(pattern: str, path: str, findings: Findings) -> None:
    if not pattern:
        findings.refuse(path, "member regexMatch pattern is required")
        return
    problem = pattern_problem(pattern)
    if problem:
        findings.refuse(path, f"member regexMatch pattern is invalid: {problem}")
