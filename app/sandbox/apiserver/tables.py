"""``Accept: application/json;as=Table``: rows and cells instead of objects, for ``kubectl get``."""

from __future__ import annotations

from collections.abc import Sequence

from app.sandbox.apiserver.columns import DEFAULT_COLUMNS
from app.sandbox.apiserver.registry import ResourceKind
from app.wire.documents import Document


def _definition(name: str, kind: str, *, more: Document) -> Document:
    return {"name": name, "type": kind, "format": "", "description": "", "priority": 0, **more}


def _definitions(kind: ResourceKind) -> list[Document]:
    return [
        _definition(
            column.name,
            column.type,
            more={
                "format": column.format,
                "description": column.description or column.name,
                "priority": column.priority,
            },
        )
        for column in kind.columns or DEFAULT_COLUMNS
    ]


def _shown_object(document: Document, include: str) -> Document | None:
    match include:
        case "None":
            return None
        case "Object":
            return document
        case _:
            return {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": document["metadata"],
            }


def table(
    kind: ResourceKind,
    documents: Sequence[Document],
    *,
    metadata: Document,
    now: float,
    include: str = "Metadata",
) -> Document:
    """The documents as one table; ``metadata`` is the list's."""
    columns = kind.columns or DEFAULT_COLUMNS
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": _definitions(kind),
        "rows": [
            {
                "cells": [column.cell(document, now) for column in columns],
                "object": _shown_object(document, include),
            }
            for document in documents
        ],
    }
