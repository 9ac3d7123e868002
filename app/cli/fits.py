"""``pumice fits``: the largest gang that would start now, asked of the extender."""

from collections.abc import Iterator
from typing import Annotated

import typer

from app.cli import output
from app.cli.asking import Answer, ask_extender, require
from app.cli.cluster import Where, namespace_for
from app.cli.commands import Context, ExtenderUrl, Kubeconfig, Master, Namespace, OutputForm
from app.cli.endings import failing_to
from app.cli.job_build import amounts
from app.cli.tables import fitted, resources, table

_SHOWN = 20


def fits(
    *,
    request: Annotated[
        str, typer.Option("--request", "-R", help="Requests of one pod: cpu=4,memory=8Gi.")
    ],
    queue: Annotated[str, typer.Option("--queue", "-q", help="The queue of the pods.")] = "default",
    namespace: Namespace = None,
    extender_url: ExtenderUrl = "",
    form: OutputForm = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Say how many equal pods would start together now, as one gang.

    The planner answers as it would decide at this moment. Nothing is changed.
    """
    with failing_to("say what fits"):
        url = require(extender_url)
        asked = amounts(request, flag="--request")
        params = {
            "request": ",".join(f"{name}={amount}" for name, amount in asked.items()),
            "queue": queue,
            "namespace": namespace_for(Where(kubeconfig, master, context), namespace),
        }
        found = ask_extender(url, "/fits", params=params)
    text = "".join(f"{line}\n" for line in _lines(found))
    typer.echo(text if form == "table" else output.document(found, form), nl=False)


def _lines(found: Answer) -> Iterator[str]:
    count, nodes = found["members"], found["nodes"]
    pods = "1 pod" if count == 1 else f"{count} pods"
    of = f"{pods} of {resources(found['request'])} in queue {found['queue']}"
    yield f"{of} would start together now."
    if found["text"]:
        yield f"One more would not: {found['text']}"
    if nodes:
        rows = [{"node": node, "pods": number} for node, number in nodes.items()]
        columns = [
            fitted("Node", lambda row: row["node"], gap=3),
            fitted("Pods", lambda row: row["pods"], gap=0),
        ]
        yield from (line.rstrip() for line in table(columns, rows[:_SHOWN]).splitlines())
        if len(rows) > _SHOWN:
            yield f"... and {len(rows) - _SHOWN} more nodes (-o json shows all)"
