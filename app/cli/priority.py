"""``pumice priority``: where a group stands in the line of its queue, asked of the extender."""

from operator import itemgetter
from typing import Annotated

import typer

from app.cli import output
from app.cli.asking import Answer, ask_extender, require
from app.cli.cluster import Where, ask, namespace_for
from app.cli.commands import Context, ExtenderUrl, Kubeconfig, Master, Namespace, OutputForm
from app.cli.endings import Code, CommandFailed, failing_to
from app.cli.gathering import SEARCHED, gather
from app.cli.tables import fitted, table
from app.wire.unstructured import Key


def priority(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A job, a PodGroup or a pod.")],
    *,
    namespace: Namespace = None,
    extender_url: ExtenderUrl = "",
    form: OutputForm = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Say where a waiting group stands in the line of its queue, and what orders it.

    In each column the group with the smaller value goes first.
    """
    with failing_to(f"tell the priority of {name}"):
        url = require(extender_url)
        where = Where(kubeconfig, master, context)
        key = Key(namespace_for(where, namespace), name)
        found = ask(where, lambda cluster: gather(cluster, SEARCHED, key, kind=""))
        about = found.planned_as
        if about is None:
            raise CommandFailed(Code.NOT_FOUND, f"{key} has no PodGroup and no pod yet")
        told = ask_extender(url, f"/line/{about.namespace}/{about.name}")
    typer.echo(page(told) if form == "table" else output.document(told, form), nl=False)


def page(told: Answer) -> str:
    """The answer for people; the group itself is the last line."""
    rows = [
        {"group": each["group"], **{c["by"]: c["value"] for c in each["columns"]}}
        for each in (*told["ahead"], told["itself"])
    ]
    columns = [fitted("Group", itemgetter("group"), gap=3)]
    for column in told["itself"]["columns"]:
        columns.append(fitted(column["by"].capitalize(), itemgetter(column["by"]), gap=3))
    head = f"{told['itself']['group']} is number {told['position']} of {told['waiting']} groups "
    lines = [f"{head}that wait in queue {told['queue']}."]
    if told["decided_by"]:
        lines.append(f"The group right before it goes first by {told['decided_by']}.")
    text = "\n".join(line.rstrip() for line in table(columns, rows).splitlines())
    return "\n".join([*lines, "", text]) + "\n"
