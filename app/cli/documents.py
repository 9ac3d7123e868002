"""``-f``: YAML files with one object or several, checked before the first is sent.

What can be known here is refused here, with the file, the document and the field; everything else
the API server says.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from app.cli.endings import Code, CommandFailed
from app.cli.kubernetes_yaml import Loader
from app.wire import go_yaml
from app.wire.kinds import Resource
from app.wire.unstructured import Object

STDIN = "-"
_ENDINGS = {".yaml", ".yml"}


def read(file: str, resource: Resource, *, namespace: str) -> list[Object]:
    """The objects of a file, all of one kind; CommandFailed tells what is wrong where.

    An object that names no namespace gets ``namespace``.
    """
    documents = list(_documents(file))
    if not documents:
        raise _wrong(file, "there is no document in it")
    return [
        _checked(document, f"{file}: document {number}", resource, namespace=namespace)
        for number, document in documents
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


def _documents(file: str) -> Iterator[tuple[int, Any]]:
    """Number and content of each that is not empty; ``List`` objects are taken apart."""
    try:
        loaded = list(yaml.load_all(text_of(file), Loader))
    except yaml.YAMLError as error:
        raise _wrong(file, f"not YAML: {go_yaml.problem(error)}") from error
    except RecursionError as error:
        raise _wrong(file, "not YAML: nested too deeply") from error
    except ValueError as error:
        raise _wrong(file, "not YAML: a number in it cannot be read") from error
    for number, document in enumerate(loaded, start=1):
        _check_json(document, f"{file}: document {number}")
        if isinstance(document, dict) and document.get("kind") == "List":
            items = document.get("items") or []
            if not isinstance(items, list):
                raise _wrong(f"{file}: document {number}", "items: is no list")
            yield from ((number, item) for item in items)
        elif document is not None:
            yield number, document


def _check_json(document: Any, where: str) -> None:
    """YAML can say more than an API server can be told: circles, sets, bytes, infinity."""
    try:
        json.dumps(document, allow_nan=False)
    except TypeError as error:
        why = "a set, bytes, or a key that is neither text nor a number"
        raise _wrong(where, f"cannot be said in JSON: {why}") from error
    except (ValueError, RecursionError) as error:
        why = "an infinite number, an object that holds itself, or too many levels"
        raise _wrong(where, f"cannot be said in JSON: {why}") from error


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
