"""Patterns of schemas, matched by RE2: they mean to it what they mean to the real server."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Final

import re2

logger = logging.getLogger(__name__)

_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern as its author wrote it, and as RE2 has it."""

    text: str
    compiled: Any

    def fits(self, value: str) -> bool:
        """Whether the pattern is found in ``value``."""
        return self.compiled.search(value.encode("utf-8", "replace")) is not None


def compiled(text: str) -> Pattern | None:
    """The pattern, or None with a warning where it is none: values pass then."""
    try:
        return Pattern(text, re2.compile(text, _OPTIONS))
    except (re2.error, UnicodeEncodeError) as error:
        fields = {"pattern": text, "error": str(error)}
        logger.warning("a pattern is not checked", extra=fields)
        return None
