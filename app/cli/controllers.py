"""``pumice controllers``: the controllers' process."""

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
    end_at_once,
    refusal,
    settings_of,
)
from app.cli.versions import Version
from app.settings.controllers import ControllersSettings
from app.telemetry import logging


def controllers(  # noqa: PLR0917 - one parameter per flag, all given by name
    kubeconfig: KubeconfigPath = None,
    scheduler_name: SchedulerNames = None,
    names: Annotated[
        str | None,
        typer.Option(
            "--controllers",
            help="Which ones: * for all, a name for one, -name to leave one out; comma separated.",
        ),
    ] = None,
    extender_url: Annotated[
        str | None, typer.Option(help="Where slots for pods of jobs are asked for.")
    ] = None,
    kube_api_qps: Qps = None,
    kube_api_burst: Burst = None,
    worker_threads: Annotated[int | None, typer.Option(help="Jobs looked at at once.")] = None,
    worker_threads_for_podgroup: Annotated[
        int | None, typer.Option(help="Plain pods looked at at once.")
    ] = None,
    worker_threads_for_queue: Annotated[
        int | None, typer.Option(help="Queues looked at at once.")
    ] = None,
    worker_threads_for_gc: Annotated[
        int | None, typer.Option(help="Finished jobs looked at at once.")
    ] = None,
    worker_threads_for_cronjob: Annotated[
        int | None, typer.Option(help="CronJobs looked at at once.")
    ] = None,
    max_requeue_num: Annotated[
        int | None, typer.Option(help="Repeats after which a refused job is ended; -1: never.")
    ] = None,
    inherit_owner_annotations: Annotated[
        Switch | None, typer.Option(help="PodGroups heed the annotations of their pods' owners.")
    ] = None,
    discovery_config_map: Annotated[
        str | None,
        typer.Option(help="ConfigMap in the Lease's namespace: which HyperNodes are discovered."),
    ] = None,
    leader_elect: Annotated[
        Switch | None, typer.Option(help="Work only while holding the Lease.")
    ] = None,
    leader_elect_resource_name: Annotated[str | None, typer.Option(help="Its name.")] = None,
    leader_elect_resource_namespace: Annotated[
        str | None, typer.Option(help="Its namespace.")
    ] = None,
    healthz_address: Annotated[
        str | None, typer.Option(help="address:port of /healthz, /readyz and /metrics.")
    ] = None,
    listen_address: Annotated[
        str | None, typer.Option(help="A second address:port of the same.")
    ] = None,
    log_level: LogLevel = None,
    log_format: LogFormat = None,
    version: Version = None,
) -> None:
    """Run the controllers: of jobs, PodGroups, queues, JobFlows, CronJobs and HyperNodes.

    Every option is also an environment variable: PUMICE_ and its name in capitals.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    if names is not None:
        given["controllers"] = given.pop("names")
    settings = settings_of(ControllersSettings, given)
    logging.configure(settings.log_level, settings.log_format)
    end_at_once()
    # Only now what takes a second or two to load.
    from app.kube.errors import ConfigError
    from app.main.controllers import run
    from app.main.start_error import StartError

    try:
        raise typer.Exit(run(settings))
    except (ConfigError, StartError, ValueError) as error:
        raise refusal(str(error)) from error
