"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386). Both return a new document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.sandbox.apiserver import errors
from app.sandbox.apiserver.stock_fields import json_word
from app.wire.copying import copied
from app.wire.documents import Document

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_BEFORE = {
    JSON_PATCH: "error decoding patch: ",
    MERGE_PATCH: "error decoding patch: ",
    STRATEGIC_PATCH: "",
    APPLY_PATCH: "error decoding YAML: error unmarshaling JSON: while decoding JSON: ",
}
"""What the real server says before what was wrong with a patch of the kind."""


def check_patch(body: Any, content_type: str) -> None:
    """400 where the body cannot be a patch of its kind."""
    if content_type == JSON_PATCH:
        _must_be(list, body, "value of type []handlers.jsonPatchOp", content_type)
        for operation in body:
            _check_operation(operation)
    elif content_type in _BEFORE:
        _must_be(dict, body, "value of type map[string]interface {}", content_type)


def _check_operation(operation: Any) -> None:
    if operation is None:
        return
    _must_be(dict, operation, "value of type handlers.jsonPatchOp", JSON_PATCH)
    for name in ("op", "path", "from"):
        if operation.get(name) is not None:
            word = f"struct field jsonPatchOp.{name} of type string"
            _must_be(str, operation[name], word, JSON_PATCH)


def _must_be(kind: type, value: Any, word: str, content_type: str) -> None:
    if not isinstance(value, kind):
        before = _BEFORE[content_type]
        text = f"{before}json: cannot unmarshal {json_word(value)} into Go {word}"
        raise errors.bad_request(text)


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: objects merge, null removes, everything else replaces."""
    if not isinstance(patch, dict):
        return copied(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(document: Document, operations: Sequence[Document | None]) -> Document:
    """RFC 6902: all operations or none."""
    result: Any = copied(document)
    for operation in operations:
        result = _apply(result, operation)
    if not isinstance(result, dict):
        raise _failed()
    return result


def _apply(document: Any, operation: Document | None) -> Any:
    if operation is None or operation.get("path") is None:
        raise _failed()
    kind, path = operation.get("op"), _steps(operation["path"])
    match kind:
        case "test":
            if _read(document, path) != operation.get("value"):
                raise _failed()
            return document
        case "add" | "replace":
            return _write(document, path, copied(operation.get("value")), insert=kind == "add")
        case "remove":
            return _without(document, path)
        case "copy" | "move":
            if operation.get("from") is None:
                raise _failed()
            source = _steps(operation["from"])
            value = copied(_read(document, source))
            if kind == "move":
                document = _without(document, source)
            return _write(document, path, value, insert=True)
        case _:
            raise _failed()


def _failed() -> errors.ApiError:
    return errors.ApiError(
        422, "Invalid", "the server rejected our request due to an error in our request"
    )


def _steps(pointer: str) -> list[str]:
    if not pointer:
        return []
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _child(here: Any, step: str) -> Any:
    if isinstance(here, dict) and step in here:
        return here[step]
    if isinstance(here, list) and step.isdigit() and int(step) < len(here):
        return here[int(step)]
    raise _failed()


def _read(document: Any, path: list[str]) -> Any:
    for step in path:
        document = _child(document, step)
    return document


def _write(document: Any, path: list[str], value: Any, *, insert: bool) -> Any:
    if not path:
        return value
    parent, last = _read(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        _write_item(parent, last, value, insert=insert)
    elif isinstance(parent, dict) and (insert or last in parent):
        parent[last] = value
    else:
        raise _failed()
    return document


def _write_item(parent: list[Any], last: str, value: Any, *, insert: bool) -> None:
    if insert and last == "-":
        parent.append(value)
        return
    if not last.isdigit() or int(last) > len(parent) - (0 if insert else 1):
        raise _failed()
    if insert:
        parent.insert(int(last), value)
    else:
        parent[int(last)] = value


def _without(document: Any, path: list[str]) -> Any:
    if not path:
        raise _failed()
    parent, last = _read(document, path[:-1]), path[-1]
    _child(parent, last)
    if isinstance(parent, list):
        del parent[int(last)]
    else:
        del parent[last]
    return document
