"""``pumice share``: what queues deserve now, hold and ask for, as the extender counts it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import typer

from app.cli import output
from app.cli.asking import Answer, ask_extender, require
from app.cli.commands import ExtenderUrl, OutputForm
from app.cli.endings import failing_to
from app.cli.queue_shares import ROOT, bar
from app.cli.tables import NONE, fitted, resources, table
from app.kit.quantities import amount_text

_UNCOUNTED: Final = "pods"
_INDENT: Final = "  "


def share(
    *,
    extender_url: ExtenderUrl = "",
    form: OutputForm = "table",
) -> None:
    """Show queues as a tree: what each deserves at this moment, holds, and asks for.

    The plugin that shares the cluster (proportion or capacity) works out what a queue deserves.
    What a queue holds above 100% is borrowed.
    """
    with failing_to("show shares"):
        found = ask_extender(require(extender_url), "/debug/queues")
    rows = list(_tree(found))
    if form != "table":
        typer.echo(output.document(rows, form), nl=False)
        return
    columns = [
        fitted("Queue", lambda row: _INDENT * row["depth"] + row["queue"], gap=3),
        fitted("Share", lambda row: bar(row["share"]), gap=3),
        fitted("Deserves", lambda row: _amounts(row["deserves"]), gap=3),
        fitted("Holds", lambda row: _amounts(row["holds"]), gap=3),
        fitted("Asks", lambda row: _amounts(row["asks"]), gap=3),
        fitted("Groups", lambda row: row["groups"], gap=0),
    ]
    lines = table(columns, rows).splitlines()
    typer.echo("".join(f"{line.rstrip()}\n" for line in lines), nl=False)


def _tree(found: Answer) -> Iterator[dict[str, Any]]:
    """Parents before their children, those by name; a queue whose parent is missing is on top."""
    children: dict[str, list[str]] = {}
    for name, queue in sorted(found.items()):
        above = queue["parent"] or (ROOT if name != ROOT else "")
        children.setdefault(above if above in found and above != name else "", []).append(name)
    seen: set[str] = set()

    def walk(*names: str) -> Iterator[dict[str, Any]]:
        ahead = [(name, 0) for name in reversed(names)]
        while ahead:
            name, depth = ahead.pop()
            if name in seen:
                continue
            seen.add(name)
            queue = found[name]
            yield {
                "queue": name,
                "depth": depth,
                "share": queue["share"],
                "deserves": queue["entitled"] or {},
                "holds": queue.get("allocated") or {},
                "asks": queue.get("request") or {},
                "groups": queue.get("groups") or 0,
            }
            ahead += [(below, depth + 1) for below in reversed(children.get(name, ()))]

    yield from walk(*children.get("", ()))
    yield from walk(*sorted(found.keys() - seen))  # queues that are each other's parents


def _amounts(amounts: Mapping[str, int]) -> str:
    told = {name: amount_text(name, n) for name, n in amounts.items() if name != _UNCOUNTED and n}
    return resources(told) if told else NONE
