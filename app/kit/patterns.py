"""Regular expressions that Go reads as well as Python."""

import re

_BEYOND_RE2 = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?(?:[=!(>]|<[=!]|P=)|\\[1-9])")


def pattern_problem(pattern: str) -> str:
    """Why ``pattern`` is no regular expression; empty when it is one."""
    found = _BEYOND_RE2.search(pattern)
    if found:
        return f"`{found.group()}` is not supported"
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"error parsing regexp: {error}"
    return ""
