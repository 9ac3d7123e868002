"""``pumice explain``: why a job, a PodGroup or a pod waits.

The objects come from the API server, the reason from the extender where its address is known. An
extender that does not answer is no failure: conditions and events tell the same, a little later and
with fewer numbers.
"""

from dataclasses import replace
from typing import Annotated

import typer

from app.cli import explain_text, output
from app.cli.asking import ask_extender, require
from app.cli.cluster import Where, ask, check_name, namespace_for
from app.cli.commands import Context, ExtenderUrl, Kubeconfig, Master, Namespace, OutputForm
from app.cli.endings import Code, CommandFailed, failing_to
from app.cli.findings import Findings, Story, tells_of
from app.cli.gathering import SEARCHED, gather, story_of
from app.main.clock import steady_clock
from app.wire.kinds import JOBS, POD_GROUPS, PODS, Resource
from app.wire.unstructured import Key

FROM_OBJECTS = "conditions and events in the API server"

_WORDS: dict[str, Resource] = {
    **dict.fromkeys(("job", "jobs", "vcjob", "vj"), JOBS),
    **dict.fromkeys(("podgroup", "podgroups", "pg"), POD_GROUPS),
    **dict.fromkeys(("pod", "pods", "po"), PODS),
}


def explain(
    what: Annotated[
        str, typer.Argument(metavar="[KIND/]NAME", help="The job, PodGroup or pod that waits.")
    ],
    *,
    namespace: Namespace = None,
    advice: Annotated[
        bool,
        typer.Option(
            "--advice", help="Have the extender try which single changes would let it run now."
        ),
    ] = False,
    extender_url: ExtenderUrl = "",
    form: OutputForm = "table",
    kubeconfig: Kubeconfig = None,
    master: Master = "",
    context: Context = "",
) -> None:
    """Say why a job, a PodGroup or a pod waits, and what would help.

    NAME may also be that of an object which owns a PodGroup or pods: rayjob/NAME, mpijob/NAME, …
    """
    with failing_to(f"explain {what}"):
        where = Where(kubeconfig, master, context)
        kind, resources, key = _wanted(what, namespace_for(where, namespace))
        found = ask(where, lambda cluster: gather(cluster, resources, key, kind=kind))
        found, source = _told(found, extender_url)
        if advice:
            found = replace(found, advice=_advice(found, extender_url))
        if form == "table":
            text = explain_text.page(found, source=source, now=steady_clock()())
        else:
            text = output.document(explain_text.value(found, source=source), form)
        typer.echo(text, nl=False)


def _advice(found: Findings, url: str) -> Story:
    """Changes that would help; CommandFailed where the extender does not tell."""
    about = found.planned_as
    base = require(url)
    if about is None:
        return {"changes": (), "tried": 0}
    return ask_extender(base, f"/advice/{about.namespace}/{about.name}")


def _wanted(what: str, namespace: str) -> tuple[str, tuple[Resource, ...], Key]:
    """The kind as it was said, the kinds of ours to look among, and the name."""
    kind, slash, name = what.partition("/")
    if not slash:
        return "", SEARCHED, Key(namespace, what)
    if not kind or not name:
        raise CommandFailed(Code.USAGE, "say NAME or KIND/NAME, such as job/NAME")
    ours = _WORDS.get(kind.lower())
    if ours is None:  # no object of that kind is read by its name
        check_name("name", name)
        return kind, (), Key(namespace, name)
    return ours.kind, (ours,), Key(namespace, name)


def _told(found: Findings, url: str) -> tuple[Findings, str]:
    """The findings with what the extender says, if anything, and the address that says it."""
    about = found.planned_as
    if not url or about is None:
        return found, FROM_OBJECTS
    pod = next(iter(found.pods), None)
    story = story_of(url, about)
    is_of_group = found.group or found.hidden_group
    if story is None or not (is_of_group or (pod and tells_of(story, pod))):
        return found, f"{FROM_OBJECTS}; the extender at {url} does not tell"
    return replace(found, story=story), f"the extender at {url}"
