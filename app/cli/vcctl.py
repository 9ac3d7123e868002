"""``vcctl``: Volcano's command line by its own name, with Pumice behind it."""

import platform

import typer

from app.cli import flows, job, pod, queue
from app.cli.commands import HELP, Command, Group
from app.cli.endings import CODES, run
from app.cli.versions import Version
from app.telemetry import logging
from app.wire.kinds import JOBS

GROUPS = {
    "job": job.app,
    "queue": queue.app,
    "jobflow": flows.JOB_FLOW,
    "jobtemplate": flows.JOB_TEMPLATE,
    "pod": pod.app,
}

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=HELP,
    help="Jobs, queues and flows of Volcano.",
    epilog=CODES,
)
for name, commands in GROUPS.items():
    app.add_typer(commands, name=name)


@app.callback()
def vcctl(version: Version = None) -> None:
    """What may stand in front of every command."""


@app.command("version", cls=Command)
def version() -> None:
    """Print the version information."""
    from importlib.metadata import version as installed_version  # takes longer than most commands

    typer.echo(f"API Version: {JOBS.api_version.rpartition('/')[2]}")
    typer.echo(f"Version: pumice {installed_version('pumice')}")
    typer.echo(f"Python Version: {platform.python_version()}")
    typer.echo(f"OS/Arch: {platform.system().lower()}/{platform.machine()}")


def main() -> None:
    """Entry point of the console script."""
    logging.configure("WARNING", "text")
    run(app)
