"""The words for true and false, the same for flags and for variables.

They are pydantic's, which reads the variables of processes; Go's, which manifests of Volcano's are
written for, are among them. Capitals or not does not matter.
"""

from typing import Final

import typer

TRUTHS: Final = {
    **dict.fromkeys(("true", "t", "1", "yes", "y", "on"), True),
    **dict.fromkeys(("false", "f", "0", "no", "n", "off"), False),
}


def truth(word: str) -> bool:
    """What the word says; BadParameter for any other."""
    if word.lower() not in TRUTHS:
        raise typer.BadParameter(f"{word!r} is neither true nor false")
    return TRUTHS[word.lower()]


def switch(word: str) -> str:
    """A truth as the value of a switch, ``true`` or ``false``."""
    return str(truth(word)).lower()
