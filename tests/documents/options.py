"""The options of the processes as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from app.cli import controllers, extender, together, webhooks
from app.cli.options import Option

COMMANDS: Final[Mapping[str, Sequence[Option]]] = {
    "extender": extender.ALL,
    "controllers": controllers.ALL,
    "webhooks": webhooks.ALL,
    "all": together.ALL,
}
"""Command -> its options."""


def table(options: Sequence[Option]) -> Iterator[str]:
    """A row for each option."""
    yield "| option | default | |"
    yield "|---|---|---|"
    for option in options:
        flags = ", ".join(f"`{flag}`" for flag in option.flags)
        default = option.default if option.in_words else f"`{option.default}`"
        yield f"| {flags} | {default if option.default else 'none'} | {_safe(option.text)} |"


def _safe(text: str) -> str:
    """The text where stars and angles would mean something."""
    return text.replace("*", "\\*").replace("<", "&lt;")


PARTS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    f"options-of-{command}": partial(table, options) for command, options in COMMANDS.items()
}
