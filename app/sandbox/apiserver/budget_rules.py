"""What a PodDisruptionBudget may say."""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.sandbox.apiserver.errors import FieldError, invalid_value, unsupported_value
from app.sandbox.apiserver.labels import selector_errors
from app.wire.documents import Document, section

_PERCENT = re.compile(r"[0-9]+%")
_PERCENT_FORM = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or"
    " '93%', regex used for validation is '[0-9]+%')"
)
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def budget_errors(budget: Document) -> list[FieldError]:
    """The broken rules of ``spec``; an empty list for a valid budget."""
    return list(_errors(section(budget, "spec")))


def _errors(spec: Document) -> Iterator[FieldError]:
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": policy,
        }
        yield invalid_value("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name, amount in (("minAvailable", least), ("maxUnavailable", most)):
        if amount is not None:
            yield from _amount_errors(amount, f"spec.{name}")
    yield from selector_errors(spec.get("selector"), "spec.selector")
    if policy is not None and policy not in _POLICIES:
        yield unsupported_value("spec.unhealthyPodEvictionPolicy", policy, _POLICIES)


def _amount_errors(amount: int | str, path: str) -> Iterator[FieldError]:
    if isinstance(amount, int):
        if amount < 0:
            yield invalid_value(path, amount, "must be greater than or equal to 0")
    elif _PERCENT.fullmatch(amount) is None:
        yield invalid_value(path, amount, _PERCENT_FORM)
    elif int(amount[:-1]) > 100:
        yield invalid_value(path, amount, "must not be greater than 100%")
