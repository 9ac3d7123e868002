"""``pumice queue`` (``vcctl queue``): create, delete, operate, list, get, preview."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import typer

from app.cli import output, queue_rows
from app.cli.asking import require
from app.cli.cluster import Cluster, Where, ask
from app.cli.commands import (
    Command,
    Context,
    ExtenderUrl,
    Kubeconfig,
    Master,
    OutputForm,
    QueueName,
    group,
)
from app.cli.endings import Code, CommandFailed, failing_to
from app.cli.job_build import amounts
from app.cli.orders import Action, order
from app.cli.queue_preview import ask_preview, page
from app.wire.kinds import POD_GROUPS, QUEUES
from app.wire.unstructured import Key, Object

app = group("Make queues, open and close them.")

_ACTIONS: dict[str, Action] = {"open": "OpenQueue", "close": "CloseQueue"}


@app.command("create", cls=Command)
def create(
    *,
    queue_name: QueueName = "",
    weight: Annotated[int, typer.Option("--weight", "-w", help="The weight of the queue.")] = 1,
    state: Annotated[
        Literal["Open", "Closed"], typer.Option("--state", "-S", help="The state of the queue.")
    ] = "Open",
    parent: Annotated[str, typer.Option("--parent", help="The queue above it.")] = "",
    capability: Annotated[
        str, typer.Option("--capability", help="What it may use at most: cpu=8,memory=32Gi.")
    ] = "",
    deserved: Annotated[
        str,
        typer.Option("--deserved", help="What it deserves; others reclaim only what is beyond."),
    ] = "",
    guarantee: Annotated[str, typer.Option("--guarantee", help="What is kept free for it.")] = "",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Create a queue."""
    with failing_to("create queue"):
        key = _key(queue_name)
        spec: dict[str, Any] = {"weight": weight}
        if parent:
            spec["parent"] = parent
        if capability:
            spec["capability"] = amounts(capability, flag="--capability")
        if deserved:
            spec["deserved"] = amounts(deserved, flag="--deserved")
        if guarantee:
            spec["guarantee"] = {"resource": amounts(guarantee, flag="--guarantee")}
        queue = {
            "apiVersion": QUEUES.api_version,
            "kind": QUEUES.kind,
            "metadata": {"name": key.name},
            "spec": spec,
        }

        async def make(cluster: Cluster) -> None:
            made = await cluster.create(QUEUES, queue)
            typer.echo(f"create queue {key.name} successfully")
            # A new queue is opened by its controller: only it can close it again.
            if state == "Closed":
                await order(cluster, QUEUES, made, "CloseQueue")

        ask(Where(kubeconfig, master, context), make)


@app.command("delete", cls=Command)
def delete(
    *,
    queue_name: QueueName = "",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Delete a queue."""
    with failing_to("delete queue"):
        key = _key(queue_name)
        ask(Where(kubeconfig, master, context), lambda cluster: cluster.delete(QUEUES, key))
        typer.echo(f"delete queue {key.name} successfully")


@app.command("operate", cls=Command)
def operate(
    *,
    queue_name: QueueName = "",
    weight: Annotated[int, typer.Option("--weight", "-w", help="The new weight.")] = 0,
    action: Annotated[str, typer.Option("--action", "-a", help="open, close or update.")] = "",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Open or close a queue, or give it another weight."""
    with failing_to("operate queue"):
        key = _key(queue_name)
        where = Where(kubeconfig, master, context)
        if action in _ACTIONS:
            ask(where, lambda cluster: _order(cluster, key, _ACTIONS[action]))
            return
        change = {"spec": {"weight": _weight(key, weight, action)}}
        ask(where, lambda cluster: cluster.merge(QUEUES, key, change))
        typer.echo(f"update queue {key.name} successfully")


@app.command("list", cls=Command)
def list_queues(
    *,
    form: output.Output = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """List queues, with how many PodGroups are in them."""
    with failing_to("list queue"):
        queues, counts = ask(Where(kubeconfig, master, context), lambda it: census(it, form=form))
        table = _table(counts)
        typer.echo(output.listed(queues, form=form, resource=QUEUES, table=table), nl=False)


@app.command("get", cls=Command)
def get(
    *,
    queue_name: QueueName = "",
    form: output.Output = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Show one queue, with how many PodGroups are in it."""
    with failing_to("get queue"):
        if not queue_name:
            why = "name is mandatory to get the particular queue details"
            raise CommandFailed(Code.USAGE, why)
        where = Where(kubeconfig, master, context)
        queues, counts = ask(where, lambda it: census(it, queue_name, form=form))
        table = _table(counts)
        typer.echo(output.first(queues, form=form, resource=QUEUES, table=table), nl=False)


@app.command("preview", cls=Command)
def preview(
    *,
    queue_name: QueueName = "",
    capability: Annotated[
        str,
        typer.Option("--capability", help="Ask about this capability: cpu=8,memory=32Gi."),
    ] = "",
    extender_url: ExtenderUrl = "",
    form: OutputForm = "table",
) -> None:
    """Show which pods a queue would give up that holds more than its capability.

    The extender works that out and evicts none. Pods are evicted when the queue has the annotation
    pumice.sh/evict-over-capability.
    """
    with failing_to("preview queue"):
        key = _key(queue_name)
        asked = amounts(capability, flag="--capability")
        found = ask_preview(require(extender_url), key.name, asked)
        typer.echo(page(found) if form == "table" else output.document(found, form), nl=False)


async def census(
    cluster: Cluster, queue_name: str = "", *, form: output.Form
) -> tuple[list[Object], queue_rows.Tally]:
    """All queues or one, and for tables the PodGroups in them."""
    if queue_name:
        queues = [await cluster.get(QUEUES, Key("", queue_name))]
    else:
        queues = await cluster.list(QUEUES)
    if form not in {"table", "wide"}:
        return queues, {}
    return queues, queue_rows.tally(await cluster.list(POD_GROUPS))


def _table(counts: queue_rows.Tally) -> output.Table:
    def table(queues: Sequence[Object], wide: bool) -> str:
        return queue_rows.rows(queues, counts, wide=wide)

    return table


async def _order(cluster: Cluster, key: Key, action: Action) -> None:
    await order(cluster, QUEUES, await cluster.get(QUEUES, key), action)


def _key(queue_name: str) -> Key:
    if not queue_name:
        raise CommandFailed(Code.USAGE, "queue name must be specified")
    return Key("", queue_name)


def _weight(key: Key, weight: int, action: str) -> int:
    """The weight of an update; CommandFailed when it is another action, or none."""
    if not action:
        raise CommandFailed(Code.USAGE, "action can not be null")
    if action != "update":
        why = f"action {action} invalid, valid actions are open, close and update"
        raise CommandFailed(Code.USAGE, why)
    if weight <= 0:
        raise CommandFailed(
            Code.USAGE,
            f"when update queue {key.name}, weight must be specified, "
            "the value must be greater than 0",
        )
    return weight
