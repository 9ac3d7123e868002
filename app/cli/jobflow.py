"""``pumice jobflow`` (``vcctl jobflow``): create, list, get, describe, delete."""

from collections.abc import Sequence
from typing import Annotated

import typer

from app.cli import flow_actions, flow_rows, output
from app.cli.cluster import Where
from app.cli.commands import (
    AllNamespaces,
    Command,
    Context,
    File,
    Kubeconfig,
    Master,
    Namespace,
    group,
)
from app.cli.endings import failing_to
from app.cli.flow_actions import DetailForm, Family
from app.main.clock import steady_clock
from app.wire.kinds import JOB_FLOWS
from app.wire.unstructured import Key, Object

app = group("Jobs that wait for each other.")

_FLOWS = Family(JOB_FLOWS, "jobflow")

Name = Annotated[str, typer.Option("--name", "-N", help="The name of the jobflow.")]
Format = Annotated[DetailForm, typer.Option("--format", "-o", help="How to show it.")]


@app.command("create", cls=Command)
def create(
    *,
    file: File = "",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Create the jobflows of a file."""
    with failing_to("create jobflow"):
        flow_actions.create(Where(kubeconfig, master, context), _FLOWS, file)


@app.command("list", cls=Command)
def list_flows(
    *,
    namespace: Namespace = "default",
    all_namespaces: AllNamespaces = False,
    form: output.Output = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """List jobflows."""
    with failing_to("list jobflow"):
        where = Where(kubeconfig, master, context)
        chosen = "" if all_namespaces else namespace
        flow_actions.show_all(where, _FLOWS, chosen, form=form, table=_table)


@app.command("get", cls=Command)
def get(
    *,
    name: Name = "",
    namespace: Namespace = "default",
    form: output.Output = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Show one jobflow."""
    with failing_to("get jobflow"):
        where = Where(kubeconfig, master, context)
        flow_actions.show_one(where, _FLOWS, Key(namespace, name), form=form, table=_table)


@app.command("describe", cls=Command)
def describe(
    *,
    name: Name = "",
    namespace: Namespace = "default",
    form: Format = "yaml",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Show everything about one jobflow, or about all."""
    with failing_to("describe jobflow"):
        where = Where(kubeconfig, master, context)
        flow_actions.describe(where, _FLOWS, Key(namespace, name), form=form)


@app.command("delete", cls=Command)
def delete(
    *,
    name: Name = "",
    namespace: Namespace = "default",
    file: File = "",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Delete a jobflow, or those of a file."""
    with failing_to("delete jobflow"):
        where = Where(kubeconfig, master, context)
        flow_actions.delete(where, _FLOWS, Key(namespace, name), file=file)


def _table(flows: Sequence[Object], wide: bool) -> str:
    return flow_rows.flow_rows(flows, now=steady_clock()(), wide=wide)
