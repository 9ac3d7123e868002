"""The ``pumice`` command: one file per subcommand, registered here."""

from collections.abc import Callable
from logging import getLogger
from typing import Any

import typer

from app.cli import (
    audit,
    check_eviction,
    controllers,
    crds,
    eta,
    explain,
    extender,
    fits,
    priority,
    record,
    sandbox,
    scheduler_config,
    share,
    simulate,
    together,
    top,
    vcctl,
    versions,
    webhooks,
)
from app.cli.commands import HELP, Command, Group
from app.cli.endings import CODES, run
from app.cli.switches import Process
from app.telemetry import logging

_GROUPS = {
    "job": "Run jobs, list, view and stop them.",
    "queue": "Create queues, list, open and close them.",
    "jobflow": "JobFlows: jobs that wait for each other.",
    "jobtemplate": "JobTemplates, of which JobFlows make jobs.",
    "pod": "List the pods of jobs and queues.",
}
_SECTIONS = {
    "Jobs and queues": ("job", "queue", "pod", "jobflow", "jobtemplate"),
    "Why, when and what if": ("top", "explain", "eta", "priority", "share", "fits", "simulate"),
    "What was decided": ("audit", "why-evicted", "check-eviction", "record", "replay"),
    "Try it, install it": ("demo", "sandbox", "crds", "scheduler-config", "version"),
    "The processes of Pumice": ("extender", "controllers", "webhooks", "all"),
}
"""The commands in the order of the help, by what they are for."""


class Root(Group):
    """All commands; the help shows first what users need most."""

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Write the commands in sections."""
        for title, names in _SECTIONS.items():
            rows = [(name, str(self.commands[name].short_help or "")) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)


app = typer.Typer(
    cls=Root,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # complaints stay on one line, whatever the width of the terminal
    context_settings=HELP,
    help="Batch scheduling for Kubernetes on the stock kube-scheduler.",
    epilog=CODES,
)


@app.callback()
def pumice(version: versions.Version = None) -> None:
    """What may stand in front of every command."""


def _add(name: str, command: Callable[..., Any], about: str, **more: Any) -> None:
    """Register a command; ``about`` is its line in the help of all."""
    app.command(name, short_help=about, **{"cls": Command, **more})(command)


_add("extender", extender.extender, "Run the extender of kube-scheduler.", cls=Process)
_add("controllers", controllers.controllers, "Run the controllers.", cls=Process)
_add("webhooks", webhooks.webhooks, "Run the admission webhooks.", cls=Process)
_add("all", together.together, "Run all three in one process.", cls=Process)
_add(
    "scheduler-config",
    scheduler_config.scheduler_config,
    "Print kube-scheduler's configuration.",
    cls=Process,
)
_add("crds", crds.crds, "Print the CustomResourceDefinitions.")
_add("sandbox", sandbox.sandbox, "Run a cluster on this machine.", cls=Process)
_add("demo", sandbox.demo, "See jobs run and wait on such a cluster.")
for name, commands in vcctl.GROUPS.items():
    app.add_typer(commands, name=name, short_help=_GROUPS[name])
app.add_typer(top.app, name="top", short_help="Queues, waiting gangs and nodes, live.")
_add("explain", explain.explain, "Why a job, PodGroup or pod waits.")
_add("eta", eta.eta, "When a job, PodGroup or pod starts.")
_add("share", share.share, "What each queue deserves, holds and asks.")
_add("priority", priority.priority, "Where a group stands in line.")
_add("fits", fits.fits, "How many equal pods would start now.")
_add("simulate", simulate.simulate, "What would happen if.", epilog=simulate.CODES)
_add("audit", audit.audit, "What was decided about a job.")
_add("why-evicted", audit.why_evicted, "Why a pod was evicted.")
_add("record", record.record, "Write recent decisions to a file.")
_add("replay", record.replay, "Decide again what was recorded.", epilog=record.CODES)
_add(
    "check-eviction",
    check_eviction.check_eviction,
    "Verify certificates of evictions.",
    epilog=check_eviction.CODES,
)


@app.command("version", short_help="Print the version.")
def version() -> None:
    """Print the version."""
    versions.say()


def main() -> None:
    """Entry point of the console script."""
    logging.configure("INFO", "text")
    getLogger("uvicorn").setLevel("WARNING")
    run(app)
