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
        """The ``Status`` document, which is the body of the answer."""
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
    """A value of the right type that breaks a rule; ``text`` is the rule."""
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {text}")


def wrong_type(path: str, value: object, text: str) -> FieldError:
    """A value of the wrong JSON type; ``text`` says which type is expected."""
    return FieldError(path, "FieldValueTypeInvalid", f"Invalid value: {_shown(value)}: {text}")


def wrong_format(path: str, wanted: str) -> FieldError:
    """kube-apiserver names the field in the text only."""
    text = f'Invalid value: "": Checked value must be of type {wanted} in {path}'
    return FieldError("<nil>", "FieldValueInvalid", text)


def wrong_combination(path: str, text: str) -> FieldError:
    """Another one that names the field in the text only."""
    return FieldError("<nil>", "FieldValueInvalid", f'Invalid value: "": "{path}" {text}')


def too_long(path: str, most: float) -> FieldError:
    """A text that is longer than ``most`` bytes."""
    text = f"Too long: may not be more than {most} bytes"
    return FieldError(path, "FieldValueTooLong", text)


def too_many(path: str, size: int, most: float) -> FieldError:
    """A list or map of ``size`` entries where ``most`` are allowed."""
    text = f"Too many: {size}: must have at most {most} items"
    return FieldError(path, "FieldValueTooMany", text)


def unsupported_value(path: str, value: object, allowed: Sequence[object]) -> FieldError:
    """A value outside the ``allowed`` ones, which the message lists in that order."""
    listed = ", ".join(f'"{one}"' for one in allowed)
    text = f"Unsupported value: {_shown(value)}: supported values: {listed}"
    return FieldError(path, "FieldValueNotSupported", text)


def required(path: str, text: str = "") -> FieldError:
    """A field that is missing or empty; ``text`` may say why the field is needed."""
    return FieldError(
        path, "FieldValueRequired", f"Required value: {text}" if text else "Required value"
    )


def duplicate(path: str, value: object) -> FieldError:
    """A value that stands twice in a list whose entries must differ."""
    return FieldError(path, "FieldValueDuplicate", f"Duplicate value: {_shown(value)}")


def forbidden_field(path: str, text: str) -> FieldError:
    """A field that may not be set, or not be changed; ``text`` says why."""
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
    """Status 404: no object has that name."""
    message = f'{qualified(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, details=_named(plural, group, name))


def already_exists(plural: str, group: str, name: str) -> ApiError:
    """Status 409, reason AlreadyExists: an object has that name."""
    message = f'{qualified(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details=_named(plural, group, name))


def conflict(plural: str, group: str, name: str, *, why: str) -> ApiError:
    """Status 409, reason Conflict: ``why`` says what the object does not agree with."""
    message = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details=_named(plural, group, name))


def modified(plural: str, group: str, name: str) -> ApiError:
    """Status 409, reason Conflict: the ``resourceVersion`` of the request is out of date."""
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
    """Status 422 with one cause per error; a text that occurs twice is shown once."""
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
    """Status 400: the request makes no sense; ``message`` says why."""
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
    """Status 422: one option is wrong; ``options`` is the kind, such as ``PatchOptions``."""
    return invalid(options, "meta.k8s.io", "", errors=[error])


def bad_patch(made: object, text: str) -> ApiError:
    """A patch that leaves something that is not of its kind; kube-apiserver names no object."""
    shown = json.dumps(made, separators=(",", ":"))
    return invalid("", "", "", errors=[invalid_value("patch", shown, text)])


def forbidden(plural: str, group: str, name: str, *, why: str) -> ApiError:
    """Status 403: a rule of the cluster refuses the request; ``why`` is the rule."""
    message = f'{qualified(plural, group)} "{name}" is forbidden: {why}'
    return ApiError(403, "Forbidden", message, details=_named(plural, group, name))


def expired(message: str) -> ApiError:
    """Status 410: the revision is too old, so the client must list again."""
    return ApiError(410, "Expired", message)


def no_such_path() -> ApiError:
    """Status 404: the path names no served resource."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def method_not_allowed() -> ApiError:
    """Status 405: the resource is served, but without this HTTP method."""
    return ApiError(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    )


def not_simulated(pod: Document, what: str) -> ApiError:
    """Status 405: ``what`` (such as ``exec``) needs a container that really runs."""
    name = pod["metadata"]["name"]
    message = f"pod {name} has no containers to {what} to: the sandbox only simulates them"
    return ApiError(405, "MethodNotAllowed", message)


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    """Status 415; the message lists the ``accepted`` content types in that order."""
    listed = ", ".join(accepted)
    return ApiError(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include:"
        f" {listed}",
    )
