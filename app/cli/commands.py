"""What the commands of Volcano's command line share: flags, and how flags may be written.

Its switches may be given a value (``--all-namespaces=false``), so ours may too.
"""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from app.cli.endings import CODES

HELP = {"help_option_names": ["-h", "--help"]}

_WORDS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


class Command(TyperCommand):
    """A command whose switches also take ``=true`` and ``=false``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the values of switches apart before anything else looks at them."""
        switches = {
            name
            for parameter in self.params
            if getattr(parameter, "is_flag", False)
            for name in parameter.opts
        }
        return super().parse_args(ctx, [arg for each in args for arg in _written(each, switches)])


def _written(argument: str, switches: set[str]) -> list[str]:
    name, equals, value = argument.partition("=")
    if not equals or name not in switches:
        return [argument]
    if value.lower() not in _WORDS:
        raise typer.BadParameter(f"{name}: {value!r} is neither true nor false")
    return [name] if _WORDS[value.lower()] else []


def group(about: str) -> typer.Typer:
    """A group of commands."""
    return typer.Typer(
        help=about,
        epilog=CODES,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings=HELP,
    )


Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        "-k",
        envvar=["PUMICE_KUBECONFIG", "KUBECONFIG"],
        help="Path of a kubeconfig; in a pod its service account, else kubectl's.",
    ),
]
Master = Annotated[
    str, typer.Option("--master", "-s", help="Address of the API server, before the kubeconfig's.")
]
Context = Annotated[str, typer.Option("--context", help="Which context of the kubeconfig.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="The namespace.")]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="In all namespaces.")]
JobName = Annotated[str, typer.Option("--name", "-N", help="The name of the job.")]
QueueName = Annotated[str, typer.Option("--name", "-n", help="The name of the queue.")]
File = Annotated[str, typer.Option("--file", "-f", help="YAML file, - for standard input.")]
