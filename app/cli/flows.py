"""``pumice jobflow`` and ``pumice jobtemplate``: create, list, get, describe, delete.

Both kinds have the same five verbs with the same flags, so the commands are methods, and each group
is made of those of one object; what they do stands in `flow_actions`.
"""

from collections.abc import Sequence
from typing import Annotated

import typer

from app.cli import flow_actions, flow_rows, output
from app.cli.cluster import Where, namespace_for
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
from app.wire.kinds import JOB_FLOWS, JOB_TEMPLATES
from app.wire.unstructured import Key, Object

Name = Annotated[str, typer.Option("--name", "-N", help="The name of the object.")]
Format = Annotated[DetailForm, typer.Option("--format", "-o", help="The form of the output.")]


class Verbs:
    """The commands of one kind, which is called ``command``."""

    def __init__(self, command: str, family: Family, table: output.Table) -> None:
        self._command = command
        self._family = family
        self._table = table

    def create(
        self,
        *,
        file: File = "",
        kubeconfig: Kubeconfig = None,
        master: Master = "",
        context: Context = "",
    ) -> None:
        """Create the objects of a file."""
        with failing_to(f"create {self._command}"):
            flow_actions.create(Where(kubeconfig, master, context), self._family, file)

    def list(
        self,
        *,
        namespace: Namespace = None,
        all_namespaces: AllNamespaces = False,
        form: output.Output = "table",
        kubeconfig: Kubeconfig = None,
        master: Master = "",
        context: Context = "",
    ) -> None:
        """List the objects of one namespace, or of all."""
        with failing_to(f"list {self._command}"):
            where = Where(kubeconfig, master, context)
            chosen = "" if all_namespaces else namespace_for(where, namespace)
            flow_actions.show_all(where, self._family, chosen, form=form, table=self._table)

    def get(
        self,
        *,
        name: Name = "",
        namespace: Namespace = None,
        form: output.Output = "table",
        kubeconfig: Kubeconfig = None,
        master: Master = "",
        context: Context = "",
    ) -> None:
        """Show one object as a line."""
        with failing_to(f"get {self._command}"):
            where = Where(kubeconfig, master, context)
            key = Key(namespace_for(where, namespace), name)
            flow_actions.show_one(where, self._family, key, form=form, table=self._table)

    def describe(
        self,
        *,
        name: Name = "",
        namespace: Namespace = None,
        form: Format = "yaml",
        kubeconfig: Kubeconfig = None,
        master: Master = "",
        context: Context = "",
    ) -> None:
        """Show everything about one object, or about all of a namespace."""
        with failing_to(f"describe {self._command}"):
            where = Where(kubeconfig, master, context)
            flow_actions.describe(
                where, self._family, Key(namespace_for(where, namespace), name), form=form
            )

    def delete(
        self,
        *,
        name: Name = "",
        namespace: Namespace = None,
        file: File = "",
        kubeconfig: Kubeconfig = None,
        master: Master = "",
        context: Context = "",
    ) -> None:
        """Delete one object by its name, or the objects of a file."""
        with failing_to(f"delete {self._command}"):
            where = Where(kubeconfig, master, context)
            flow_actions.delete(
                where, self._family, Key(namespace_for(where, namespace), name), file=file
            )


def _group(about: str, verbs: Verbs) -> typer.Typer:
    app = group(about)
    for verb in (verbs.create, verbs.list, verbs.get, verbs.describe, verbs.delete):
        app.command(cls=Command)(verb)
    return app


def _flows(flows: Sequence[Object], wide: bool) -> str:
    return flow_rows.flow_rows(flows, now=steady_clock()(), wide=wide)


def _templates(templates: Sequence[Object], wide: bool) -> str:
    return flow_rows.template_rows(templates, wide=wide)


JOB_FLOW = _group(
    "Jobs that wait for each other.", Verbs("jobflow", Family(JOB_FLOWS, "jobflow"), _flows)
)
JOB_TEMPLATE = _group(
    "Jobs that jobflows are made of.",
    Verbs("jobtemplate", Family(JOB_TEMPLATES, "job template"), _templates),
)
