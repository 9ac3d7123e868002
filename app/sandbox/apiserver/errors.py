"""What the API server answers when it refuses: Kubernetes ``Status`` documents.

One exception class for all refusals; the functions below build the usual ones with the words the
real server uses, because ``kubectl`` and people read them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from app.sandbox.quantities import NO_QUANTITY
from app.wire.documents import Document


class ApiError(Exception):
    """A request that is refused; carries the ``Status`` to answer with."""

    def __init__(
        self, code: int, reason: str, message: str, *, details: Document | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}

    def status(self) -> Document:
        document: Document = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        }
        if self.reason:
            document["reason"] = self.reason
        if self.details:
            document["details"] = self.details
        return document


@dataclass(frozen=True, slots=True)
class FieldError:
    """One broken rule of one field; ``reason`` is the cause type of the ``Status``."""

    path: str
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


def invalid_value(path: str, value: object, text: str) -> FieldError:
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {text}")


def wrong_type(path: str, value: object, text: str) -> FieldError:
    return FieldError(path, "FieldValueTypeInvalid", f"Invalid value: {_shown(value)}: {text}")


def wrong_format(path: str, wanted: str) -> FieldError:
    """kube-apiserver names the field in the text only."""
    text = f'Invalid value: "": Checked value must be of type {wanted} in {path}'
    return FieldError("<nil>", "FieldValueInvalid", text)


def wrong_combination(path: str, text: str) -> FieldError:
    """Another one that names the field in the text only."""
    return FieldError("<nil>", "FieldValueInvalid", f'Invalid value: "": "{path}" {text}')


def too_long(path: str, most: float) -> FieldError:
    text = f"Too long: may not be more than {most} bytes"
    return FieldError(path, "FieldValueTooLong", text)


def too_many(path: str, size: int, most: float) -> FieldError:
    text = f"Too many: {size}: must have at most {most} items"
    return FieldError(path, "FieldValueTooMany", text)


def unsupported_value(path: str, value: object, allowed: Sequence[object]) -> FieldError:
    listed = ", ".join(f'"{one}"' for one in allowed)
    text = f"Unsupported value: {_shown(value)}: supported values: {listed}"
    return FieldError(path, "FieldValueNotSupported", text)


def required(path: str, text: str = "") -> FieldError:
    return FieldError(
        path, "FieldValueRequired", f"Required value: {text}" if text else "Required value"
    )


def duplicate(path: str, value: object) -> FieldError:
    return FieldError(path, "FieldValueDuplicate", f"Duplicate value: {_shown(value)}")


def forbidden_field(path: str, text: str) -> FieldError:
    return FieldError(path, "FieldValueForbidden", f"Forbidden: {text}")


def _shown(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def qualified(plural: str, group: str) -> str:
    """``pods`` or ``queues.scheduling.volcano.sh``."""
    return f"{plural}.{group}" if group else plural


def _named(plural: str, group: str, name: str) -> Document:
    details: Document = {"name": name, "kind": plural}
    if group:
        details["group"] = group
    return details


def not_found(plural: str, group: str, name: str) -> ApiError:
    message = f'{qualified(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, details=_named(plural, group, name))


def already_exists(plural: str, group: str, name: str) -> ApiError:
    message = f'{qualified(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_named(plural, group, name))


def conflict(plural: str, group: str, name: str, *, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_named(plural, group, name))


def modified(plural: str, group: str, name: str) -> ApiError:
    why = (
        "the object has been modified; please apply your changes to the latest version"
        " and try again"
    )
    return conflict(plural, group, name, why=why)


def storage_precondition(key: str, word: str, wanted: str, *, found: str) -> str:
    """The reason of a conflict that etcd's layer found."""
    return (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0,"
        f" AdditionalErrorMsg: Precondition failed: {word} in precondition: {wanted},"
        f" {word} in object meta: {found}"
    )


def invalid(kind: str, group: str, name: str, *, errors: Sequence[FieldError]) -> ApiError:
    texts = list(dict.fromkeys(str(error) for error in errors))
    listed = ", ".join(texts)
    if len(texts) > 1:
        listed = f"[{listed}]"
    causes = [
        {"reason": error.reason, "message": error.text, "field": error.path} for error in errors
    ]
    details = {**_named(kind, group, name), "causes": causes}
    return ApiError(
        422, "Invalid", f'{qualified(kind, group)} "{name}" is invalid: {listed}', details=details
    )


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unreadable(kind: str, version: str, text: str) -> ApiError:
    """A body that is not of the kind that it should be of."""
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {text}')


def no_quantity(kind: str) -> ApiError:
    """An object of the core group with an amount that cannot be read."""
    return unreadable(kind, "v1", NO_QUANTITY)


def bad_option(options: str, name: str, value: object, allowed: Sequence[str]) -> ApiError:
    """The refusal of a query parameter with an unknown value."""
    return bad_options(options, unsupported_value(name, value, allowed))


def bad_options(options: str, error: FieldError) -> ApiError:
    return invalid(options, "meta.k8s.io", "", errors=[error])


def bad_patch(made: object, text: str) -> ApiError:
    """A patch that leaves something that is not of its kind; kube-apiserver names no object."""
    shown = json.dumps(made, separators=(",", ":"))
    return invalid("", "", "", errors=[invalid_value("patch", shown, text)])


def forbidden(plural: str, group: str, name: str, *, why: str) -> ApiError:
    message = f'{qualified(plural, group)} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, details=_named(plural, group, name))


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def method_not_allowed() -> ApiError:
    return ApiError(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )


def not_simulated(pod: Document, what: str) -> ApiError:
    name = pod["metadata"]["name"]
    message = f"pod {name} has no containers to {what} to: the sandbox only simulates them"
    return ApiError(405, "MethodNotAllowed", message)


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    listed = ", ".join(accepted)
    return ApiError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include:"
        f" {listed}",
    )
