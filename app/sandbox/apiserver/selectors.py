"""Label and field selectors: text of a query -> a predicate over documents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from app.sandbox.apiserver import errors
from app.wire.documents import Document, items, labels_of, section

Predicate: TypeAlias = Callable[[Document], bool]
LabelTest: TypeAlias = Callable[[Mapping[str, str]], bool]

_SET_BASED = re.compile(r"(?P<key>[^\s!=,()]+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)")
_EQUALITY = re.compile(r"(?P<key>[^\s!=,()]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^\s,()]*)")
_EXISTS = re.compile(r"(?P<not>!?)\s*(?P<key>[^\s!=,()]+)")

_COMMON_FIELDS = frozenset({"metadata.name", "metadata.namespace"})
_FIELDS: dict[str, frozenset[str]] = {
    "pods": frozenset(
        {
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        }
    ),
    "nodes": frozenset({"spec.unschedulable"}),
    "namespaces": frozenset({"status.phase"}),
    "secrets": frozenset({"type"}),
    "jobs": frozenset({"status.successful"}),
    "events": frozenset(
        {
            *(
                f"{subject}.{field}"
                for subject in ("involvedObject", "regarding")
                for field in (
                    "kind",
                    "namespace",
                    "name",
                    "uid",
                    "apiVersion",
                    "resourceVersion",
                    "fieldPath",
                )
            ),
            "reason",
            "reportingComponent",
            "reportingController",
            "source",
            "type",
        }
    ),
}


def _terms(selector: str) -> Iterator[str]:
    """The requirements of a selector: commas inside parentheses do not part them."""
    depth, start = 0, 0
    for index, letter in enumerate(selector):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            yield selector[start:index].strip()
            start = index + 1
    yield selector[start:].strip()


def _label_test(term: str) -> LabelTest:
    if found := _SET_BASED.fullmatch(term):
        key, wanted = found["key"], {one.strip() for one in found["values"].split(",")}
        if found["op"] == "in":
            return lambda labels: labels.get(key) in wanted
        return lambda labels: labels.get(key) not in wanted
    if found := _EQUALITY.fullmatch(term):
        key, value = found["key"], found["value"]
        if found["op"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTS.fullmatch(term):
        key, absent = found["key"], bool(found["not"])
        return lambda labels: (key in labels) is not absent
    raise errors.bad_request(
        f'unable to parse requirement: found "{term}", expected: identifier or operator'
    )


def by_labels(selector: str) -> Predicate:
    """``app=a,tier in (x,y),!old`` as a predicate."""
    tests = [_label_test(term) for term in _terms(selector) if term]
    return lambda document: all(test(labels_of(document)) for test in tests)


def _requirement_holds(requirement: Document, labels: Mapping[str, str]) -> bool:
    key, operator = requirement["key"], requirement["operator"]
    values = requirement.get("values") or []
    match operator:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def label_selector_matches(selector: Document | None, labels: Mapping[str, str]) -> bool:
    """``metav1.LabelSelector``: null selects nothing, empty selects everything."""
    if selector is None:
        return False
    wanted = section(selector, "matchLabels")
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _requirement_holds(one, labels) for one in items(selector, "matchExpressions")
    )


def _field_value(document: Document, path: str) -> str:
    if path == "source":
        path = "source.component"
    here: object = document
    for step in path.split("."):
        here = here.get(step) if isinstance(here, dict) else None
    if here is None:
        return "false" if path in {"spec.unschedulable", "spec.hostNetwork"} else ""
    if isinstance(here, bool):
        return str(here).lower()
    return str(here)


def by_fields(selector: str, *, plural: str) -> Predicate:
    """``spec.nodeName=n1,status.phase!=Running`` as a predicate."""
    allowed = _FIELDS.get(plural, frozenset()) | _COMMON_FIELDS
    wanted: list[tuple[str, str, bool]] = []
    for term in filter(None, _terms(selector)):
        found = re.fullmatch(r"(?P<key>[^!=]+)(?P<op>==|=|!=)(?P<value>.*)", term)
        if found is None:
            raise errors.bad_request(f'invalid selector: "{term}"; can\'t understand "{term}"')
        if found["key"] not in allowed:
            raise errors.bad_request(f"field label not supported: {found['key']}")
        wanted.append((found["key"], found["value"], found["op"] != "!="))
    return lambda document: all(
        (_field_value(document, key) == value) is equal for key, value, equal in wanted
    )
