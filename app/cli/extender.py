"""``pumice extender``: the scheduler extender's process."""

from typing import Any, Final

import typer

from app.cli.options import options_of, with_options
from app.cli.processes import listening, refusal, settings_of
from app.settings.extender import ExtenderSettings
from app.telemetry import logging


def run(given: dict[str, Any]) -> None:
    """Answer kube-scheduler's filter, prioritize, bind and preempt calls.

    Every option is also an environment variable: PUMICE_ and its name in capitals.
    """
    settings = settings_of(ExtenderSettings, given)
    from app.main.serving.server import Bind

    bind = Bind(
        host=settings.bind_address,
        port=settings.port,
        cert_file=settings.tls_cert_file,
        key_file=settings.tls_private_key_file,
        client_ca_file=settings.client_ca_file,
    )
    logging.configure(settings.log_level, settings.log_format)
    listener = listening(bind)
    # Only now what takes a second or two to load.
    from app.main.extender import run as serve
    from app.main.start_error import StartError

    try:
        raise typer.Exit(serve(settings, listener, bind))
    except StartError as error:
        raise refusal(str(error)) from error


ALL: Final = options_of([ExtenderSettings])
extender: Final = with_options(run, ALL)
