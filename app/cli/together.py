"""``pumice all``: the extender, the controllers and the webhooks in one process."""

from typing import Any, Final

import typer

from app.cli.options import options_of, with_options
from app.cli.processes import listening, refusal, settings_of
from app.settings.together import OPTIONS, TOGETHER, roles_of
from app.telemetry import logging


def run(given: dict[str, Any]) -> None:
    """Run the extender, the controllers and the webhooks in one process.

    What can be set on each of them is set by its variables; PUMICE_PORT and the like are the
    extender's.
    """
    roles = settings_of(roles_of, given)
    from app.main.serving.server import Bind

    at = Bind(host=roles.extender.bind_address, port=roles.extender.port)
    logging.configure(roles.extender.log_level, roles.extender.log_format)
    listener = listening(at)
    # Only now what takes a second or two to load.
    from app.main.start_error import StartError
    from app.main.together import Door, Doors
    from app.main.together import run as serve

    judge = roles.webhooks and Bind(host=roles.webhooks.bind_address, port=roles.webhooks.port)
    doors = Doors(Door(listener, at), Door(listening(judge), judge) if judge else None)
    try:
        raise typer.Exit(serve(roles, doors))
    except StartError as error:
        raise refusal(str(error)) from error


ALL: Final = options_of(TOGETHER, OPTIONS)
together: Final = with_options(run, ALL)
