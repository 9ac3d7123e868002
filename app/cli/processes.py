"""What commands that start a process have in common: how options are read and refused."""

import os
import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import typer
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from app.cli.complaints import said
from app.kit.shortening import shortened

if TYPE_CHECKING:
    from app.main.serving.server import Bind

Switch = Literal["true", "false"]
S = TypeVar("S")

_LONGEST: Final = 1_000
"""Characters of a complaint, which may quote a value of any length."""


def settings_of(kind: Callable[..., S], given: dict[str, Any]) -> S:
    """Flags over environment over defaults; a bad value ends the command with what is wrong."""
    try:
        return kind(**given)
    except ValidationError as error:
        raise refusal(*map(_complaint, error.errors())) from error


def listening(bind: "Bind") -> socket.socket:
    """A socket at that address; ends the command when there can be none.

    A client that finds the socket open may ask the process to end: that is heard before.
    """
    from app.main.serving.server import opened
    from app.main.start_error import StartError

    end_at_once()
    try:
        return opened(bind)
    except StartError as error:
        raise refusal(str(error)) from error


def end_at_once() -> None:
    """What has begun nothing has nothing to drain; the process takes the signal over later.

    No exception: Python drops one that is raised in a callback, as there are while modules load.
    """
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))


def refusal(*lines: str) -> typer.Exit:
    """The end of a command whose values do not do, after saying why: a line each."""
    for line in lines:
        typer.echo(f"pumice: {shortened(' '.join(line.split()), _LONGEST)}", err=True)
    return typer.Exit(2)


def _complaint(error: ErrorDetails) -> str:
    """What is wrong with which option."""
    where = "".join(f"--{name}: ".replace("_", "-") for name in error["loc"][:1])
    return f"{where}{said(error)}"
