"""Answers to LIST: selection, paging and the list document."""

from __future__ import annotations

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass

from app.sandbox.apiserver import errors, selectors
from app.sandbox.apiserver.numbers import whole_number
from app.sandbox.apiserver.operations import Operations
from app.sandbox.apiserver.target import Target
from app.wire.documents import Document, ObjectName, name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a kind a list or a watch is about."""

    matches: Callable[[Document], bool]
    is_everything: bool


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list: its documents, and the list's revision and ``continue`` token."""

    documents: list[Document]
    metadata: Document


def select(target: Target, query: dict[str, str]) -> Selection:
    """The selection of a request; a name in the path is one more field selector."""
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    tests: list[selectors.Predicate] = []
    if target.kind.namespaced and target.namespace:
        namespace = target.namespace
        tests.append(lambda document: document["metadata"].get("namespace") == namespace)
    if target.name:
        name = target.name
        tests.append(lambda document: bool(document["metadata"]["name"] == name))
    if labels:
        tests.append(selectors.by_labels(labels))
    if fields:
        tests.append(selectors.by_fields(fields, plural=target.kind.plural))
    return Selection(
        matches=lambda document: all(test(document) for test in tests),
        is_everything=not labels and not fields,
    )


def list_page(operations: Operations, target: Target, query: dict[str, str]) -> Page:
    """The selected documents, at most ``limit`` of them, from where ``continue`` points."""
    limit = whole_number(query.get("limit", "0"))
    whole_number(query.get("timeoutSeconds", "0"))
    _check_revision(query.get("resourceVersion", ""))
    selection = select(target, query)
    found = [
        document
        for document in operations.store.ordered(target.kind.key, target.namespace)
        if selection.matches(document)
    ]
    revision = operations.store.revision
    if token := query.get("continue"):
        revision, start = _decode(token)
        found = [document for document in found if name_of(document) >= start]
    metadata: Document = {"resourceVersion": str(revision)}
    if 0 < limit < len(found):
        metadata["continue"] = _encode(revision, name_of(found[limit]))
        if selection.is_everything:
            metadata["remainingItemCount"] = len(found) - limit
        found = found[:limit]
    return Page([operations.shown(target.kind, document) for document in found], metadata)


def _check_revision(revision: str) -> None:
    if revision and not revision.isdigit():
        raise errors.bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{revision}":'
            f' strconv.ParseUint: parsing "{revision}": invalid syntax'
        )


def list_document(target: Target, page: Page) -> Document:
    """The List document of a page, in the version that the request asks for."""
    return {
        "kind": f"{target.kind.kind}List",
        "apiVersion": target.kind.api_version,
        "metadata": page.metadata,
        "items": page.documents,
    }


def _encode(revision: int, start: ObjectName) -> str:
    return urlsafe_b64encode(json.dumps([revision, *start]).encode()).decode()


def _decode(token: str) -> tuple[int, ObjectName]:
    try:
        revision, namespace, name = json.loads(urlsafe_b64decode(token))
    except (binascii.Error, ValueError) as error:
        raise errors.bad_request("continue key is not valid") from error
    return int(revision), ObjectName(namespace, name)
