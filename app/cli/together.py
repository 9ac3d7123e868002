"""``pumice all``: the extender, the controllers and the webhooks in one process."""

from typing import Annotated

import typer

from app.cli.processes import (
    DefaultQueue,
    HomeNamespace,
    KubeconfigPath,
    LogFormat,
    LogLevel,
    SchedulerConf,
    SchedulerNames,
    Switch,
    listening,
    refusal,
    settings_of,
)
from app.cli.versions import Version
from app.settings.together import roles_of
from app.telemetry import logging


def together(  # noqa: PLR0917 - one parameter per flag, all given by name
    kubeconfig: KubeconfigPath = None,
    scheduler_conf: SchedulerConf = None,
    scheduler_name: SchedulerNames = None,
    default_queue: DefaultQueue = None,
    namespace: HomeNamespace = None,
    bind_address: Annotated[str | None, typer.Option(help="Address of the extender.")] = None,
    port: Annotated[int | None, typer.Option(help="Port of the extender.")] = None,
    listen_address: Annotated[
        str | None, typer.Option(help="A second address:port of it, for what only reads.")
    ] = None,
    healthz_address: Annotated[
        str | None, typer.Option(help="address:port of the controllers' /healthz and /readyz.")
    ] = None,
    webhooks: Annotated[Switch | None, typer.Option(help="Whether webhooks are served.")] = None,
    webhook_bind_address: Annotated[
        str | None, typer.Option(help="Address of the webhooks.")
    ] = None,
    webhook_port: Annotated[int | None, typer.Option(help="Port of the webhooks.")] = None,
    public_url: Annotated[
        str | None,
        typer.Option(
            "--public-url",
            "--webhook-url",
            help="https://host:port at which the API server finds them, instead of the Service.",
        ),
    ] = None,
    leader_elect: Annotated[
        Switch | None, typer.Option(help="Work only while leading, each part for itself.")
    ] = None,
    leader_elect_resource_namespace: Annotated[
        str | None, typer.Option(help="Namespace of the Leases.")
    ] = None,
    kube_api_qps: Annotated[
        float | None,
        typer.Option(help="Requests a second, of each part. (default: 2000, the webhooks' 50)"),
    ] = None,
    kube_api_burst: Annotated[
        int | None,
        typer.Option(help="Requests at once, of each part. (default: 2000, the webhooks' 100)"),
    ] = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    version: Version = None,
) -> None:
    """Run the extender, the controllers and the webhooks in one process.

    What can be set on each of them is set by its variables; PUMICE_PORT and the like are the
    extender's.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    roles = settings_of(roles_of, given)
    from app.main.serving.server import Bind

    at = Bind(host=roles.extender.bind_address, port=roles.extender.port)
    logging.configure(roles.extender.log_level, roles.extender.log_format)
    listener = listening(at)
    # Only now what takes a second or two to load.
    from app.main.start_error import StartError
    from app.main.together import Door, Doors, run

    judge = roles.webhooks and Bind(host=roles.webhooks.bind_address, port=roles.webhooks.port)
    doors = Doors(Door(listener, at), Door(listening(judge), judge) if judge else None)
    try:
        raise typer.Exit(run(roles, doors))
    except StartError as error:
        raise refusal(str(error)) from error
