"""What commands that start a process have in common: how their settings are read and refused."""

import signal
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import typer
from pydantic import ValidationError
from pydantic_core import ErrorDetails

if TYPE_CHECKING:
    from app.main.server import Bind

Switch = Literal["true", "false"]
S = TypeVar("S")


def settings_of(kind: Callable[..., S], given: dict[str, Any]) -> S:
    """Flags over environment over defaults; a bad value ends the command with what is wrong."""
    try:
        return kind(**given)
    except ValidationError as error:
        raise refusal(*map(_complaint, error.errors())) from error


def listening(bind: "Bind") -> socket.socket:
    """A socket at that address; ends the command when there can be none."""
    from app.main.server import listen

    try:
        return listen(bind)
    except OSError as error:
        raise refusal(f"cannot listen on {bind.host}:{bind.port}: {error.strerror}") from error


def end_at_once() -> None:
    """What has begun nothing has nothing to drain; the process takes the signal over later."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))


def refusal(*lines: str) -> typer.Exit:
    """The end of a command whose values do not do, after saying why: a line each."""
    for line in lines:
        typer.echo(f"pumice: {' '.join(line.split())}", err=True)
    return typer.Exit(2)


def _complaint(error: ErrorDetails) -> str:
    """What is wrong with which option."""
    message = error["msg"].removeprefix("Value error, ")
    where = "".join(f"--{name}: ".replace("_", "-") for name in error["loc"][:1])
    return f"{where}{message}"
