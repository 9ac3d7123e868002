"""``pumice webhooks``: the admission webhooks' process."""

from typing import Any, Final

import typer

from app.cli.options import options_of, with_options
from app.cli.processes import listening, refusal, settings_of
from app.settings.webhooks import WebhookSettings
from app.telemetry import logging


def run(given: dict[str, Any]) -> None:
    """Complete and judge jobs, PodGroups, queues and pods when they are created or changed.

    Every option is also an environment variable: PUMICE_ and its name in capitals.
    """
    settings = settings_of(WebhookSettings, given)
    from app.main.serving.server import Bind

    bind = Bind(host=settings.bind_address, port=settings.port)
    logging.configure(settings.log_level, settings.log_format)
    listener = listening(bind)
    # Only now what takes a second or two to load.
    from app.main.start_error import StartError
    from app.main.webhooks import run as serve

    try:
        raise typer.Exit(serve(settings, listener, bind))
    except StartError as error:
        raise refusal(str(error)) from error
    finally:
        listener.close()


ALL: Final = options_of([WebhookSettings])
webhooks: Final = with_options(run, ALL)
