"""``pumice top``: how much queues and nodes hold, and what waits."""

import os
import sys
from typing import Annotated, Literal

import typer

from app.cli import node_usage, output, queue_shares
from app.cli.cluster import Cluster, Objects, Where, ask, warn
from app.cli.commands import Command, Context, ExtenderUrl, Kubeconfig, Master, OutputForm, group
from app.cli.endings import Code, CommandFailed, failing_to
from app.cli.node_usage import Nodes, Usage, placed
from app.cli.queue_shares import Share
from app.kit.durations import parse_duration
from app.kube import errors
from app.wire.kinds import HYPER_NODES, NODES, PODS, QUEUES
from app.wire.unstructured import name

app = group("How much queues and nodes hold, and what waits.")

SHORTEST_S, LONGEST_S = 0.2, 3600.0
"""Between these an interval is."""


@app.callback(invoke_without_command=True, no_args_is_help=False)
def top(
    context: typer.Context,
    *,
    interval: Annotated[
        str, typer.Option("--interval", "-i", help="How often the view is drawn anew: 500ms, 5s.")
    ] = "2s",
    once: Annotated[bool, typer.Option("--once", help="Print everything once, and end.")] = False,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Only gangs of this namespace. (default: all)")
    ] = "",
    extender_url: ExtenderUrl = "",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context_name: Context = "",
) -> None:
    """Show queues, waiting gangs with their reasons, and nodes: live on a terminal, q ends it.

    With --extender-url it also says when each gang starts, as far as the extender can tell.
    Where the output is no terminal, everything is printed once. `queues` and `nodes` print one
    table.
    """
    if context.invoked_subcommand is not None:
        _refuse_flags(context, context.invoked_subcommand)
        return
    with failing_to("show what the cluster does"):
        # What draws, and what watches, takes a while to load.
        from app.cli import top_live

        seconds = _seconds(interval)
        where = Where(kubeconfig, master, context_name)
        look = top_live.Look(
            namespace=namespace,
            extender_url=extender_url,
            every_s=seconds,
            every=interval,
            once=once,
        )
        top_live.show(where, look)


@app.command("queues", cls=Command)
def queues(
    *,
    form: OutputForm = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Show queues as a tree, with how much of what they deserve they hold.

    An amount behind ~ is a part by weight: the queue does not say what it deserves of it.
    """
    with failing_to("top queues"):
        found = ask(Where(kubeconfig, master, context), look)
        if form != "table":
            typer.echo(output.document(queue_shares.values(found), form), nl=False)
        elif not found:
            typer.echo(output.EMPTY, nl=False)
        else:
            text = queue_shares.rows(found)
            typer.echo(coloured(text) if wants_colour() else text, nl=False)


@app.command("nodes", cls=Command)
def nodes(
    *,
    topology: Annotated[
        bool, typer.Option("--topology", help="By domains of the network (HyperNodes), as a tree.")
    ] = False,
    form: Annotated[
        Literal["table", "wide", "json", "yaml"],
        typer.Option("--output", "-o", help="The form of the output."),
    ] = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Show what is requested of nodes, of all that they have to give: requested/allocatable.

    With --topology a line is a domain of the network, with the nodes below it.
    """
    with failing_to("top nodes"):

        async def look(cluster: Cluster) -> tuple[list[Usage], bool]:
            nodes = await cluster.list(NODES)
            there = Nodes(nodes, filter(None, map(placed, await cluster.list(PODS))))
            hyper_nodes = await cluster.list(HYPER_NODES) if topology else []
            found = there.by_domain(hyper_nodes) if topology else there.each()
            return found, bool(hyper_nodes)

        found, has_domains = ask(Where(kubeconfig, master, context), look)
        if form not in {"table", "wide"}:
            typer.echo(output.document(node_usage.values(found), form), nl=False)
        elif topology and not has_domains:
            typer.echo(node_usage.NO_DOMAINS, nl=False)
        elif not found:
            typer.echo(output.EMPTY, nl=False)
        else:
            text = node_usage.rows(found, domains=topology, wide=form == "wide")
            typer.echo(text, nl=False)


async def look(cluster: Cluster) -> list[Share]:
    """Every queue's share; without the right to see nodes, of what queues say themselves."""
    queues = await cluster.list(QUEUES)
    try:
        nodes = await cluster.list(NODES)
    except errors.Forbidden as error:
        warn(f"shares of what queues deserve by weight are not shown: {error.message}")
        nodes = []
    there = await _on_set_apart(cluster, nodes)
    held = (pod.requested for pod in filter(None, map(placed, there)))
    return queue_shares.shares(queues, queue_shares.cluster_total(nodes, held))


async def _on_set_apart(cluster: Cluster, nodes: Objects) -> Objects:
    """The pods on nodes that take no more of them."""
    found: Objects = []
    try:
        for node in nodes:
            if not queue_shares.takes_pods(node):
                found += await cluster.list(PODS, fields=f"spec.nodeName={name(node)}")
    except errors.Forbidden as error:
        warn(f"what runs on nodes that take no pods is not counted: {error.message}")
    return found


def wants_colour() -> bool:
    """Whether the output is a terminal, and plain text is not asked for (https://no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


def coloured(text: str) -> str:
    """Bars in colours."""
    parts, done = [], 0
    for begin, end, colour in queue_shares.bars(text):
        parts += [text[done:begin], typer.style(text[begin:end], fg=colour)]
        done = end
    return "".join([*parts, text[done:]])


def _refuse_flags(context: typer.Context, command: str) -> None:
    """A flag in front of a command would be lost."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            flag = parameter.opts[0]
            why = f"{flag} is for the view of `pumice top` alone: it stands before {command}"
            raise typer.BadParameter(f"{why}; flags of a command stand behind its name")


def _seconds(interval: str) -> float:
    try:
        seconds = parse_duration(interval)
    except ValueError as error:
        raise CommandFailed(Code.USAGE, f"--interval: {error}") from error
    if not SHORTEST_S <= seconds <= LONGEST_S:
        why = f"--interval: {interval} is not between 200ms and 1h"
        raise CommandFailed(Code.USAGE, why)
    return seconds
