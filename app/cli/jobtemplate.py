"""``pumice jobtemplate`` (``vcctl jobtemplate``): create, list, get, describe, delete."""

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
from app.wire.kinds import JOB_TEMPLATES
from app.wire.unstructured import Key, Object

app = group("Jobs that jobflows are made of.")

_TEMPLATES = Family(JOB_TEMPLATES, "job template")

Name = Annotated[str, typer.Option("--name", "-N", help="The name of the jobtemplate.")]
Format = Annotated[DetailForm, typer.Option("--format", "-o", help="How to show it.")]


@app.command("create", cls=Command)
def create(
    *,
    file: File = "",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Create the jobtemplates of a file."""
    with failing_to("create jobtemplate"):
        flow_actions.create(Where(kubeconfig, master, context), _TEMPLATES, file)


@app.command("list", cls=Command)
def list_templates(
    *,
    namespace: Namespace = "default",
    all_namespaces: AllNamespaces = False,
    form: output.Output = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """List jobtemplates."""
    with failing_to("list jobtemplate"):
        where = Where(kubeconfig, master, context)
        chosen = "" if all_namespaces else namespace
        flow_actions.show_all(where, _TEMPLATES, chosen, form=form, table=_table)


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
    """Show one jobtemplate."""
    with failing_to("get jobtemplate"):
        where = Where(kubeconfig, master, context)
        flow_actions.show_one(where, _TEMPLATES, Key(namespace, name), form=form, table=_table)


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
    """Show everything about one jobtemplate, or about all."""
    with failing_to("describe jobtemplate"):
        where = Where(kubeconfig, master, context)
        flow_actions.describe(where, _TEMPLATES, Key(namespace, name), form=form)


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
    """Delete a jobtemplate, or those of a file."""
    with failing_to("delete jobtemplate"):
        where = Where(kubeconfig, master, context)
        flow_actions.delete(where, _TEMPLATES, Key(namespace, name), file=file)


def _table(templates: Sequence[Object], wide: bool) -> str:
    return flow_rows.template_rows(templates, wide=wide)
