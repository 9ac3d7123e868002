"""Where a pod may go: the rules of what schedulers read in it.

Selectors, affinity, spread constraints, tolerations, gates and overhead. A scheduler may rely on
them: a key or an operator that it looks for is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from app.sandbox.apiserver.errors import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    no_quantity,
    required,
    unsupported_value,
)
from app.sandbox.apiserver.labels import (
    label_errors,
    label_name_errors,
    label_value_errors,
    no_operator,
    selector_errors,
    values_errors,
)
from app.sandbox.apiserver.names import label_problem, subdomain_problem
from app.sandbox.quantities import parse_milli
from app.wire.documents import Document, items, section

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_WHEN: Final = ("DoNotSchedule", "ScheduleAnyway")


def placement_errors(spec: Document, path: str = "spec") -> list[FieldError]:
    """Broken rules of a pod's spec, in the order in which the stock server looks."""
    affinity = section(spec, "affinity")
    return [
        *label_errors(section(spec, "nodeSelector"), f"{path}.nodeSelector"),
        *_node_affinity_errors(section(affinity, "nodeAffinity"), f"{path}.affinity.nodeAffinity"),
        *(
            error
            for kind in ("podAffinity", "podAntiAffinity")
            for error in _pod_affinity_errors(section(affinity, kind), f"{path}.affinity.{kind}")
        ),
        *_gate_errors(items(spec, "schedulingGates"), f"{path}.schedulingGates"),
        *_spread_errors(
            items(spec, "topologySpreadConstraints"), f"{path}.topologySpreadConstraints"
        ),
        *_toleration_errors(items(spec, "tolerations"), f"{path}.tolerations"),
        *_overhead_errors(section(spec, "overhead"), f"{path}.overhead"),
    ]


# Nodes


def _node_affinity_errors(affinity: Document, path: str) -> Iterator[FieldError]:
    if affinity.get(_REQUIRED) is not None:
        here = f"{path}.{_REQUIRED}.nodeSelectorTerms"
        terms = items(affinity, _REQUIRED, "nodeSelectorTerms")
        if not terms:
            yield required(here, "must have at least one node selector term")
        for index, term in enumerate(terms):
            yield from _term_errors(term, f"{here}[{index}]", checks_values=True)
    for index, preferred in enumerate(items(affinity, _PREFERRED)):
        here = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_errors(preferred, here)
        preference = section(preferred, "preference")
        yield from _term_errors(preference, f"{here}.preference", checks_values=False)


def _weight_errors(preferred: Document, path: str) -> Iterator[FieldError]:
    weight = preferred.get("weight") or 0
    if not 1 <= weight <= 100:
        yield invalid_value(f"{path}.weight", weight, "must be in the range 1-100")


def _term_errors(term: Document, path: str, *, checks_values: bool) -> Iterator[FieldError]:
    for index, one in enumerate(items(term, "matchExpressions")):
        here = f"{path}.matchExpressions[{index}]"
        yield from _expression_errors(one, here)
        for position, value in enumerate(items(one, "values") if checks_values else ()):
            yield from label_value_errors(value, f"{here}.values[{position}]")
    for index, one in enumerate(items(term, "matchFields")):
        yield from _field_errors(one, f"{path}.matchFields[{index}]")


def _expression_errors(expression: Document, path: str) -> Iterator[FieldError]:
    operator, values = expression.get("operator") or "", items(expression, "values")
    if operator in {"In", "NotIn", "Exists", "DoesNotExist"}:
        yield from values_errors(operator, values, path)
    elif operator not in {"Gt", "Lt"}:
        yield no_operator(operator, path)
    elif len(values) != 1:
        text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        yield required(f"{path}.values", text)
    yield from label_name_errors(expression.get("key") or "", f"{path}.key")


def _field_errors(expression: Document, path: str) -> Iterator[FieldError]:
    operator, values = expression.get("operator") or "", items(expression, "values")
    if operator not in {"In", "NotIn"}:
        yield no_operator(operator, path)
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", text)
    key = expression.get("key") or ""
    if key != "metadata.name":
        yield invalid_value(f"{path}.key", key, "not a valid field selector key")
        return
    for index, name in enumerate(values):
        if problem := subdomain_problem(name):
            yield invalid_value(f"{path}.values[{index}]", name, problem)


# Other pods


def _pod_affinity_errors(affinity: Document, path: str) -> Iterator[FieldError]:
    for index, term in enumerate(items(affinity, _REQUIRED)):
        yield from _pod_term_errors(term, f"{path}.{_REQUIRED}[{index}]")
    for index, preferred in enumerate(items(affinity, _PREFERRED)):
        here = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_errors(preferred, here)
        term = section(preferred, "podAffinityTerm")
        yield from _pod_term_errors(term, f"{here}.podAffinityTerm")


def _pod_term_errors(term: Document, path: str) -> Iterator[FieldError]:
    for name in ("labelSelector", "namespaceSelector"):
        yield from selector_errors(term.get(name), f"{path}.{name}")
    for namespace in items(term, "namespaces"):
        if problem := label_problem(namespace):
            yield invalid_value(f"{path}.namespace", namespace, problem)
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        yield from _keys_errors(term, field, path)
    key = term.get("topologyKey") or ""
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from label_name_errors(key, f"{path}.topologyKey")


def _keys_errors(owner: Document, field: str, path: str) -> Iterator[FieldError]:
    """Keys whose values the pod itself gives need a selector to be added to."""
    if owner.get(field) and owner.get("labelSelector") is None:
        text = "must not be specified when labelSelector is not set"
        yield forbidden_field(f"{path}.{field}", text)


def _spread_errors(constraints: Sequence[Document], path: str) -> Iterator[FieldError]:
    for index, one in enumerate(constraints):
        here = f"{path}[{index}]"
        yield from _positive_errors(one.get("maxSkew") or 0, f"{here}.maxSkew")
        if not one.get("topologyKey"):
            yield required(f"{here}.topologyKey", "can not be empty")
        when = one.get("whenUnsatisfiable") or ""
        if when not in _WHEN:
            yield unsupported_value(f"{here}.whenUnsatisfiable", when, _WHEN)
        if _kind_of(one) in map(_kind_of, constraints[index + 1 :]):
            names = "{topologyKey, whenUnsatisfiable}"
            yield duplicate(f"{here}.{names}", f"{{{', '.join(_kind_of(one))}}}")
        yield from _domain_errors(one, when, here)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if one.get(policy) not in {None, "Honor", "Ignore"}:
                yield unsupported_value(f"{here}.{policy}", one[policy], ("Honor", "Ignore"))
        yield from _keys_errors(one, "matchLabelKeys", here)
        yield from selector_errors(one.get("labelSelector"), f"{here}.labelSelector")


def _kind_of(constraint: Document) -> tuple[str, str]:
    return constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""


def _positive_errors(value: int, path: str) -> Iterator[FieldError]:
    if value <= 0:
        yield invalid_value(path, value, "must be greater than zero")


def _domain_errors(constraint: Document, when: str, path: str) -> Iterator[FieldError]:
    least = constraint.get("minDomains")
    if least is None:
        return
    yield from _positive_errors(least, f"{path}.minDomains")
    if when != "DoNotSchedule":
        text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}"
        yield invalid_value(f"{path}.minDomains", least, text)


# Gates, taints and overhead


def _toleration_errors(tolerations: Sequence[Document], path: str) -> Iterator[FieldError]:
    for index, one in enumerate(tolerations):
        here = f"{path}[{index}]"
        key, operator = one.get("key") or "", one.get("operator") or ""
        effect = one.get("effect") or ""
        if key:
            yield from label_name_errors(key, f"{here}.key")
        elif operator != "Exists":
            text = (
                "operator must be Exists when `key` is empty, which means"
                ' "match all values and all keys"'
            )
            yield invalid_value(f"{here}.operator", operator, text)
        if one.get("tolerationSeconds") is not None and effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid_value(f"{here}.effect", effect, text)
        yield from _tolerated_value_errors(operator, one.get("value") or "", f"{here}.operator")
        if effect and effect not in _EFFECTS:
            yield unsupported_value(f"{here}.effect", effect, _EFFECTS)


def _tolerated_value_errors(operator: str, value: str, path: str) -> Iterator[FieldError]:
    match operator:
        case "" | "Equal":
            yield from label_value_errors(value, path)
        case "Exists":
            if value:
                yield invalid_value(path, value, "value must be empty when `operator` is 'Exists'")
        case _:
            yield unsupported_value(path, operator, ("Equal", "Exists"))


def _gate_errors(gates: Sequence[Document], path: str) -> Iterator[FieldError]:
    names = [gate.get("name") or "" for gate in gates]
    for index, name in enumerate(names):
        here = f"{path}[{index}]"
        yield from label_name_errors(name, here)
        if name in names[:index]:
            yield duplicate(here, name)


def _overhead_errors(overhead: Document, path: str) -> Iterator[FieldError]:
    for name, value in overhead.items():
        yield from amount_errors(value, f"{path}.limits[{name}]")


def amount_errors(value: object, path: str) -> Iterator[FieldError]:
    """Of an amount that is negative; raises `ApiError` when it is no quantity at all."""
    try:
        amount = parse_milli(value)
    except ValueError:
        raise no_quantity("Pod") from None
    if amount < 0:
        yield invalid_value(path, str(value), "must be greater than or equal to 0")
