"""``--watch`` of list commands: a table that changes on a terminal, elsewhere a row per change.

Objects are followed by a watch. In a pipe what is there comes first, then a row for each object
that was made, changed or deleted, as with kubectl; with ``-o json`` the whole object.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import typer
from rich.console import Group, RenderableType

from app.cli import output
from app.cli.cluster import Where, connection, warn
from app.cli.endings import of
from app.cli.frames import Head, head_lines, table_lines
from app.cli.live_objects import Followed, LiveObjects, follow
from app.cli.screen import has_screen, screen
from app.cli.tables import Column, GrowingTable
from app.main.clock import steady_clock
from app.wire.kinds import Resource
from app.wire.unstructured import Object

AGES_S: Final = 1.0
"""How often a table is drawn of which nothing has changed: it may have ages in it."""
CALM_S: Final = 0.1
"""How long a drawn table stays at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Which objects are shown, and how."""

    resource: Resource
    namespace: str = ""
    labels: str = ""
    is_chosen: Callable[[Object], bool] = lambda _item: True
    columns: Callable[[float], Sequence[Column]]
    """The table's, at that time in seconds since the epoch."""
    form: output.Form = "table"
    command: str
    """What the first line of a terminal says."""


def watch(where: Where, listing: Listing) -> None:
    """Show the objects and what becomes of them until the command is interrupted.

    Raises KubeError, ConfigError and CommandFailed when they cannot be listed.
    """
    followed = Followed(
        listing.resource,
        lambda item: item if listing.is_chosen(item) else None,
        namespace=listing.namespace,
        labels=listing.labels,
    )
    host = connection(where).host
    is_table = listing.form in {"table", "wide"}

    async def use(live: LiveObjects) -> None:
        await live.listed()
        live.require(followed)
        if is_table and has_screen():
            await _drawn(live, followed, listing, host)
        else:
            await _printed(live, followed, listing)

    follow(where, [followed], use)


async def _printed(live: LiveObjects, followed: Followed[Object], listing: Listing) -> None:
    writer = _Writer(listing)
    changed: list[Object] = _in_order(followed)
    live.told = lambda change: changed.append(change.value)
    trouble = None
    while True:
        writer.write(changed)
        changed.clear()
        if live.trouble is not trouble:
            trouble = live.trouble
            if trouble is not None:
                warn(f"{of(trouble)}; it is tried again")
        live.news.clear()
        await live.news.wait()


async def _drawn(
    live: LiveObjects, followed: Followed[Object], listing: Listing, host: str
) -> None:
    clock = steady_clock()

    def frame(width: int, height: int) -> RenderableType:
        now = clock()
        head = Head(
            command=listing.command,
            host=host,
            time=f"{datetime.fromtimestamp(now).astimezone():%H:%M:%S}",
            trouble="" if live.trouble is None else str(of(live.trouble)),
        )
        top = head_lines(head, width)
        rows = GrowingTable().lines(listing.columns(now), _in_order(followed))
        body = table_lines(rows if followed.items else [output.EMPTY], width, height - len(top))
        return Group(*[*top, *body][:height])

    async with screen(frame) as shown:
        left = asyncio.create_task(shown.left.wait())
        while not left.done():
            live.news.clear()
            shown.draw()
            await asyncio.wait({left}, timeout=CALM_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(AGES_S):
                    news = asyncio.create_task(live.news.wait())
                    try:
                        await asyncio.wait({left, news}, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        news.cancel()


class _Writer:
    """Objects on standard output, in the form that is asked for."""

    def __init__(self, listing: Listing) -> None:
        self._listing = listing
        self._table = GrowingTable()
        self._clock = steady_clock()
        self._is_first = True

    def write(self, items: Sequence[Object]) -> None:
        """Write objects; the titles of the table come with the first of them."""
        form = self._listing.form
        if items and form in {"table", "wide"}:
            lines = self._table.lines(self._listing.columns(self._clock()), items)
            typer.echo("\n".join(lines if self._is_first else lines[1:]))
            self._is_first = False
            return
        for item in items:
            if form == "yaml" and not self._is_first:
                typer.echo("---")
            self._is_first = False
            typer.echo(output.one(item, form=form, resource=self._listing.resource), nl=False)


def _in_order(followed: Followed[Object]) -> list[Object]:
    return [followed.items[key] for key in sorted(followed.items, key=str)]
