"""AdmissionReview v1: what the API server asks, and the answer.

The API server decodes answers strictly by version, so only v1 is spoken. What is asked about is
handed on as the JSON it was, after making sure of the parts that everything reads: metadata, spec
and status are objects, labels and annotations map texts to texts.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from app.wire.errors import DecodeError, Reader
from app.wire.unstructured import Object

API_VERSION: Final = "admission.k8s.io/v1"

OPERATIONS: Final = ("CREATE", "UPDATE", "DELETE", "CONNECT")

_CODE = 403
_REASON = "Forbidden"


class _KindJson(msgspec.Struct, gc=False):
    group: str = ""
    version: str = ""
    resource: str = ""


class _RequestJson(msgspec.Struct, rename="camel"):
    uid: str
    operation: str
    resource: _KindJson = msgspec.field(default_factory=_KindJson)
    name: str = ""
    namespace: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class _ReviewJson(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _RequestJson | None = None


_read: Reader[_ReviewJson] = Reader(_ReviewJson)
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One question; ``item`` is empty on DELETE, ``old`` on CREATE."""

    uid: str
    operation: str
    resource: str
    """``plural.group/version`` of what is asked about; the core group is empty."""
    namespace: str
    name: str
    item: Object
    old: Object


def decode_review(body: bytes) -> Review:
    """The question in an AdmissionReview; raises `DecodeError`."""
    json = _read(body)
    if json.kind != "AdmissionReview" or json.api_version != API_VERSION:
        said = f"{json.api_version} {json.kind}"
        raise DecodeError("", f"expected {API_VERSION} AdmissionReview, got {said}")
    request = json.request
    if request is None:
        raise DecodeError("request", "is missing")
    if not request.uid:
        raise DecodeError("request.uid", "is empty")
    if request.operation not in OPERATIONS:
        raise DecodeError("request.operation", f'"{request.operation}" is no operation')
    item = _checked(request.object, "request.object")
    old = _checked(request.old_object, "request.oldObject")
    needed = {"request.object": item, "request.oldObject": old}
    if request.operation == "CREATE":
        del needed["request.oldObject"]
    if request.operation == "DELETE":
        del needed["request.object"]
    for path, given in needed.items():
        if not given and request.operation != "CONNECT":
            raise DecodeError(path, "is missing")
    kind = request.resource
    return Review(
        uid=request.uid,
        operation=request.operation,
        resource=f"{kind.resource}.{kind.group}/{kind.version}",
        namespace=request.namespace,
        name=request.name or str((item or old).get("metadata", {}).get("name") or ""),
        item=item,
        old=old,
    )


def answer(
    uid: str,
    *,
    allowed: bool,
    message: str = "",
    warnings: Sequence[str] = (),
    patch: Sequence[Mapping[str, Any]] = (),
) -> bytes:
    """An AdmissionReview with the answer to the question ``uid``."""
    response: Object = {"uid": uid, "allowed": allowed}
    if not allowed:
        response["status"] = {
            "status": "Failure",
            "message": message.strip(),
            "reason": _REASON,
            "code": _CODE,
        }
    if warnings:
        response["warnings"] = list(warnings)
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(_encode(patch)).decode()
    return _encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def _checked(item: dict[str, Any] | None, path: str) -> Object:
    if not item:
        return {}
    metadata = item.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise DecodeError(f"{path}.metadata", "is not an object")
    for part in ("labels", "annotations"):
        pairs = metadata.get(part) or {}
        if not isinstance(pairs, dict) or not all(isinstance(v, str) for v in pairs.values()):
            raise DecodeError(f"{path}.metadata.{part}", "does not map texts to texts")
    return item
