"""What is wrong with JSON that was received, and where.

Everything in this package that reads raises :class:`DecodeError` and nothing else, so a caller
counts, shows and skips bad input in one place. The path is the one a user would write:
``spec.containers[2].resources.requests.cpu``.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

T = TypeVar("T")

Bytes = bytes | msgspec.Raw
"""JSON text: a whole message, or a part of one that was cut out and not looked into."""


class DecodeError(ValueError):
    """``path`` (empty: the whole) does not hold what it should; ``message`` says what it holds."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


def joined(at: str, path: str) -> str:
    """``path`` inside ``at``."""
    if not at or not path or path.startswith("["):
        return at + path
    return f"{at}.{path}"


class Reader(Generic[T]):
    """Decodes JSON text into ``kind``; ``at`` is where in the object the text stood.

    ``kind`` may be a union, which no ``type[T]`` is: annotate the reader with what it reads.
    """

    def __init__(self, kind: Any) -> None:
        self._decode: Callable[[Bytes], T] = msgspec.json.Decoder(kind).decode

    def __call__(self, text: Bytes, at: str = "") -> T:
        """The decoded value; DecodeError with the path below ``at`` where it does not fit."""
        try:
            return self._decode(text)
        except msgspec.ValidationError as error:
            message, _, path = str(error).partition(" - at `$")
            raise DecodeError(joined(at, path.rstrip("`").removeprefix(".")), message) from error
        except (ValueError, RecursionError) as error:
            raise DecodeError(at, f"not JSON: {error}") from error
