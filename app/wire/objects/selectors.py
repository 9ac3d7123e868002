"""Label selectors and node selector terms."""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from app.model.shape import LabelSelector, NodeTerm, Operator, Requirement
from app.wire.errors import DecodeError, joined

_OPERATORS: Final[Mapping[str, Operator]] = {operator.value: operator for operator in Operator}
_LABEL_OPERATORS: Final[Mapping[str, Operator]] = {
    name: operator
    for name, operator in _OPERATORS.items()
    if operator not in (Operator.GREATER, Operator.LESS)
}


class RequirementJson(Struct, gc=False):
    """``{key, operator, values}``."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelectorJson(Struct, rename="camel", gc=False):
    """A ``metav1.LabelSelector``."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[RequirementJson] | None = None


class NodeTermJson(Struct, rename="camel", gc=False):
    """A ``NodeSelectorTerm``."""

    match_expressions: list[RequirementJson] | None = None
    match_fields: list[RequirementJson] | None = None


class NodeSelectorJson(Struct, rename="camel", gc=False):
    """A ``NodeSelector``: terms of which one must hold."""

    node_selector_terms: list[NodeTermJson | None] | None = None


def label_selector(
    json: LabelSelectorJson | None, at: str, *, also: Iterable[Requirement] = ()
) -> LabelSelector | None:
    """The selector and the requirements ``also`` asked for; None selects nothing."""
    if json is None:
        return None
    requirements = [
        Requirement(key, Operator.IN, (value,))
        for key, value in sorted((json.match_labels or {}).items())
    ]
    requirements += _requirements(
        json.match_expressions, joined(at, "matchExpressions"), known=_LABEL_OPERATORS
    )
    return LabelSelector(tuple(dict.fromkeys((*requirements, *also))))


def node_term(json: NodeTermJson | None, at: str) -> NodeTerm:
    """One term; null is an empty one."""
    if json is None:
        return NodeTerm()
    return NodeTerm(
        expressions=_requirements(
            json.match_expressions, joined(at, "matchExpressions"), known=_OPERATORS
        ),
        fields=_requirements(json.match_fields, joined(at, "matchFields"), known=_OPERATORS),
    )


def node_terms(json: NodeSelectorJson | None, at: str) -> tuple[NodeTerm, ...] | None:
    """The terms that stood at ``at``, in the field ``nodeSelectorTerms``; None: no selector."""
    if json is None:
        return None
    return tuple(
        node_term(entry, joined(at, f"nodeSelectorTerms[{i}]"))
        for i, entry in enumerate(json.node_selector_terms or ())
    )


def _requirements(
    entries: list[RequirementJson] | None, at: str, *, known: Mapping[str, Operator]
) -> tuple[Requirement, ...]:
    found = []
    for i, entry in enumerate(entries or ()):
        operator = known.get(entry.operator)
        if operator is None:
            raise DecodeError(f"{at}[{i}].operator", f'"{entry.operator}" is not an operator')
        found.append(Requirement(entry.key, operator, tuple(entry.values or ())))
    return tuple(found)
