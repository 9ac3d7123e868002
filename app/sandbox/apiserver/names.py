"""Which names objects may have."""

from __future__ import annotations

import re

from app.sandbox.apiserver.errors import FieldError, invalid_value
from app.sandbox.apiserver.registry import ResourceKind

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_KINDS = frozenset({"/namespaces", "/services"})
_FREE_GROUPS = frozenset({"rbac.authorization.k8s.io"})
_LABEL_FORM = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-',"
    " and must start and end with an alphanumeric character (e.g. 'my-name',  or"
    " '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_FORM = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
    " '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex"
    " used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    "(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def name_errors(kind: ResourceKind, name: str) -> list[FieldError]:
    """RFC 1123: a label for namespaces and services, a subdomain for all others."""
    if kind.group in _FREE_GROUPS:
        return []
    problem = (label_problem if kind.key in _LABEL_KINDS else subdomain_problem)(name)
    return [invalid_value("metadata.name", name, problem)] if problem else []


def label_problem(name: str) -> str:
    """What is wrong with a name that must be an RFC 1123 label; nothing where it is one."""
    return _problem(name, _LABEL, _LABEL_FORM, longest=63)


def subdomain_problem(name: str) -> str:
    """What is wrong with ``name`` as a subdomain; empty: nothing."""
    return _problem(name, _SUBDOMAIN, _SUBDOMAIN_FORM, longest=253)


def _problem(name: str, form: str, text: str, *, longest: int) -> str:
    if len(name) > longest:
        return f"must be no more than {longest} bytes"
    return "" if re.fullmatch(form, name) else text
