"""What can be done with jobs, whatever the command is called and however its flags are spelled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import typer

from app.cli import eta, job_rows, job_view, orders, output
from app.cli.cluster import Cluster, Where, ask, namespace_for, warn
from app.cli.each import each
from app.cli.endings import Code, CommandFailed
from app.cli.orders import Action
from app.cli.waiting import Patience, wait_for
from app.kit.durations import parse_duration
from app.main.clock import steady_clock
from app.wire.kinds import JOBS
from app.wire.unstructured import Key, Object, name

_ENDED: Final = frozenset({"Completed", "Failed", "Terminated"})


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted of a submission besides the jobs: how to show it, whether to wait."""

    form: output.Form = "table"
    wait: bool = False
    timeout: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which jobs to list; empty: any. Without a namespace those of the usual one.

    The extender tells their ETAs, where its address is known.
    """

    namespace: str | None = None
    all_namespaces: bool = False
    queue: str = ""
    scheduler: str = ""
    selector: str = ""
    extender_url: str = ""

    def of(self, jobs: Sequence[Object]) -> list[Object]:
        """The jobs among ``jobs`` that are meant."""
        return job_rows.matching(
            jobs, queue=self.queue, scheduler=self.scheduler, selector=self.selector
        )


def key_for(
    where: Where, namespace: str | None, job_name: str, *, verb: str, hint: str = ""
) -> Key:
    """The job a verb is about; CommandFailed when it is not named."""
    if not job_name:
        why = f"job name{hint} is mandatory to {verb} a particular job"
        raise CommandFailed(Code.USAGE, why)
    return Key(namespace_for(where, namespace), job_name)


def submit(where: Where, jobs: Sequence[Object], wish: Wish) -> None:
    """Create the jobs, say so, and wait for them if that is wished and none was refused."""
    patience = Patience(timeout_s=_seconds(wish.timeout))
    told = wish.form in {"table", "wide"}

    async def create(cluster: Cluster, job: Object) -> Object:
        created = await cluster.create(JOBS, job)
        if told:
            typer.echo(f"run job {name(created)} successfully")
        return created

    async def run(cluster: Cluster) -> list[Object]:
        created = await each(jobs, partial(create, cluster), name)
        return await _awaited(cluster, created, patience) if wish.wait else created

    created = ask(where, run)
    if told:
        return
    show = output.listed if len(created) > 1 else output.first
    typer.echo(show(created, form=wish.form, resource=JOBS, table=_table), nl=False)


def show_all(where: Where, choice: Choice, *, form: output.Form) -> None:
    """List jobs."""
    space = "" if choice.all_namespaces else namespace_for(where, choice.namespace)
    jobs = ask(where, lambda cluster: cluster.list(JOBS, namespace=space))
    chosen = choice.of(jobs)

    def table(items: Sequence[Object], wide: bool) -> str:
        etas = _etas(choice.extender_url, namespace=space) if wide else None
        return job_rows.rows(items, wide=wide, all_namespaces=not space, etas=etas)

    typer.echo(output.listed(chosen, form=form, resource=JOBS, table=table), nl=False)


def _etas(url: str, *, namespace: str) -> Mapping[str, str] | None:
    """The ETAs of jobs that wait, by job; None, and a warning, where the extender does not tell."""
    if not url:
        return None
    try:
        return eta.by_job(url.rstrip("/"), namespace=namespace)
    except CommandFailed as failure:
        warn(f"the column ETA is left out: {failure}")
        return None


def watch_all(where: Where, choice: Choice, *, form: output.Form) -> None:
    """List jobs, and show what becomes of them until the command is interrupted."""
    # What watches, and what draws, takes a while to load.
    from app.cli.watching import Listing, watch

    space = "" if choice.all_namespaces else namespace_for(where, choice.namespace)
    columns = job_rows.columns(wide=form == "wide", all_namespaces=not space)
    listing = Listing(
        resource=JOBS,
        namespace=space,
        is_chosen=lambda job: bool(choice.of([job])),
        columns=lambda _now: columns,
        form=form,
        command="job list",
    )
    watch(where, listing)


def describe(where: Where, key: Key, *, form: output.Form, conditions: bool = True) -> None:
    """One job in full."""

    async def look(cluster: Cluster) -> tuple[Object, list[Object] | None]:
        job = await cluster.get(JOBS, key)
        if form not in {"table", "wide"}:
            return job, None
        events = await cluster.events(key.namespace, key.name)
        return job, None if events is None else job_view.events_of(job, events)

    job, events = ask(where, look)
    now = steady_clock()()

    def text(items: Sequence[Object], _wide: bool) -> str:
        return "".join(
            job_view.view(item, events, now=now, conditions=conditions) for item in items
        )

    typer.echo(output.first([job], form=form, resource=JOBS, table=text), nl=False)


def order(where: Where, key: Key, action: Action) -> None:
    """Ask the controller for something, by a Command."""

    async def send(cluster: Cluster) -> None:
        job = await cluster.get(JOBS, key)
        phase = job_rows.phase(job)
        if phase in _ENDED:
            raise CommandFailed(Code.REFUSED, f"job {key} has ended: it is {phase}")
        await orders.order(cluster, JOBS, job, action)
        why = orders.refusal(job, action)
        if why:
            warn(f"as things stand the controllers will refuse it: job {key.name} {why}")

    ask(where, send)


def delete(where: Where, key: Key, *, said: str) -> None:
    """Delete a job; its pods go in the background."""
    ask(where, lambda cluster: cluster.delete(JOBS, key))
    typer.echo(f"{said} job {key.name} successfully")


async def _awaited(cluster: Cluster, jobs: list[Object], patience: Patience) -> list[Object]:
    # Most commands draw nothing, and what draws takes a while to load.
    from app.cli.progress_bars import display

    with display() as shown:
        return await wait_for(cluster, jobs, patience=patience, display=shown)


def _table(jobs: Sequence[Object], wide: bool) -> str:
    return job_rows.rows(jobs, wide=wide)


def _seconds(timeout: str) -> float | None:
    if not timeout:
        return None
    try:
        seconds = parse_duration(timeout)
    except ValueError as error:
        raise CommandFailed(Code.USAGE, f"--timeout: {error}") from error
    if seconds < 0:
        raise CommandFailed(Code.USAGE, f"--timeout: {timeout!r} is less than nothing")
    return seconds
