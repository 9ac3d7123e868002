"""What labels may look like, and selectors of them: rules of the stock API server."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.sandbox.apiserver.errors import FieldError, forbidden_field, invalid_value, required
from app.sandbox.apiserver.names import subdomain_problem
from app.wire.documents import Document, items, section

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LONGEST = 63
_NAME_FORM = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an"
    " alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for"
    " validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_KEY_FORM = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used"
    " for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain"
    " prefix and '/' (e.g. 'example.com/MyName')"
)
_VALUE_FORM = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or"
    " '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def label_name_errors(name: str, path: str) -> Iterator[FieldError]:
    """A name with an optional domain before it: ``tier``, ``example.com/tier``."""
    prefix, slash, local = name.rpartition("/")
    if "/" in prefix:
        yield invalid_value(path, name, _KEY_FORM)
        return
    if slash and not prefix:
        yield invalid_value(path, name, "prefix part must be non-empty")
    elif slash and (problem := subdomain_problem(prefix)):
        yield invalid_value(path, name, f"prefix part {problem}")
    if not local:
        yield invalid_value(path, name, "name part must be non-empty")
    if len(local) > _LONGEST:
        yield invalid_value(path, name, f"name part must be no more than {_LONGEST} bytes")
    if _NAME.fullmatch(local) is None:
        yield invalid_value(path, name, f"name part {_NAME_FORM}")


def label_value_errors(value: str, path: str) -> Iterator[FieldError]:
    """The broken rules of one label's value; an empty value is valid."""
    if len(value) > _LONGEST:
        yield invalid_value(path, value, f"must be no more than {_LONGEST} bytes")
    if value and _NAME.fullmatch(value) is None:
        yield invalid_value(path, value, _VALUE_FORM)


def label_errors(labels: Document, path: str) -> Iterator[FieldError]:
    """The names and values of a map."""
    for name, value in labels.items():
        yield from label_name_errors(name, path)
        yield from label_value_errors(value, path)


def selector_errors(selector: Document | None, path: str) -> Iterator[FieldError]:
    """A ``metav1.LabelSelector``; none at all is a good one."""
    if selector is None:
        return
    yield from label_errors(section(selector, "matchLabels"), f"{path}.matchLabels")
    for index, one in enumerate(items(selector, "matchExpressions")):
        yield from _requirement_errors(one, f"{path}.matchExpressions[{index}]")


def _requirement_errors(requirement: Document, path: str) -> Iterator[FieldError]:
    operator, values = requirement.get("operator") or "", items(requirement, "values")
    if operator in {"In", "NotIn", "Exists", "DoesNotExist"}:
        yield from values_errors(operator, values, path)
    else:
        yield no_operator(operator, path)
    yield from label_name_errors(requirement.get("key") or "", f"{path}.key")
    for index, value in enumerate(values):
        yield from label_value_errors(value, f"{path}.values[{index}]")


def no_operator(operator: str, path: str) -> FieldError:
    """The error of an ``operator`` that no requirement at ``path`` may have."""
    return invalid_value(f"{path}.operator", operator, "not a valid selector operator")


def values_errors(operator: str, values: list[str], path: str) -> Iterator[FieldError]:
    """Whether there are values where there must be, and none where there must not."""
    if operator in {"In", "NotIn"} and not values:
        yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    if operator in {"Exists", "DoesNotExist"} and values:
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield forbidden_field(f"{path}.values", text)
