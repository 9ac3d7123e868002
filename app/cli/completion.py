"""``--install-completion`` and ``--show-completion`` for a shell that is named.

Without a name it is the shell that the command was called from; a name that stood behind would be
passed over, whatever it says.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import typer
from typer.completion import install_callback, show_callback

SHELLS: Final = ("bash", "zsh", "fish", "powershell", "pwsh")

_DO: Final[Mapping[str, Callable[..., Any]]] = {
    "--install-completion": install_callback,
    "--show-completion": show_callback,
}


def complete(ctx: Any, args: Sequence[str]) -> None:
    """Do what a flag of completion asks for, and end; BadParameter for what is no shell."""
    for argument, after in zip(args, (*args[1:], ""), strict=False):
        flag, equals, value = argument.partition("=")
        if flag not in _DO:
            continue
        shell = value if equals or after.startswith("-") else after
        if shell or equals:
            _DO[flag](ctx, None, _known(flag, shell))


def _known(flag: str, shell: str) -> str:
    if shell not in SHELLS:
        raise typer.BadParameter(f"{flag}: {shell!r} is none of {', '.join(SHELLS)}")
    return shell
