"""``--version``: what every program answers with."""

from typing import Annotated

import typer


def say() -> None:
    """Print the version, whatever the program is called."""
    from importlib.metadata import version as installed_version  # takes longer than most commands

    typer.echo(f"pumice {installed_version('pumice')}")


def _answered(wanted: bool | None) -> None:
    if wanted:
        say()
        raise typer.Exit


Version = Annotated[
    bool | None,
    typer.Option(
        "--version",
        is_eager=True,
        expose_value=False,
        callback=_answered,
        help="Print the version.",
    ),
]
