"""The batch commands of the old days: ``vsub vjobs vqueues vcancel vsuspend vresume``.

They do what ``job`` and ``queue`` do, but ``-n`` is the name here and ``-N`` the namespace.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli import job_actions, output, queue_rows
from app.cli.cluster import Where, ask, namespace_for
from app.cli.commands import (
    HELP,
    NAMESPACE_HELP,
    AllNamespaces,
    Command,
    Context,
    Kubeconfig,
    Master,
)
from app.cli.endings import CODES, failing_to, run
from app.cli.job_actions import Choice, Wish, key_for
from app.cli.job_build import DEFAULT_AMOUNTS, Order, job_of
from app.cli.job_flags import (
    Limits,
    Minimum,
    OfScheduler,
    Replicas,
    Requests,
    Selector,
    Timeout,
    Wait,
    Words,
)
from app.cli.queue import census
from app.cli.versions import Version
from app.telemetry import logging
from app.wire.kinds import QUEUES
from app.wire.unstructured import Object

Name = Annotated[str, typer.Option("--name", "-n", help="The name.")]
Namespace = Annotated[str | None, typer.Option("--namespace", "-N", help=NAMESPACE_HELP)]


def submit(
    *,
    image: Annotated[
        str, typer.Option("--image", "-i", envvar="VOLCANO_DEFAULT_IMAGE", help="The image.")
    ] = "busybox",
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", "-N", envvar="VOLCANO_DEFAULT_JOB_NAMESPACE", help=NAMESPACE_HELP
        ),
    ] = None,
    name: Name = "",
    minimum: Minimum = 1,
    replicas: Replicas = 1,
    requests: Requests = DEFAULT_AMOUNTS,
    limits: Limits = DEFAULT_AMOUNTS,
    scheduler: Annotated[
        str,
        typer.Option(
            "--scheduler", "-S", envvar="VOLCANO_SCHEDULER_NAME", help="The scheduler of its pods."
        ),
    ] = "volcano",
    command: Words = "",
    wait: Wait = False,
    timeout: Timeout = "",
    form: output.Output = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
    _version: Version = None,
) -> None:
    """Submit a job."""
    with failing_to("run job"):
        where = Where(kubeconfig, master, context)
        job = job_of(
            Order(
                name=name,
                namespace=namespace_for(where, namespace),
                image=image,
                minimum=minimum,
                replicas=replicas,
                requests=requests,
                limits=limits,
                scheduler=scheduler,
                command=command,
            )
        )
        job_actions.submit(where, [job], Wish(form, wait, timeout))


def jobs(
    *,
    namespace: Namespace = None,
    name: Name = "",
    scheduler: OfScheduler = "",
    all_namespaces: AllNamespaces = False,
    selector: Selector = "",
    form: output.Output = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
    _version: Version = None,
) -> None:
    """List jobs, or show one that is named."""
    with failing_to("view job" if name else "list job"):
        where = Where(kubeconfig, master, context)
        if name:
            key = key_for(where, namespace, name, verb="view")
            job_actions.describe(where, key, form=form, conditions=False)
            return
        chosen = Choice(
            namespace=namespace,
            all_namespaces=all_namespaces,
            scheduler=scheduler,
            selector=selector,
        )
        job_actions.show_all(where, chosen, form=form)


def queues(
    *,
    name: Name = "",
    form: output.Output = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
    _version: Version = None,
) -> None:
    """List queues, or show one that is named."""
    with failing_to("get queue" if name else "list queue"):
        where = Where(kubeconfig, master, context)
        found, counts = ask(where, lambda cluster: census(cluster, name, form=form))

        def table(items: Sequence[Object], wide: bool) -> str:
            return queue_rows.short_rows(items, counts, wide=wide)

        several = output.first if name else output.listed
        typer.echo(several(found, form=form, resource=QUEUES, table=table), nl=False)


def cancel(
    *,
    namespace: Namespace = None,
    name: Name = "",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
    _version: Version = None,
) -> None:
    """Cancel a job: delete it and its pods."""
    with failing_to("cancel job"):
        where = Where(kubeconfig, master, context)
        key = key_for(where, namespace, name, verb="cancel")
        job_actions.delete(where, key, said="cancel")


def suspend(
    *,
    namespace: Namespace = None,
    name: Name = "",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
    _version: Version = None,
) -> None:
    """Abort a job; it can be resumed."""
    with failing_to("suspend job"):
        where = Where(kubeconfig, master, context)
        key = key_for(where, namespace, name, verb="suspend")
        job_actions.order(where, key, "AbortJob")


def resume(
    *,
    namespace: Namespace = None,
    name: Name = "",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
    _version: Version = None,
) -> None:
    """Resume a job that was aborted."""
    with failing_to("resume job"):
        where = Where(kubeconfig, master, context)
        key = key_for(where, namespace, name, verb="resume")
        job_actions.order(where, key, "ResumeJob")


def _command(action: Callable[..., Any]) -> typer.Typer:
    """A program that does one thing."""
    program = typer.Typer(
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings=HELP,
    )
    program.command(cls=Command, epilog=CODES)(action)
    return program


PROGRAMS = {
    "vsub": _command(submit),
    "vjobs": _command(jobs),
    "vqueues": _command(queues),
    "vcancel": _command(cancel),
    "vsuspend": _command(suspend),
    "vresume": _command(resume),
}


def main() -> None:
    """Entry point of all programs; the program's name says which one is meant."""
    logging.configure("WARNING", "text")
    run(PROGRAMS[Path(sys.argv[0]).stem])
