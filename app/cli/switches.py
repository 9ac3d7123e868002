"""How the switches of processes may be written: as Go's, since manifests come from Volcano's.

That is ``--switch`` alone and ``--switch=`` with a word for true or false. A value that stands
apart (``--switch false``), which Go would take for an argument, counts as well.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import typer
from typer.core import TyperCommand

from app.cli.complaints import retold
from app.cli.processes import Switch
from app.cli.truths import TRUTHS, switch


class Process(TyperCommand):
    """A command that starts a process."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Bring the switches into one form before anything else looks at them."""
        switches, valued = set[str](), set[str]()
        for parameter in self.params:
            if not getattr(parameter, "is_flag", False):
                (switches if _is_switch(parameter) else valued).update(parameter.opts)
        try:
            return super().parse_args(ctx, list(_usual(args, switches, valued)))
        except typer.BadParameter as error:
            raise retold(error) from error.__cause__


def _is_switch(parameter: Any) -> bool:
    return bool(parameter.type_descriptor.annotation == Switch)


def _usual(args: Iterable[str], switches: set[str], valued: set[str]) -> Iterator[str]:
    """Every switch as ``--switch=true`` or ``--switch=false``."""
    rest = deque(args)
    while rest:
        argument = rest.popleft()
        flag, equals, value = argument.partition("=")
        if flag in switches:
            if not equals:
                value = rest.popleft() if rest and rest[0].lower() in TRUTHS else "true"
            yield f"{flag}={_usual_word(value)}"
        else:
            yield argument
            if argument in valued and rest:
                yield rest.popleft()


def _usual_word(value: str) -> str:
    """The usual word for a switch; a value that is neither true nor false stays for its reader."""
    return switch(value) if value.lower() in TRUTHS else value
