"""How commands end: one line of why, and an exit code that scripts can act upon.

====  ============================================================================
code  meaning
====  ============================================================================
0     done
1     a job that was waited for failed, was aborted or was terminated
2     bad usage: flags, files, kubeconfig
3     there is no such object
4     what was waited for did not happen in time
5     the API server (or the extender) was not reached, or may succeed another time
6     the API server refused: not allowed, invalid, exists already, in conflict
130   interrupted
====  ============================================================================
"""

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Final

import typer

from app.kube import errors
from app.kube.errors import ConfigError

CODES: Final = (
    "Exit codes: 0 done, 1 a job that was waited for failed, 2 bad usage, 3 not found, "
    "4 timed out, 5 API server not reached, 6 refused by the API server, 130 interrupted."
)


_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


class Code(IntEnum):
    """Why a command did not end well."""

    JOB_FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    TIMEOUT = 4
    UNREACHABLE = 5
    REFUSED = 6
    INTERRUPTED = 130


class CommandFailed(Exception):
    """The end of a command; the text is one line that a user can act upon."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(" ".join(message.split()))
        self.code = code


@contextmanager
def failing_to(what: str) -> Iterator[None]:
    """Turn what goes wrong inside into ``Failed to <what>: <why>`` and an exit code."""
    try:
        yield
    except CommandFailed as failure:
        raise _end(what, failure) from failure
    except (errors.KubeError, ConfigError) as error:
        raise _end(what, of(error)) from error
    except UnicodeError as error:
        why = CommandFailed(Code.USAGE, "what was given is not UTF-8 text")
        raise _end(what, why) from error


def of(error: errors.KubeError | ConfigError) -> CommandFailed:
    """What an error of the client means to a user."""
    if isinstance(error, ConfigError):
        return CommandFailed(Code.USAGE, str(error))
    if isinstance(error, errors.Transport):
        return CommandFailed(Code.UNREACHABLE, f"the API server is not reached: {error.message}")
    message = error.message or error.reason or f"the API server answered {error.status}"
    if isinstance(error, errors.Unauthorized):
        message = f"the API server does not accept the credentials: {message}"
    return CommandFailed(_code(error), message)


def _code(error: errors.KubeError) -> Code:
    if isinstance(error, errors.NotFound):
        return Code.NOT_FOUND
    if isinstance(error, (errors.Throttled, errors.ServerError)):
        return Code.UNREACHABLE
    return Code.REFUSED


def _end(what: str, failure: CommandFailed) -> typer.Exit:
    typer.echo(f"Failed to {what}: {failure}", err=True)
    return typer.Exit(int(failure.code))


def run(program: Callable[[], object]) -> None:
    """The whole of a program: where its output cannot be kept, it ends with a line of why."""
    try:
        program()
    except KeyboardInterrupt:  # while the command is being made out
        sys.exit(int(Code.INTERRUPTED))
    except OSError as error:
        if error.errno not in _FULL:
            raise
        # What could not be written would be tried again at exit.
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        name = Path(sys.argv[0]).name
        typer.echo(f"{name}: the output cannot be written: {error.strerror}", err=True)
        sys.exit(int(Code.USAGE))
