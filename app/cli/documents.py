"""``-f``: YAML files with one object or several, checked before the first is sent.

What can be known here is refused here, with the file, the document and the field; everything else
the API server says.
"""

import sys
from pathlib import Path
from typing import Any

from app.cli.endings import Code, CommandFailed
from app.wire.kinds import Resource
from app.wire.kubernetes_yaml import NotObjects, documents
from app.wire.unstructured import Object

STDIN = "-"
_ENDINGS = {".yaml", ".yml"}
_MOST_VALUES = 2_000_000
"""In a file: aliases of aliases may make any number of them."""


def read(file: str, resource: Resource, *, namespace: str) -> list[Object]:
    """The objects of a file, all of one kind; CommandFailed tells what is wrong where.

    An object that names no namespace gets ``namespace``.
    """
    found = _documents(file)
    if not found:
        raise _wrong(file, "there is no document in it")
    return [
        _checked(document, f"{file}: document {number}", resource, namespace=namespace)
        for number, document in found
    ]


def objects(file: str) -> list[Any]:
    """Everything that is in a file, of whatever kind; CommandFailed where it is no YAML."""
    found = [document for _, document in _documents(file)]
    if not found:
        raise _wrong(file, "there is no document in it")
    return found


def expect_yaml(file: str) -> None:
    """``job run`` takes no file of another name."""
    if file != STDIN and Path(file).suffix not in _ENDINGS:
        raise _wrong(file, "only support yaml file")


def _documents(file: str) -> list[tuple[int, Any]]:
    """Number and content of each that is not empty; ``List`` objects are taken apart."""
    try:
        return documents(text_of(file), most=_MOST_VALUES)
    except NotObjects as error:
        raise _wrong(file, str(error)) from error


def text_of(file: str) -> str:
    """The text of a file, - for standard input; CommandFailed where it cannot be read."""
    if file == STDIN:
        # The variable is None where a shell has closed it, whatever its type says.
        if not sys.stdin:
            raise _wrong(file, "standard input is closed")
        try:
            return sys.stdin.buffer.read().decode("utf-8")  # whatever the locale says
        except UnicodeError as error:
            raise _wrong(file, "not UTF-8 text") from error
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise _wrong(file, f"failed to read file: {why}") from error


def _checked(document: Any, where: str, resource: Resource, *, namespace: str) -> Object:
    if not isinstance(document, dict):
        raise _wrong(where, f"{_kind(document)} is no object")
    for field, wanted in (("apiVersion", resource.api_version), ("kind", resource.kind)):
        if field not in document:
            raise _wrong(where, f"{field}: is missing; {wanted!r} is expected")
        if document[field] != wanted:
            raise _wrong(where, f"{field}: {document.get(field)!r} is not {wanted!r}")
    about = document.get("metadata")
    if not isinstance(about, dict):
        raise _wrong(where, "metadata: is missing")
    if not (about.get("name") or about.get("generateName")):
        raise _wrong(where, "metadata.name: is missing")
    for field in ("name", "generateName", "namespace"):
        if not isinstance(about.get(field, ""), str):
            raise _wrong(where, f"metadata.{field}: {about[field]!r} is no text")
    if not isinstance(document.get("spec"), dict):
        raise _wrong(where, "spec: is missing")
    return {**document, "metadata": {**about, "namespace": about.get("namespace") or namespace}}


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    return "text" if isinstance(value, str) else f"{value!r}"


def _wrong(where: str, why: str) -> CommandFailed:
    return CommandFailed(Code.USAGE, f"{where}: {why}")
