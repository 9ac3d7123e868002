"""``pumice top`` on a cluster: what the view shows is followed, and drawn again and again."""

import asyncio
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

import typer
from rich.console import RenderableType

from app.cli import node_usage, queue_shares, top_view
from app.cli.cluster import Where, connection, warn
from app.cli.endings import of
from app.cli.frames import Head
from app.cli.live_objects import Followed, LiveObjects, follow
from app.cli.node_usage import Nodes, Placed
from app.cli.screen import has_screen, screen
from app.cli.start_times import AskedStartTimes
from app.cli.top_view import View
from app.main.clock import steady_clock
from app.wire.kinds import NODES, POD_GROUPS, PODS, QUEUES
from app.wire.unstructured import Object, metadata, name, spec, status

_ON_NODES: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What is looked at, and how: ``namespace`` of the gangs (empty: all), ``once`` for print."""

    namespace: str = ""
    extender_url: str = ""
    """Address of the extender that foretells when gangs start; empty: none is asked."""
    every_s: float
    every: str
    """``every_s`` as the user wrote it."""
    once: bool = False


def show(where: Where, look: Look) -> None:
    """Draw the view again and again until it is left; where there is no terminal, print it once.

    Raises KubeError, ConfigError and CommandFailed when there is nothing to show.
    """
    shown = _Shown(connection(where).host, look)
    is_drawn = has_screen() and not look.once
    follow(where, shown.cluster.kinds, shown.stay if is_drawn else shown.print_once)


class _Shown:
    """The view of the cluster at ``host``, as it is now."""

    def __init__(self, host: str, look: Look) -> None:
        self.cluster = Cluster(look.namespace)
        self._host = host
        self._look = look
        url = look.extender_url
        self._asked = AskedStartTimes(url, look.namespace) if url else None
        self._clock = steady_clock()

    async def print_once(self, live: LiveObjects) -> None:
        """Print the whole view."""
        await self._found(live)
        for why in self.cluster.unseen().values():
            warn(why)
        if self._asked is not None:
            self._asked.ask()
        typer.echo(top_view.plain(self._view(), now=self._clock()), nl=False)

    async def stay(self, live: LiveObjects) -> None:
        """Draw the view again and again until it is left."""
        await self._found(live)
        stopping = threading.Event()
        if self._asked is not None:
            self._asked.keep_asking(stopping)
        try:
            async with screen(partial(self._frame, live)) as drawn:
                while not drawn.left.is_set():
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._look.every_s):
                            await drawn.left.wait()
                    drawn.draw()
        finally:
            stopping.set()

    async def _found(self, live: LiveObjects) -> None:
        await live.listed()
        self.cluster.require_any(live)

    def _frame(self, live: LiveObjects, width: int, height: int) -> RenderableType:
        now = self._clock()
        head = Head(
            command="pumice top",
            host=self._host,
            time=f"{datetime.fromtimestamp(now).astimezone():%H:%M:%S}",
            every=self._look.every,
            trouble="" if live.trouble is None else str(of(live.trouble)),
        )
        return top_view.frame(self._view(), head, now=now, width=width, height=height)

    def _view(self) -> View:
        start_times = None if self._asked is None else self._asked.latest
        return replace(self.cluster.view(), start_times=start_times)


class Cluster:
    """What is followed for the view. ``namespace``: of the PodGroups; empty: of all."""

    def __init__(self, namespace: str = "") -> None:
        self._queues = Followed(QUEUES, lambda item: item)
        self._groups = Followed(POD_GROUPS, _waiting, namespace=namespace)
        self._nodes = Followed(NODES, _slim)
        self._pods: Followed[Placed] = Followed(PODS, node_usage.placed, fields=_ON_NODES)
        self.kinds: tuple[Followed[Any], ...] = (
            self._queues,
            self._groups,
            self._nodes,
            self._pods,
        )

    def require_any(self, live: LiveObjects) -> None:
        """Raise why nothing at all can be shown: KubeError or CommandFailed."""
        if not any(each.is_listed for each in self.kinds):
            live.require(self._queues)

    def unseen(self) -> Mapping[str, str]:
        """By section, why it is not shown."""
        why: dict[str, str] = {}
        for section, followed in (
            (top_view.QUEUES, self._queues),
            (top_view.WAITING, self._groups),
            (top_view.NODES, self._nodes),
            (top_view.NODES, self._pods),
        ):
            if not followed.is_listed and followed.trouble is not None:
                why[section] = f"not shown: {of(followed.trouble)}"
        return why

    def view(self) -> View:
        """The cluster as it is known now."""
        nodes = [self._nodes.items[key] for key in sorted(self._nodes.items, key=str)]
        pods = list(self._pods.items.values())
        queues = list(self._queues.items.values())
        takes = {name(node): queue_shares.takes_pods(node) for node in nodes}
        elsewhere = (pod.requested for pod in pods if takes.get(pod.node) is False)
        total = queue_shares.cluster_total(nodes, elsewhere)
        usage = Nodes(nodes, pods)
        return View(
            shares=queue_shares.shares(queues, total),
            groups=list(self._groups.items.values()),
            queues={name(queue): queue for queue in queues} if self._queues.is_listed else None,
            nodes=usage.each(),
            total=usage.all(),
            unseen=self.unseen(),
        )


def _waiting(group: Object) -> Object | None:
    return group if top_view.is_waiting(group) else None


def _slim(node: Object) -> Object:
    """What is shown of a node; its images alone can be more than the rest of it."""
    kept = ("allocatable", "conditions")
    return {
        "metadata": {"name": metadata(node).get("name")},
        "spec": {"unschedulable": spec(node).get("unschedulable")},
        "status": {key: status(node).get(key) for key in kept},
    }
