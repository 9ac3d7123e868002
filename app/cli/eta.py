"""``pumice eta``: when a group that waits will start, asked of the extender."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import typer

from app.cli import output
from app.cli.asking import Answer, ask_extender, require
from app.cli.cluster import Where, ask, namespace_for
from app.cli.commands import Context, ExtenderUrl, Kubeconfig, Master, Namespace, OutputForm
from app.cli.endings import failing_to
from app.cli.gathering import SEARCHED, gather
from app.wire import times
from app.wire.ages import human_duration
from app.wire.unstructured import Key


def eta(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A job, a PodGroup or a pod.")],
    *,
    namespace: Namespace = None,
    extender_url: ExtenderUrl = "",
    form: OutputForm = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Say when a job, a PodGroup or a pod that waits will start, and after whose end.

    The planner is asked about the times to come, by declared and learned run times.
    """
    with failing_to(f"tell when {name} starts"):
        url = require(extender_url)
        where = Where(kubeconfig, master, context)
        key = Key(namespace_for(where, namespace), name)
        found = ask(where, lambda cluster: gather(cluster, SEARCHED, key, kind=""))
        about = found.planned_as or key
        told = ask_extender(url, f"/eta/{about.namespace}/{about.name}")
    typer.echo(page(told) if form == "table" else output.document(told, form), nl=False)


def page(told: Answer) -> str:
    """The answer for people; the first line says it all."""
    return "".join(f"{line}\n" for line in _lines(told))


def in_short(told: Answer) -> str:
    """The answer in a cell of a table: ``12m-31m``, ``now``, ``unknown``, ``>3h``."""
    likely, late = _left(told, "p50"), _left(told, "p90")
    if told["outcome"] == "beyond":
        return f">{_left(told, 'beyond')}"
    if told["outcome"] != "later":
        return str(told["outcome"])
    if not late:
        return f">={likely}"
    return likely if late == likely else f"{likely}-{late}"


def by_job(url: str, *, namespace: str) -> Mapping[str, str]:
    """The ETAs of the jobs that wait in a namespace (empty: in all), in short, by job."""
    told = ask_extender(url, f"/eta/{namespace}" if namespace else "/eta")
    return {each["job"]: in_short(each) for each in told["etas"]}


def _lines(told: Answer) -> Iterator[str]:
    yield f"{told['job']}: {told['text']}"
    if told["p50"] is not None and told["outcome"] != "now":
        yield f"Half of the times it starts by {_moment(told['p50'])}."
    if told["p90"] is not None and told["outcome"] != "now":
        yield f"Nine of ten times it starts by {_moment(told['p90'])}."
    if told["ahead"]:
        groups = "1 group starts" if told["ahead"] == 1 else f"{told['ahead']} groups start"
        yield f"{groups} before it."
    if told["change"]:
        change = told["change"]
        at, before = _moment(change["at"]), _moment(change["before"])
        yield f"Until {at} that was {before}: {change['text']}."
    error = told["error"]
    if error:
        off, share = human_duration(error["median_s"]), round(100 * error["median_share"])
        inside = round(100 * error["inside_p90"])
        answers = "answer" if error["answers"] == 1 else f"{error['answers']} answers"
        yield (
            f"The last {answers} in queue {told['queue']}: {off} off in the median, {share} % of "
            f"the wait; {inside} % started by the later time."
        )
    elif told["outcome"] not in ("running", "never"):
        yield f"No earlier answer in queue {told['queue']} can be compared yet."


def _left(told: Answer, key: str) -> str:
    at = told[key]
    return "" if at is None else human_duration(max(at - told["now"], 0.0))


def _moment(at: float) -> str:
    return times.seconds(int(at))
