"""``pumice extender``: the scheduler extender's process."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.processes import (
    Burst,
    DefaultQueue,
    HomeNamespace,
    KubeconfigPath,
    LogFormat,
    LogLevel,
    Qps,
    SchedulerConf,
    SchedulerNames,
    Switch,
    listening,
    refusal,
    settings_of,
)
from app.cli.versions import Version
from app.service.limits import PlacementHint
from app.settings.extender import ExtenderSettings
from app.telemetry import logging


def extender(  # noqa: PLR0917 - one parameter per flag, all given by name
    kubeconfig: KubeconfigPath = None,
    scheduler_conf: SchedulerConf = None,
    scheduler_name: SchedulerNames = None,
    default_queue: DefaultQueue = None,
    namespace: HomeNamespace = None,
    bind_address: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    listen_address: Annotated[
        str | None, typer.Option(help="A second address:port, for what only reads.")
    ] = None,
    anonymous_reads: Annotated[
        Switch | None,
        typer.Option(help="Tell readers beyond loopback without a token. (default: false)"),
    ] = None,
    token_audience: Annotated[
        str | None, typer.Option(help="Whom readers' tokens are for. (default: the API server)")
    ] = None,
    hide_other_namespaces: Annotated[
        Switch | None,
        typer.Option(help="Name no other namespace in conditions and events. (default: false)"),
    ] = None,
    tls_cert_file: Annotated[Path | None, typer.Option(help="Certificate: serve HTTPS.")] = None,
    tls_private_key_file: Annotated[Path | None, typer.Option(help="Its key.")] = None,
    client_ca_file: Annotated[
        Path | None, typer.Option(help="Clients must show a certificate signed by this CA.")
    ] = None,
    kube_api_qps: Qps = None,
    kube_api_burst: Burst = None,
    leader_elect: Annotated[
        Switch | None, typer.Option(help="Decide only while our kube-scheduler leads.")
    ] = None,
    leader_elect_resource_name: Annotated[
        str | None, typer.Option(help="Name of kube-scheduler's Lease.")
    ] = None,
    leader_elect_resource_namespace: Annotated[
        str | None, typer.Option(help="Namespace of kube-scheduler's Lease.")
    ] = None,
    leader_identity: Annotated[
        str | None, typer.Option(help="Start of the Lease's holder name. (default: the host name)")
    ] = None,
    placement: Annotated[
        PlacementHint | None, typer.Option(help="How a gated pod is told its place.")
    ] = None,
    barrier_timeout: Annotated[
        float | None, typer.Option(help="Seconds a gang waits at Bind for its next member.")
    ] = None,
    barrier_limit: Annotated[
        float | None, typer.Option(help="Seconds a Bind is held at most; below httpTimeout.")
    ] = None,
    planned_timeout: Annotated[
        float | None, typer.Option(help="Seconds a planned pod may take to be bound.")
    ] = None,
    prebind_timeout: Annotated[
        float | None,
        typer.Option(help="Seconds volumes and devices may take; the gang's room is kept."),
    ] = None,
    slot_timeout: Annotated[
        float | None,
        typer.Option(help="Seconds room is kept for pods not yet created, after the last one."),
    ] = None,
    veto_time: Annotated[
        float | None,
        typer.Option(help="Seconds at most a node refused by another filter is avoided."),
    ] = None,
    eviction_rate: Annotated[
        float | None, typer.Option(help="Evictions a second, at most.")
    ] = None,
    eviction_patience: Annotated[
        float | None,
        typer.Option(help="Seconds after its grace period in which an evicted pod must go."),
    ] = None,
    protect_above: Annotated[
        int | None,
        typer.Option(help="Waiting pods without a gate above which they are answered with errors."),
    ] = None,
    urgency: Annotated[
        int | None, typer.Option(help="By how much the niceness is lowered, where permitted.")
    ] = None,
    bind_foreign_pods: Annotated[
        Switch | None,
        typer.Option(help="Bind pods of other schedulers too: form C sends them. (default: false)"),
    ] = None,
    front: Annotated[
        Switch | None,
        typer.Option(help="Whether a process of its own answers Filter for planned pods (no TLS)."),
    ] = None,
    audit_dir: Annotated[
        Path | None,
        typer.Option(help="Folder that keeps decisions; without one they go with the process."),
    ] = None,
    audit_size: Annotated[
        int | None, typer.Option(help="MiB that kept decisions take at most.")
    ] = None,
    audit_days: Annotated[
        float | None, typer.Option(help="Days for which decisions are kept.")
    ] = None,
    record_size: Annotated[
        int | None, typer.Option(help="MiB of memory for what pumice record tells; 0: nothing.")
    ] = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    version: Version = None,
) -> None:
    """Answer kube-scheduler's filter, prioritize, bind and preempt calls.

    Every option is also an environment variable: PUMICE_ and its name in capitals.
    """
    given = {name: value for name, value in locals().items() if value is not None}
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
    from app.main.extender import run
    from app.main.start_error import StartError

    try:
        raise typer.Exit(run(settings, listener, bind))
    except StartError as error:
        raise refusal(str(error)) from error
