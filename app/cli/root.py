"""The ``pumice`` command: one file per subcommand, registered here."""

from logging import getLogger

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

app = typer.Typer(
    cls=Group,
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


app.command("extender", cls=Process)(extender.extender)
app.command("controllers", cls=Process)(controllers.controllers)
app.command("webhooks", cls=Process)(webhooks.webhooks)
app.command("all", cls=Process)(together.together)
app.command("scheduler-config", cls=Process)(scheduler_config.scheduler_config)
app.command("crds")(crds.crds)
app.command("sandbox", cls=Process)(sandbox.sandbox)
app.command("demo")(sandbox.demo)
for name, commands in vcctl.GROUPS.items():
    app.add_typer(commands, name=name)
app.add_typer(top.app, name="top")
app.command("explain", cls=Command)(explain.explain)
app.command("eta", cls=Command)(eta.eta)
app.command("share", cls=Command)(share.share)
app.command("priority", cls=Command)(priority.priority)
app.command("fits", cls=Command)(fits.fits)
app.command("simulate", cls=Command, epilog=simulate.CODES)(simulate.simulate)
app.command("audit", cls=Command)(audit.audit)
app.command("why-evicted", cls=Command)(audit.why_evicted)
app.command("record", cls=Command)(record.record)
app.command("replay", cls=Command, epilog=record.CODES)(record.replay)
app.command("check-eviction", epilog=check_eviction.CODES)(check_eviction.check_eviction)


@app.command("version")
def version() -> None:
    """Print the version."""
    versions.say()


def main() -> None:
    """Entry point of the console script."""
    logging.configure("INFO", "text")
    getLogger("uvicorn").setLevel("WARNING")
    run(app)
