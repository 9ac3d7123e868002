"""``pumice simulate``: what would happen, asked of the extender; nothing is changed."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from app.cli import output
from app.cli.asking import Answer, ask_extender, require
from app.cli.cluster import Where, namespace_for
from app.cli.commands import Context, ExtenderUrl, Kubeconfig, Master, Namespace, OutputForm
from app.cli.documents import objects, text_of
from app.cli.endings import Code, CommandFailed, failing_to
from app.cli.tables import fitted, table

CODES = (
    "Exit codes: 0 runs now, or once pods have been evicted for it, 2 bad usage, 3 not found, "
    "4 waits, 5 never runs, 6 refused, or the extender is not reached."
)
_EXIT = {"runs": 0, "evicts": 0, "waits": 4, "never": 5}
_SAID = {
    "runs": "runs now",
    "evicts": "runs once pods have been evicted",
    "waits": "waits",
    "never": "never runs as it is",
}
_SHOWN = 20


def simulate(
    *,
    files: Annotated[
        list[str] | None,
        typer.Option("--filename", "-f", help="YAML file of objects to add, - for standard input."),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="A change of a queue: queue/a.capability.cpu=200."),
    ] = None,
    drain: Annotated[list[str] | None, typer.Option("--drain", help="A node to leave out.")] = None,
    conf: Annotated[
        str, typer.Option("--conf", help="File with another volcano-scheduler.conf.")
    ] = "",
    namespace: Namespace = None,
    extender_url: ExtenderUrl = "",
    form: OutputForm = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Say what would happen if objects were added, queues changed, or nodes drained.

    The planner answers as it would decide at this moment. Nothing is changed.
    """
    with failing_to("simulate"):
        url = require(extender_url)
        question: dict[str, Any] = {
            "manifests": [item for file in files or () for item in objects(file)],
            "namespace": namespace_for(Where(kubeconfig, master, context), namespace),
            "set": dict(map(_change, changes or ())),
            "drain": drain or [],
            "conf": text_of(conf) if conf else "",
        }
        if not any(question[key] for key in ("manifests", "set", "drain", "conf")):
            raise CommandFailed(Code.USAGE, "say what would be: --filename, --set, --drain, --conf")
        try:
            found = ask_extender(url, "/simulate", question=question)
        except CommandFailed as failure:
            if failure.code is not Code.UNREACHABLE:
                raise
            raise CommandFailed(Code.REFUSED, str(failure)) from failure
    typer.echo(page(found) if form == "table" else output.document(found, form), nl=False)
    raise typer.Exit(_EXIT.get(found["outcome"], int(Code.REFUSED)))


def _change(said: str) -> tuple[str, str]:
    path, equals, value = said.partition("=")
    if not (path and equals and value):
        why = f"--set: {said!r}: write queue/NAME.capability.cpu=200"
        raise CommandFailed(Code.USAGE, why)
    return path, value


def page(found: Answer) -> str:
    """The answer for people; the first line is the outcome."""
    lines = list(_lines(found))
    return "".join(f"{line}\n" for line in lines)


def _lines(found: Answer) -> Iterator[str]:
    for warning in found["warnings"]:
        yield f"Warning: {warning}"
    for each in found["asked"]:
        yield from _told(each)
    for each in found["displaced"]:
        yield from _told(each, of=" (loses pods)")
    if not (found["asked"] or found["displaced"] or found["others"]):
        yield "No group that waits, or loses pods, would fare otherwise."
    for each in found["others"]:
        was = f", it {_SAID[each['before']]} without that" if each["before"] else ""
        yield from _told(each, of=was)
    if found["given_up"]:
        yield f"{_count(found['given_up'], 'pod')} would be evicted for no group:"
        yield from _victims(found["given_up"])


def _told(fate: Answer, *, of: str = "") -> Iterator[str]:
    yield f"{fate['group']} in queue {fate['queue']}: {_SAID[fate['outcome']]}{of}"
    if fate["text"]:
        beyond = "  Beyond the minimum: " if fate["outcome"] in ("runs", "evicts") else "  "
        yield f"{beyond}{fate['text']}"
    if fate.get("eta"):
        yield f"  {fate['eta']['text']}"
    if fate["victims"]:
        yield f"  {fate['action']} evicts {_count(fate['victims'], 'pod')}:"
        yield from _victims(fate["victims"])
    if fate["places"]:
        yield f"  {_count(fate['places'], 'place')}:"
        yield from _places(fate["places"])


def _places(places: list[Any]) -> Iterator[str]:
    counts = Counter((place["node"], place["role"] or "-") for place in places)
    rows = [{"node": n, "role": r, "pods": count} for (n, r), count in sorted(counts.items())]
    columns = [
        fitted("Node", lambda row: row["node"], gap=3),
        fitted("Role", lambda row: row["role"], gap=3),
        fitted("Pods", lambda row: row["pods"], gap=0),
    ]
    yield from _indented(table(columns, rows[:_SHOWN]), more=len(rows) - _SHOWN)


def _victims(victims: list[Any]) -> Iterator[str]:
    columns = [
        fitted("Pod", lambda pod: pod["pod"], gap=3),
        fitted("Node", lambda pod: pod["node"], gap=3),
        fitted("Queue", lambda pod: pod["queue"], gap=3),
        fitted("Allowed by", lambda pod: pod["rule"], gap=0),
    ]
    yield from _indented(table(columns, victims[:_SHOWN]), more=len(victims) - _SHOWN)


def _indented(text: str, *, more: int) -> Iterator[str]:
    for line in text.splitlines():
        yield f"    {line}".rstrip()
    if more > 0:
        yield f"    ... and {more} more (-o json shows all)"


def _count(items: list[Any], word: str) -> str:
    return f"{len(items)} {word}{'' if len(items) == 1 else 's'}"
