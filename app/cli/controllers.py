"""``pumice controllers``: the controllers' process."""

from typing import Any, Final

import typer

from app.cli.options import options_of, with_options
from app.cli.processes import end_at_once, refusal, settings_of
from app.settings.controllers import ControllersSettings
from app.telemetry import logging


def run(given: dict[str, Any]) -> None:
    """Run the controllers: of jobs, PodGroups, queues, JobFlows, CronJobs and HyperNodes.

    Every option is also an environment variable: PUMICE_ and its name in capitals.
    """
    settings = settings_of(ControllersSettings, given)
    logging.configure(settings.log_level, settings.log_format)
    end_at_once()
    # Only now what takes a second or two to load.
    from app.kube.errors import ConfigError
    from app.main.controllers import run as serve
    from app.main.start_error import StartError

    try:
        raise typer.Exit(serve(settings))
    except (ConfigError, StartError, ValueError) as error:
        raise refusal(str(error)) from error


ALL: Final = options_of([ControllersSettings])
controllers: Final = with_options(run, ALL)
