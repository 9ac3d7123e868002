"""Reviews, which are answered and not stored: of the user, and of the user's rights.

Credentials are not looked at here, and every request may do everything.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.sandbox.apiserver.admission import USER
from app.sandbox.apiserver.registry import ResourceKind
from app.wire.documents import Document

_ALL = ["*"]
_ALLOWED: Document = {"allowed": True, "reason": "in the sandbox every user may do everything"}
_RULES: Document = {
    "resourceRules": [{"verbs": _ALL, "apiGroups": _ALL, "resources": _ALL}],
    "nonResourceRules": [{"verbs": _ALL, "nonResourceURLs": _ALL}],
    "incomplete": False,
}
_MYSELF: Document = {
    "userInfo": {"username": USER, "groups": ["system:masters", "system:authenticated"]}
}

_ANSWERS: Mapping[str, Document] = {
    "authentication.k8s.io/selfsubjectreviews": _MYSELF,
    "authorization.k8s.io/localsubjectaccessreviews": _ALLOWED,
    "authorization.k8s.io/selfsubjectaccessreviews": _ALLOWED,
    "authorization.k8s.io/selfsubjectrulesreviews": _RULES,
    "authorization.k8s.io/subjectaccessreviews": _ALLOWED,
}


def is_review(kind: ResourceKind) -> bool:
    """Whether ``kind`` is a review."""
    return kind.key in _ANSWERS


def answered(kind: ResourceKind, question: Document) -> Document:
    """The question with its answer."""
    head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}}
    return {**head, **question, "status": _ANSWERS[kind.key]}
