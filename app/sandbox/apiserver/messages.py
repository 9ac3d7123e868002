"""Requests and replies of the HTTP edge: bytes to values and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import msgspec
import yaml

from app.sandbox.apiserver import errors, protobuf
from app.sandbox.apiserver.operations import WriteOptions, check_dry_run

JSON = "application/json"
_OPTIONS = {"PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, body read."""

    method: str
    path: str
    query: dict[str, str]
    accept: str
    content_type: str
    host: str
    body: bytes

    @property
    def wants_table(self) -> bool:
        """Whether the client accepts a Table, as ``kubectl get`` does."""
        return "as=Table" in self.accept

    @property
    def media_type(self) -> str:
        """The content type of the body without parameters such as ``charset``."""
        return self.content_type.partition(";")[0].strip()

    @property
    def write_options(self) -> WriteOptions:
        """What the query says about a write; 422 for unknown values."""
        options = _OPTIONS.get(self.method, "CreateOptions")
        check_dry_run(options, [self.query["dryRun"]] if "dryRun" in self.query else [])
        validation = self.query.get("fieldValidation") or "Warn"
        if validation not in _VALIDATIONS:
            raise errors.bad_option(options, "fieldValidation", validation, _VALIDATIONS)
        return WriteOptions(dry_run="dryRun" in self.query, field_validation=validation)

    def document(self) -> Any:
        """The body as data; 400 where it cannot be read, 415 for CBOR and unknown protobuf."""
        if "cbor" in self.content_type:
            raise errors.unsupported_media_type([JSON, "application/yaml"])
        if not self.body:
            return {}
        if "protobuf" in self.content_type:
            return protobuf.decode(self.body)
        try:
            if "yaml" in self.content_type:
                return yaml.safe_load(self.body)
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, yaml.YAMLError) as error:
            raise errors.bad_request(f"error decoding the body: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One whole answer."""

    body: bytes
    code: int = 200
    content_type: str = JSON
    warnings: tuple[str, ...] = ()

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The ASGI headers, with one ``Warning`` header per warning."""
        warned = [(b"warning", f'299 - "{_quoted(text)}"'.encode()) for text in self.warnings]
        return [
            (b"content-type", self.content_type.encode()),
            (b"content-length", str(len(self.body)).encode()),
            *warned,
        ]


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def json_reply(document: Any, *, code: int = 200, warnings: tuple[str, ...] = ()) -> Reply:
    """``document`` as a JSON body; ``warnings`` are shown to the user by ``kubectl``."""
    return Reply(body=msgspec.json.encode(document), code=code, warnings=warnings)


def text_reply(text: str, *, code: int = 200) -> Reply:
    """``text`` as a plain UTF-8 body."""
    return Reply(body=text.encode(), code=code, content_type="text/plain; charset=utf-8")


def parse_query(raw: bytes) -> dict[str, str]:
    """The parameters by name: the last value of a repeated one, an empty text where none stands."""
    return dict(parse_qsl(raw.decode("latin-1"), keep_blank_values=True))
