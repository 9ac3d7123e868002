"""``pumice job`` (``vcctl job``): run, list, view, suspend, resume, delete.

Only flags are read here; `job_actions` does what they ask for.
"""

from typing import Annotated

import typer

from app.cli import job_actions, output
from app.cli.cluster import Where, namespace_for, warn
from app.cli.commands import (
    AllNamespaces,
    Command,
    Context,
    ExtenderUrl,
    JobName,
    Kubeconfig,
    Master,
    Namespace,
    Watch,
    group,
)
from app.cli.documents import expect_yaml, read
from app.cli.endings import Code, CommandFailed, failing_to
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
from app.wire.kinds import JOBS
from app.wire.unstructured import Object
from app.wire.unstructured import name as name_of
from app.wire.unstructured import namespace as namespace_of

app = group("Run jobs, look at them, stop them.")


@app.command("run", cls=Command)
def run(
    *,
    image: Annotated[
        str, typer.Option("--image", "-i", help="The image of the container.")
    ] = "busybox",
    namespace: Namespace = None,
    job_name: JobName = "",
    minimum: Minimum = 1,
    replicas: Replicas = 1,
    requests: Requests = DEFAULT_AMOUNTS,
    limits: Limits = DEFAULT_AMOUNTS,
    scheduler: Annotated[
        str, typer.Option("--scheduler", "-S", help="The scheduler of the pods.")
    ] = "volcano",
    queue: Annotated[str, typer.Option("--queue", "-q", help="The queue of the job.")] = "",
    command: Words = "",
    file: Annotated[
        str,
        typer.Option("--filename", "-f", help="YAML file with jobs, - for standard input."),
    ] = "",
    wait: Wait = False,
    timeout: Timeout = "",
    form: output.Output = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Run a job made of flags, or the jobs of a file."""
    with failing_to("run job"):
        where = Where(kubeconfig, master, context)
        order = Order(
            name=job_name,
            namespace=namespace_for(where, namespace),
            image=image,
            minimum=minimum,
            replicas=replicas,
            requests=requests,
            limits=limits,
            scheduler=scheduler,
            queue=queue,
            command=command,
        )
        if file and job_name:
            warn(f"--name {job_name} is not heeded: the jobs of {file} have names of their own")
        jobs = _of_file(file, where, namespace) if file else [job_of(order)]
        job_actions.submit(where, jobs, Wish(form, wait, timeout))


def _of_file(file: str, where: Where, namespace: str | None) -> list[Object]:
    """The jobs of the file; where no namespace is asked for, each is in the one that it names."""
    expect_yaml(file)
    jobs = read(file, JOBS, namespace=namespace_for(where, namespace))
    for job in jobs:
        if namespace not in {None, namespace_of(job)}:
            raise CommandFailed(
                Code.USAGE,
                f"{name_of(job)} is in the namespace {namespace_of(job)}: the namespace of the "
                "provided object does not match the namespace sent on the request",
            )
    return jobs


@app.command("list", cls=Command)
def list_jobs(
    *,
    queue: Annotated[str, typer.Option("--queue", "-q", help="Only jobs of this queue.")] = "",
    namespace: Namespace = None,
    scheduler: OfScheduler = "",
    all_namespaces: AllNamespaces = False,
    selector: Selector = "",
    extender_url: ExtenderUrl = "",
    watch: Watch = False,
    form: output.Output = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """List jobs; with -o wide, and an address of the extender, with their ETAs."""
    with failing_to("list job"):
        chosen = Choice(
            namespace=namespace,
            all_namespaces=all_namespaces,
            queue=queue,
            scheduler=scheduler,
            selector=selector,
            extender_url=extender_url,
        )
        show = job_actions.watch_all if watch else job_actions.show_all
        show(Where(kubeconfig, master, context), chosen, form=form)


@app.command("view", cls=Command)
def view(
    *,
    namespace: Namespace = None,
    job_name: JobName = "",
    form: output.Output = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Show everything about one job."""
    with failing_to("view job"):
        where = Where(kubeconfig, master, context)
        hint = " (specified by --name or -N)"
        key = key_for(where, namespace, job_name, verb="view", hint=hint)
        job_actions.describe(where, key, form=form)


@app.command("suspend", cls=Command)
def suspend(
    *,
    namespace: Namespace = None,
    job_name: JobName = "",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Abort a job; it can be resumed."""
    with failing_to("suspend job"):
        where = Where(kubeconfig, master, context)
        key = key_for(where, namespace, job_name, verb="suspend")
        job_actions.order(where, key, "AbortJob")


@app.command("resume", cls=Command)
def resume(
    *,
    namespace: Namespace = None,
    job_name: JobName = "",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Resume a job that was aborted."""
    with failing_to("resume job"):
        where = Where(kubeconfig, master, context)
        key = key_for(where, namespace, job_name, verb="resume")
        job_actions.order(where, key, "ResumeJob")


@app.command("delete", cls=Command)
def delete(
    *,
    namespace: Namespace = None,
    job_name: JobName = "",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Delete a job and its pods."""
    with failing_to("delete job"):
        where = Where(kubeconfig, master, context)
        key = key_for(where, namespace, job_name, verb="delete")
        job_actions.delete(where, key, said="delete")
