"""``pumice pod`` (``vcctl pod``): the pods of jobs and of queues."""

from collections.abc import Sequence
from typing import Annotated

import typer

from app.cli import output, pod_rows
from app.cli.cluster import Cluster, Where, ask, namespace_for
from app.cli.commands import (
    AllNamespaces,
    Command,
    Context,
    Kubeconfig,
    Master,
    Namespace,
    Watch,
    group,
)
from app.cli.endings import Code, CommandFailed, failing_to
from app.main.clock import steady_clock
from app.wire.kinds import PODS
from app.wire.unstructured import Object

app = group("Pods of jobs and of queues.")


@app.callback()
def pods() -> None:
    """Keep ``list`` a word of its own although it is the only one."""


@app.command("list", cls=Command)
def list_pods(
    *,
    queue: Annotated[str, typer.Option("--queue", "-q", help="Only pods of this queue.")] = "",
    job: Annotated[str, typer.Option("--job", "-j", help="Only pods of this job.")] = "",
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    watch: Watch = False,
    form: output.Output = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """List pods: of a job, of a queue, or of all jobs."""
    with failing_to("list pod"):
        where = Where(kubeconfig, master, context)
        space = "" if all_namespaces else namespace_for(where, namespace)
        if watch:
            _watch(where, space, job=job, queue=queue, form=form)
            return
        found = ask(where, lambda cluster: select(cluster, space, job=job, queue=queue))

        def table(items: Sequence[Object], wide: bool) -> str:
            now = steady_clock()()
            return pod_rows.rows(items, now=now, wide=wide, all_namespaces=all_namespaces)

        typer.echo(output.listed(found, form=form, resource=PODS, table=table), nl=False)


def _watch(where: Where, namespace: str, *, job: str, queue: str, form: output.Form) -> None:
    # What watches, and what draws, takes a while to load.
    from app.cli.watching import Listing, watch

    if job and queue:
        why = "--watch follows the pods of a job or of a queue: say --job or --queue"
        raise CommandFailed(Code.USAGE, why)
    of_jobs = "" if queue else pod_rows.JOB_LABEL
    listing = Listing(
        resource=PODS,
        namespace=namespace,
        labels=f"{pod_rows.JOB_LABEL}={job}" if job else of_jobs,
        is_chosen=lambda pod: not queue or bool(pod_rows.of_queue([pod], queue)),
        columns=lambda now: pod_rows.columns(
            now=now, wide=form == "wide", all_namespaces=not namespace
        ),
        form=form,
        command="pod list",
    )
    watch(where, listing)


async def select(cluster: Cluster, namespace: str, *, job: str, queue: str) -> list[Object]:
    """The pods of ``job``, else of ``queue``, else of any job."""
    if not job and queue:
        return pod_rows.of_queue(await cluster.list(PODS, namespace=namespace), queue)
    labels = f"{pod_rows.JOB_LABEL}={job}" if job else pod_rows.JOB_LABEL
    found = await cluster.list(PODS, namespace=namespace, labels=labels)
    if job and queue and pod_rows.is_elsewhere(found, queue):
        why = f"the input vcjob {job} does not match the queue {queue}"
        raise CommandFailed(Code.USAGE, why)
    return found
