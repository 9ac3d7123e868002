"""Which names objects may have."""

from __future__ import annotations

import re

from app.sandbox.apiserver.errors import FieldError, invalid_value
from app.sandbox.apiserver.registry import ResourceKind

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_KINDS = frozenset({"/namespaces", "/services"})
_FREE_GROUPS = frozenset({"rbac.authorization.k8s.io"})


def name_errors(kind: ResourceKind, name: str) -> list[FieldError]:
    """RFC 1123: a label for namespaces and services, a subdomain for all others."""
    if kind.group in _FREE_GROUPS:
        return []
    if kind.key in _LABEL_KINDS:
        return _check(
            name,
            _LABEL,
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-',"
            " and must start and end with an alphanumeric character (e.g. 'my-name',  or"
            " '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            longest=63,
        )
    return _check(
        name,
        _SUBDOMAIN,
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or"
        " '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex"
        " used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?"
        "(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        longest=253,
    )


def _check(name: str, form: str, text: str, *, longest: int) -> list[FieldError]:
    if len(name) > longest:
        return [invalid_value("metadata.name", name, f"must be no more than {longest} bytes")]
    if re.fullmatch(form, name) is None:
        return [invalid_value("metadata.name", name, text)]
    return []
