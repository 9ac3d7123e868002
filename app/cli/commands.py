"""What the commands of Volcano's command line share: flags, and how flags may be written.

There, switches may be given a value (``--all-namespaces=false``), the value of a flag of one letter
may follow behind ``=`` (``-n=batch``), flags of logging may stand anywhere, and ``help`` is a
command; so here too.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from app.cli.checked import checked, unless_empty
from app.cli.complaints import retold
from app.cli.completion import complete
from app.cli.endings import CODES
from app.cli.truths import truth
from app.kube.web_url import base_of

HELP = {"help_option_names": ["-h", "--help"]}

_LOGGING = {"-v", "--v", "--vmodule", "--log-flush-frequency"}
"""Flags of Go's logging, which every command of Volcano's takes; here there is nothing to set."""
_LEVEL = re.compile(r"-v\d+")


class Command(TyperCommand):
    """A command whose flags may be written as Volcano's may."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Bring the arguments into the usual form before anything else looks at them."""
        if _completes(self):
            complete(ctx, args)
        switches, valued = set[str](), set[str]()
        for parameter in self.params:
            is_switch = getattr(parameter, "is_flag", False)
            (switches if is_switch else valued).update(parameter.opts)
        try:
            return super().parse_args(ctx, list(_usual(args, switches, valued)))
        except typer.BadParameter as error:
            raise retold(error) from error.__cause__
        except TyperException as error:
            raise _with_hint(error, self.params) from None


class Group(TyperGroup):
    """Commands under one name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """What stands before the name of the command: flags of logging, or ``help``."""
        rest = _from_command(args)
        if _completes(self):
            complete(ctx, rest[:2])
        if rest[:1] == ["help"]:
            rest = [*rest[1:], "--help"]
        try:
            return super().parse_args(ctx, rest)
        except TyperException as error:
            if error.message.startswith("No such option"):
                error.message += "; flags of a command stand behind its name"
            raise


def _with_hint(error: TyperException, parameters: Iterable[Any]) -> TyperException:
    """The error of a name behind a verb, as kubectl takes it, with a word on the flag."""
    named = [each.opts for each in parameters if "--name" in each.opts]
    if named and error.message.startswith("Got unexpected extra argument"):
        error.message += f"; a name is given by {' or '.join(named[0])}"
    return error


def _completes(command: Any) -> bool:
    """Whether ``command`` is a whole program, which a shell can complete."""
    return any("--install-completion" in parameter.opts for parameter in command.params)


def _from_command(args: list[str]) -> list[str]:
    """The arguments without the flags of logging in front."""
    first = 0
    while first < len(args) and _is_logging(args[first]):
        first += 2 if args[first] in _LOGGING else 1
    return args[first:]


def _is_logging(argument: str) -> bool:
    return argument.partition("=")[0] in _LOGGING or _LEVEL.fullmatch(argument) is not None


def _usual(args: list[str], switches: set[str], valued: set[str]) -> Iterator[str]:
    """``--switch=true`` as ``--switch``, ``-x=value`` as ``-x value``, without logging's flags."""
    before = ""
    for argument in args:
        flag, equals, value = argument.partition("=")
        if before in valued:
            yield argument
        elif _is_logging(argument) or (before in _LOGGING and not argument.startswith("-")):
            pass
        elif not equals:
            yield argument
        elif flag in switches:
            yield from [flag] if _truth(flag, value) else []
        elif flag in valued and not flag.startswith("--"):
            yield from (flag, value)
        else:
            yield argument
        before = argument


def _truth(flag: str, value: str) -> bool:
    try:
        return truth(value)
    except typer.BadParameter as error:
        raise typer.BadParameter(f"{flag}: {error.message}") from error


def group(about: str) -> typer.Typer:
    """A group of commands."""
    return typer.Typer(
        cls=Group,
        help=about,
        epilog=CODES,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings=HELP,
    )


def _unless_empty(path: Path | None) -> Path | None:
    """``--kubeconfig ""`` is as good as none, as with Volcano's; it arrives here as a dot."""
    return None if path == Path() else path


Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        "-k",
        envvar=["PUMICE_KUBECONFIG", "KUBECONFIG"],
        callback=_unless_empty,
        help="Path of a kubeconfig. (default: in a pod its service account, else kubectl's)",
    ),
]
Master = Annotated[
    str,
    typer.Option("--master", "-s", help="Address of the API server, instead of the kubeconfig's."),
]
Context = Annotated[str, typer.Option("--context", help="The context of the kubeconfig.")]
NAMESPACE_HELP = "The namespace. (default: the context's, else default)"
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help=NAMESPACE_HELP)]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="In all namespaces.")]
JobName = Annotated[str, typer.Option("--name", "-N", help="The name of the job.")]
ExtenderUrl = Annotated[
    str,
    typer.Option(
        envvar="PUMICE_EXTENDER_URL",
        callback=checked(unless_empty(base_of)),
        help="Address of the extender: http://127.0.0.1:8890.",
    ),
]
OutputForm = Annotated[
    Literal["table", "json", "yaml"], typer.Option("--output", "-o", help="The form of the output.")
]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Go on, and show each change.")]
QueueName = Annotated[str, typer.Option("--name", "-n", help="The name of the queue.")]
File = Annotated[str, typer.Option("--file", "-f", help="YAML file, - for standard input.")]
