"""``pumice top`` on a cluster: what the view shows is followed, and drawn again and again."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
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
from app.cli.top_view import View
from app.main.clock import steady_clock
from app.wire.kinds import NODES, POD_GROUPS, PODS, QUEUES
from app.wire.unstructured import Object, metadata, name, spec, status

_ON_NODES: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


def show(where: Where, *, namespace: str, every_s: float, every: str, once: bool) -> None:
    """Draw the view every ``every_s`` until it is left; where there is no terminal, print it once.

    Raises KubeError, ConfigError and CommandFailed when there is nothing to show.
    """
    host = connection(where).host
    followed = Cluster(namespace)
    clock = steady_clock()

    async def print_once(live: LiveObjects) -> None:
        await live.listed()
        followed.require_any(live)
        for why in followed.unseen().values():
            warn(why)
        typer.echo(top_view.plain(followed.view(), now=clock()), nl=False)

    async def stay(live: LiveObjects) -> None:
        await live.listed()
        followed.require_any(live)

        def frame(width: int, height: int) -> RenderableType:
            trouble = live.trouble
            now = clock()
            head = Head(
                command="pumice top",
                host=host,
                time=f"{datetime.fromtimestamp(now).astimezone():%H:%M:%S}",
                every=every,
                trouble="" if trouble is None else str(of(trouble)),
            )
            return top_view.frame(followed.view(), head, now=now, width=width, height=height)

        async with screen(frame) as drawn:
            while not drawn.left.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(every_s):
                        await drawn.left.wait()
                drawn.draw()

    follow(where, followed.kinds, stay if has_screen() and not once else print_once)


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
