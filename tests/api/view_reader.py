"""What reads the views of the extender in tests, and a cluster to read of."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.types import Message

from app.model.pod import GATE
from app.model.workload import GroupPhase, Namespace, PodGroup
from tests.api.stand import Stand
from tests.api.test_access import SECRET
from tests.builders import make_pod, make_queue, make_shape
from tests.service.rig import Rig
from tests.service.virtual_time import settle

BIG: Final = make_shape(cpu=9_000)
ONE: Final = make_shape(cpu=1_000)


@dataclass(eq=False)
class Reader:
    """A reader of the live view, as the server sees it; while not ``takes`` it takes nothing."""

    at: Stand
    path: str = "/view/stream"
    query: str = ""
    token: str = ""
    address: str = "127.0.0.1"
    status: int = 0
    text: bytes = b""
    is_over: bool = False
    takes: asyncio.Event = field(default_factory=asyncio.Event)
    largest: int = 0
    _task: "asyncio.Task[None] | None" = None
    _gone: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self) -> None:
        self.takes.set()
        self._task = asyncio.ensure_future(self._ask())

    async def _ask(self) -> None:
        headers = [(b"authorization", f"Bearer {self.token}".encode())] if self.token else []
        scope = {
            "type": "http",
            "method": "GET",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": self.query.encode(),
            "headers": headers,
            "client": (self.address, 1),
            "server": ("extender", 80),
            "scheme": "http",
            "http_version": "1.1",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
        }
        await self.at.app(scope, self._receive, self._send)
        self.is_over = True

    async def _receive(self) -> Message:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        await self.takes.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.text += message["body"]
            self.largest = max(self.largest, len(message["body"]))

    def hang_up(self) -> None:
        self._gone.set()

    async def end(self) -> None:
        self.hang_up()
        self.takes.set()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def events(self) -> list[tuple[str, Any]]:
        """Names and contents of the events that have come whole."""
        found = []
        for block in self.text.decode().split("\n\n")[:-1]:
            lines = dict(line.split(": ", 1) for line in block.split("\n") if line[0] != ":")
            if lines:
                found.append((lines["event"], json.loads(lines["data"])))
        return found

    def names(self) -> list[str]:
        return [name for name, _ in self.events()]


@asynccontextmanager
async def reading(at: Stand, **how: Any) -> AsyncIterator[Reader]:
    """A reader that has begun to follow the live view."""
    reader = Reader(at, **how)
    reader.begin()
    await settle()
    try:
        yield reader
    finally:
        await reader.end()


def applied(view: Mapping[str, Any], delta: Mapping[str, Any]) -> dict[str, Any]:
    """The view once the delta was taken up, as the page does it."""
    assert delta["before"] == view["generation"]
    found = dict(view)
    for name in ("generation", "at", "scheduler", "cluster", "resources"):
        if name in delta:
            found[name] = delta[name]
    for section in ("queues", "jobs", "nodes", "domains", "future"):
        rows = {row["key"]: row for row in found[section]}
        rows.update({row["key"]: row for row in delta["changed"].get(section, ())})
        for key in delta["gone"].get(section, ()):
            del rows[key]
        found[section] = list(rows.values())
    return found


def taken_up(events: list[tuple[str, Any]]) -> dict[str, Any]:
    """What the reader knows after these events."""
    view: dict[str, Any] = {}
    for name, data in events:
        if name == "whole":
            view = data
        elif name == "delta":
            view = applied(view, data)
    return view


def state_in(view: Mapping[str, Any]) -> dict[str, Any]:
    """What a view says of the cluster: its rows by key, and its sums."""
    sections = ("queues", "jobs", "nodes", "domains", "future")
    rows = {section: {row["key"]: row for row in view[section]} for section in sections}
    return rows | {name: view[name] for name in ("role", "notice", "resources", "cluster")}


async def whole(at: Stand, namespace: str = "") -> dict[str, Any]:
    answer = await at.get(f"/view?namespace={namespace}" if namespace else "/view")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def rows(view: Mapping[str, Any], section: str) -> dict[str, Any]:
    return {row["key"]: row for row in view[section]}


def shared() -> Rig:
    """A cluster in which two namespaces have jobs that run and wait, in queues of their own."""
    rig = Rig()
    rig.see("namespaces", Namespace(SECRET, {}, {}))
    rig.queue(make_queue("ours"))
    rig.queue(make_queue("theirs"))
    rig.node("n1", cpu=4_000)
    rig.group("mine", minimum=2, queue="ours")
    for number in range(2):
        rig.pod(f"mine-{number}", group="mine", shape=ONE)
    group = PodGroup(
        SECRET,
        "plan",
        uid="uid-plan",
        resource_version="1",
        created=0.0,
        phase=GroupPhase.INQUEUE,
        min_member=1,
        queue=make_queue("theirs").name,
    )
    rig.see("podgroups", group)
    annotations = {"scheduling.k8s.io/group-name": "plan"}
    rig.store(make_pod("plan-0", namespace=SECRET, annotations=annotations, shape=ONE))
    rig.group("waits", minimum=3, queue="ours")
    for number in range(3):
        rig.pod(f"waits-{number}", group="waits", gates=(GATE,), shape=ONE)
    return rig
