"""``pumice webhooks``: the admission webhooks' process."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.processes import (
    Burst,
    KubeconfigPath,
    LogFormat,
    LogLevel,
    Qps,
    SchedulerNames,
    Switch,
    listening,
    refusal,
    settings_of,
)
from app.cli.versions import Version
from app.settings.webhooks import WebhookSettings
from app.telemetry import logging


def webhooks(  # noqa: PLR0917 - one parameter per flag, all given by name
    kubeconfig: KubeconfigPath = None,
    scheduler_name: SchedulerNames = None,
    bind_address: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    tls_cert_file: Annotated[
        Path | None, typer.Option(help="Certificate; without one it is made, and renewed.")
    ] = None,
    tls_private_key_file: Annotated[Path | None, typer.Option(help="Its key.")] = None,
    ca_cert_file: Annotated[
        Path | None,
        typer.Option(help="The authority that signed it, to be told to the API server."),
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(
            "--public-url",
            "--webhook-url",
            help="https://host:port at which the API server finds us, instead of the Service.",
        ),
    ] = None,
    webhook_namespace: Annotated[
        str | None, typer.Option(help="Namespace of the Service and of our Secret.")
    ] = None,
    webhook_service_name: Annotated[str | None, typer.Option(help="Name of the Service.")] = None,
    webhook_service_port: Annotated[int | None, typer.Option(help="Port of the Service.")] = None,
    webhook_configuration_name: Annotated[
        str | None, typer.Option(help="Name of the webhook configurations.")
    ] = None,
    certificate_secret: Annotated[
        str | None, typer.Option(help="Secret that keeps certificates we make.")
    ] = None,
    register_webhooks: Annotated[
        Switch | None, typer.Option(help="Write the webhook configurations.")
    ] = None,
    failure_policy: Annotated[
        str | None, typer.Option(help="Ignore or Fail: what happens while no webhook answers.")
    ] = None,
    enabled_admission: Annotated[
        str | None, typer.Option(help="Paths of the webhooks, comma separated. (default: all)")
    ] = None,
    admission_conf: Annotated[
        Path | None, typer.Option(help="Resource groups of pods; reloaded when it changes.")
    ] = None,
    max_queue_depth: Annotated[
        int | None, typer.Option(help="Levels of queues below the root.")
    ] = None,
    enable_root_queue_protection: Annotated[
        Switch | None, typer.Option(help="Refuse changes of the root queue's resources.")
    ] = None,
    enable_queue_allocated_pods_check: Annotated[
        Switch | None, typer.Option(help="Refuse to delete queues that have pods.")
    ] = None,
    loose_volumes: Annotated[
        Switch | None, typer.Option(help="Take volumes of jobs as Volcano's first releases did.")
    ] = None,
    gate_pods: Annotated[
        Switch | None,
        typer.Option(help="Gate pods, for API servers without mutating admission policies."),
    ] = None,
    feature_gates: Annotated[
        str | None, typer.Option(help="SchedulingGatesQueueAdmission=true; others mean nothing.")
    ] = None,
    leader_elect: Annotated[
        Switch | None, typer.Option(help="Keep certificates only while holding the Lease.")
    ] = None,
    leader_elect_resource_name: Annotated[str | None, typer.Option(help="Its name.")] = None,
    leader_elect_resource_namespace: Annotated[
        str | None, typer.Option(help="Its namespace.")
    ] = None,
    kube_api_qps: Qps = None,
    kube_api_burst: Burst = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    version: Version = None,
) -> None:
    """Complete and judge jobs, PodGroups, queues and pods when they are created or changed.

    Every option is also an environment variable: PUMICE_ and its name in capitals.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    settings = settings_of(WebhookSettings, given)
    from app.main.serving.server import Bind

    bind = Bind(host=settings.bind_address, port=settings.port)
    logging.configure(settings.log_level, settings.log_format)
    listener = listening(bind)
    # Only now what takes a second or two to load.
    from app.main.start_error import StartError
    from app.main.webhooks import run

    try:
        raise typer.Exit(run(settings, listener, bind))
    except StartError as error:
        raise refusal(str(error)) from error
    finally:
        listener.close()
