"""``pumice audit`` and ``pumice why-evicted``: what was decided, also about what is gone."""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

import typer

from app.cli import output
from app.cli.asking import Answer, ask_extender, lines_of, require
from app.cli.cluster import Where, namespace_for
from app.cli.commands import Context, ExtenderUrl, Kubeconfig, Master, Namespace, OutputForm
from app.cli.endings import Code, CommandFailed, failing_to
from app.cli.tables import fitted, table
from app.kit.durations import parse_duration
from app.main.clock import steady_clock
from app.wire import times

DecisionKind = Literal["admit", "place", "refuse", "evict", "veto", "release"]
_HOW: Final = {
    "decided": "it was decided to evict it",
    "taken up": "another process of the extender went on with that decision",
    "evicted": "the API server accepted the eviction",
}


def audit(
    job: Annotated[
        str | None, typer.Argument(metavar="[JOB]", help="A job, a PodGroup, or a single pod.")
    ] = None,
    *,
    pod: Annotated[str, typer.Option("--pod", help="Only decisions about that pod.")] = "",
    queue: Annotated[str, typer.Option("--queue", help="Only decisions about that queue.")] = "",
    kind: Annotated[
        DecisionKind | None, typer.Option("--kind", help="Only decisions of that kind.")
    ] = None,
    since: Annotated[
        str, typer.Option("--since", help="Only decisions of the last 2h or 30m, or since a time.")
    ] = "",
    limit: Annotated[
        int, typer.Option("--limit", help="How many decisions at most, the latest.")
    ] = 100,
    namespace: Namespace = None,
    extender_url: ExtenderUrl = "",
    form: Annotated[
        Literal["table", "json", "yaml", "ndjson"],
        typer.Option("--output", "-o", help="The form of the output; ndjson: all, one a line."),
    ] = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Tell what was decided about a job: admitted, placed, refused, evicted, vetoed, given back.

    Decisions about objects that are gone are told, too. The last line says from when on decisions
    are kept.
    """
    with failing_to(f"audit {job or pod or 'decisions'}"):
        url = require(extender_url)
        params = {"queue": queue, "kind": kind or "", "since": _since(since), "limit": str(limit)}
        if job or pod:
            where = namespace_for(Where(kubeconfig, master, context), namespace)
            params |= {"job": f"{where}/{job}"} if job else {}
            params |= {"pod": f"{where}/{pod}"} if pod else {}
        given = {name: value for name, value in params.items() if value}
        if form == "ndjson":
            for line in lines_of(url, "/audit", params={**given, "form": "ndjson"}):
                typer.echo(line)
            return
        found = ask_extender(url, "/audit", params=given)
    typer.echo(_page(found) if form == "table" else output.document(found, form), nl=False)


def why_evicted(
    pod: Annotated[str, typer.Argument(metavar="POD", help="The name that the pod had.")],
    *,
    namespace: Namespace = None,
    extender_url: ExtenderUrl = "",
    certificate: Annotated[
        bool,
        typer.Option(
            "--certificate", help="Print only the certificate, for pumice check-eviction."
        ),
    ] = False,
    form: OutputForm = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Say why a pod was evicted last: for which group, by which rule, and on what proof.

    The answer is also there when the pod, or the group for which it was evicted, is gone.
    """
    with failing_to(f"tell why {pod} was evicted"):
        url = require(extender_url)
        where = namespace_for(Where(kubeconfig, master, context), namespace)
        found = ask_extender(url, f"/audit/evictions/{where}/{pod}")
        if certificate and not found["certificate"]:
            raise CommandFailed(Code.NOT_FOUND, "no certificate of that eviction is kept")
    if certificate:
        text = output.document(found["certificate"], "json")
    elif form == "table":
        text = "".join(f"{line}\n" for line in _reasons(found))
    else:
        text = output.document(found, form)
    typer.echo(text, nl=False)


def _since(text: str) -> str:
    """Seconds since the epoch; empty where ``text`` is."""
    if not text:
        return ""
    try:
        return f"{times.parse(text):.3f}"
    except ValueError:
        pass
    try:
        return f"{steady_clock()() - parse_duration(text):.3f}"
    except ValueError:
        why = f"--since: {text!r} is neither a duration such as 2h nor a time"
        raise CommandFailed(Code.USAGE, why) from None


def _page(found: Answer) -> str:
    columns = [
        fitted("Time", lambda each: times.seconds(each["at"]), gap=2),
        fitted("Decision", lambda each: each["kind"], gap=2),
        fitted("Group", lambda each: each["group"], gap=2),
        fitted("Pod", lambda each: each["pod"] or "-", gap=2),
        fitted("Node", lambda each: each["node"] or "-", gap=2),
        fitted("Queue", lambda each: each["queue"], gap=2),
        fitted("By", lambda each: each["stimulus"], gap=2),
        fitted("Snapshot", lambda each: each["generation"] or "-", gap=2),
        fitted("Why", _why, gap=0),
    ]
    shown = table(columns, found["decisions"]) if found["decisions"] else "No decisions found.\n"
    rows = "".join(f"{line.rstrip()}\n" for line in shown.splitlines())
    return rows + "".join(f"{line}\n" for line in _coverage(found["coverage"]))


def _why(each: Answer) -> str:
    for_whom = f"for {each['preemptor']}, {each['rule']} allows it" if each["preemptor"] else ""
    return "; ".join(part for part in (each["cause"], each["text"], for_whom) if part)


def _reasons(found: Answer) -> Iterator[str]:
    decisions: list[Any] = found["decisions"]
    first = decisions[0]
    whom = f"for {first['preemptor']}" if first["preemptor"] else "for no group"
    yield f"{found['pod']} was evicted from {first['node']} {whom} by {first['text']}"
    yield f"  it was of group {first['group']} in queue {first['queue']}"
    yield f"  rule: the plugin {first['rule']} allows it"
    yield f"  decided on snapshot {first['generation']}"
    for each in decisions:
        yield f"  {times.seconds(each['at'])}: {_HOW.get(each['cause'], each['cause'])}"
    if found["certificate"]:
        victims = len(found["certificate"].get("victims", ()))
        yield f"  certificate: of {victims} victim{'s' * (victims != 1)} (--certificate prints it)"
    else:
        yield "  certificate: none is kept"
    yield from _coverage(found["coverage"])


def _coverage(coverage: Answer) -> Iterator[str]:
    """What the kept decisions are of; what is wrong with them first."""
    for problem in coverage["problems"]:
        yield f"Warning: {problem}"
    if coverage["dropped"]:
        yield f"Warning: {coverage['dropped']} decisions were not kept, as too many came at once"
    since = times.seconds(coverage["since"])
    if coverage["outlives_process"]:
        yield f"Complete since {since}, kept in {coverage['folder']}."
    else:
        yield f"Since the extender began ({since}), as no --audit-dir is set."
