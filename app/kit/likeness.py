"""Which of the names that there are was perhaps meant by one that there is not."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_LIKENESS: Final = 0.75  # one or two letters of a short name


def meant(name: str, known: Iterable[str]) -> str:
    """For the end of a sentence: ``" (did you mean binpack?)"``, or nothing."""
    by_letters = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), by_letters, n=1, cutoff=_LIKENESS)
    return f" (did you mean {by_letters[found[0]]}?)" if found else ""
