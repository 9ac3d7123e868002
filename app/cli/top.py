"""``pumice top``: how much queues and nodes hold."""

import os
import re
import sys
from typing import Annotated, Literal

import typer

from app.cli import node_usage, output, queue_shares
from app.cli.cluster import Cluster, Objects, Where, ask, warn
from app.cli.commands import Command, Context, Kubeconfig, Master, OutputForm, group
from app.cli.endings import failing_to
from app.cli.node_usage import Nodes, Usage
from app.cli.queue_shares import Share
from app.kube import errors
from app.wire.kinds import HYPER_NODES, NODES, PODS, QUEUES
from app.wire.unstructured import name

app = group("How much queues and nodes hold.")

_FULL, _NEARLY = 100, 80


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
        typer.Option("--output", "-o", help="How to show it."),
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
            there = Nodes(await cluster.list(NODES), await cluster.list(PODS))
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
    return queue_shares.shares(queues, queue_shares.cluster_total(nodes, there))


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
    """Bars in green, from 80 % in yellow, from 100 % in red."""
    return re.sub(r"\[#*\.*\] +(\d+)%", _colour, text)


def _colour(found: re.Match[str]) -> str:
    percent = int(found[1])
    colour = "red" if percent >= _FULL else "yellow" if percent >= _NEARLY else "green"
    return typer.style(found[0], fg=colour)
