"""An API server that only says what it has ready: lists from memory, watches from a script.

Run as ``python -m tests.bench.replay PORT NODES PODS RATE SECONDS``. Everything it says is encoded
before it listens, so that its own time is that of copying bytes. Writes are counted and accepted.
Beside the API there is ``/bench``: GET tells what was asked and said and when (seconds of the
machine's steady clock), ``POST /bench/forget`` starts that anew, ``POST /bench/relist`` ends the
watches of pods with 410, ``POST /bench/churn`` begins.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from urllib.parse import parse_qs, urlsplit

import msgspec
import uvloop

from app.main.informers import pod_kinds
from tests.bench.churn import GROUPS, NODES, OTHERS, OURS, Churn, Said, probe
from tests.bench.crowd import Crowd

HOME = "/apis/scheduling.volcano.sh/v1beta1"
PODS = "/api/v1/pods"
SELECTED = {kind.name: kind.fields for kind in pod_kinds({"volcano"})}
STREAMS = {
    "/api/v1/nodes": NODES,
    f"{HOME}/podgroups": GROUPS,
    f"{HOME}/queues": "queues",
    f"{PODS}?{SELECTED['pods/volcano']}": OURS,
    f"{PODS}?{SELECTED['pods/*']}": OTHERS,
}
"""By path, and of pods the field selector."""
GONE = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n'

PAGE = 500
TICK_S = 0.01
PROBE_AT = 0.5
"""When in each second a probe is sent."""

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_HEAD = b"HTTP/1.1 %d OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
_PAGE = (
    b'{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"100000",'
    b'"continue":"%s"},"items":[%s]}'
)
_DISCOVERY = {
    "kind": "APIResourceList",
    "resources": [{"name": f"{kind}/status"} for kind in ("podgroups", "queues")],
}


class Told(msgspec.Struct):
    """What ``/bench`` tells."""

    first_list_at: float = 0.0
    last_page_at: float = 0.0
    lists: int = 0
    completed: dict[str, int] = msgspec.field(default_factory=dict)
    """Complete listings by stream."""
    list_bytes: int = 0
    watches: int = 0
    writes: int = 0
    sent: int = 0
    sent_bytes: int = 0
    latest_s: float = 0.0
    """How much too late a line was sent at worst."""
    began_at: float = 0.0
    done: bool = False
    probes: list[float] = msgspec.field(default_factory=list)


class Replay:
    """The pages, the script and who watches."""

    def __init__(self, population: Crowd, *, rate: int, seconds: int) -> None:
        self.told = Told()
        self._pages = {
            stream: list(_pages(objects)) for stream, objects in population.listed().items()
        }
        self._pages[PODS] = self._pages[OURS] + self._pages[OTHERS]
        churn = Churn(population, rate=rate)
        self._script = [churn.second(n) for n in range(seconds)]
        self._watching: dict[str, set[asyncio.StreamWriter]] = defaultdict(set)
        self._churning: asyncio.Task[None] | None = None

    async def serve(self, port: int) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", port)
        async with server:
            await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            for watching in self._watching.values():
                watching.discard(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        said = await reader.readexactly(int(length[1])) if length else b""
        method, target, _ = head.split(b" ", 2)
        url = urlsplit(target.decode())
        query = parse_qs(url.query)
        stream = _stream(url.path, query)
        if "watch" in query:
            writer.write(_STREAM)
            self._watching[stream].add(writer)
            self.told.watches += 1
            await reader.read()
            return False
        body = self._body(method, url.path, query, said)
        writer.write(_HEAD % (201 if method == b"POST" else 200, len(body)))
        writer.write(body)
        await writer.drain()
        return True

    def _body(self, method: bytes, path: str, query: dict[str, list[str]], said: bytes) -> bytes:
        if path.startswith("/bench"):
            return self._bench(path)
        if path.endswith(("/tokenreviews", "/subjectaccessreviews")):
            return _review(said)
        if method != b"GET":
            self.told.writes += 1
            return b"{}"
        if path == HOME:
            return msgspec.json.encode(_DISCOVERY)
        return self._page(_stream(path, query), int(query.get("continue", ["0"])[0]))

    def _page(self, stream: str, number: int) -> bytes:
        told = self.told
        pages = self._pages.get(stream, [b""])
        told.first_list_at = told.first_list_at or time.monotonic()
        told.last_page_at = time.monotonic()
        told.lists += 1
        told.list_bytes += len(pages[number])
        token = str(number + 1) if number + 1 < len(pages) else ""
        if not token:
            told.completed[stream] = told.completed.get(stream, 0) + 1
        return _PAGE % (token.encode(), pages[number])

    def _bench(self, path: str) -> bytes:
        if path == "/bench/forget":
            self.told = Told()
        elif path == "/bench/relist":
            self._send([Said(OURS, GONE), Said(OTHERS, GONE)])
        elif path == "/bench/churn":
            self.told.began_at = time.monotonic() + 1.0
            self._churning = asyncio.create_task(self._churn(self.told.began_at))
        return msgspec.json.encode(self.told)

    async def _churn(self, began: float) -> None:
        for second, lines in enumerate(self._script):
            due = [(began + second + n / len(lines), one) for n, one in enumerate(lines)]
            probed = False
            for tick in range(round(1 / TICK_S)):
                until = began + second + (tick + 1) * TICK_S
                await asyncio.sleep(max(0.0, until - time.monotonic()))
                if not probed and until >= began + second + PROBE_AT:
                    self._send([probe(second)])
                    self.told.probes.append(time.monotonic())
                    probed = True
                batch, due = _split(due, until)
                self._send(one for _, one in batch)
                if batch:
                    late = time.monotonic() - batch[-1][0]
                    self.told.latest_s = max(self.told.latest_s, late)
        self.told.done = True

    def _send(self, batch: Iterable[Said]) -> None:
        by_stream: dict[str, list[bytes]] = defaultdict(list)
        for one in batch:
            by_stream[one.stream].append(one.line)
        for stream, lines in by_stream.items():
            piece = b"".join(lines)
            self.told.sent += len(lines)
            self.told.sent_bytes += len(piece)
            for writer in self._watching[stream]:
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))


def _split(
    due: list[tuple[float, Said]], until: float
) -> tuple[list[tuple[float, Said]], list[tuple[float, Said]]]:
    cut = next((n for n, (at, _) in enumerate(due) if at >= until), len(due))
    return due[:cut], due[cut:]


def _review(said: bytes) -> bytes:
    """Every token is its owner's name, and every owner may do everything."""
    asked = msgspec.json.decode(said)
    owner = {"username": asked["spec"].get("token", "")}
    status = {"authenticated": True, "allowed": True, "user": owner}
    return msgspec.json.encode(asked | {"status": status})


def _stream(path: str, query: dict[str, list[str]]) -> str:
    """What is asked for; a path that nobody scripted is a stream of its own, and empty."""
    fields = query.get("fieldSelector", [""])[0]
    asked = f"{path}?{fields}" if fields else path
    return STREAMS.get(asked, asked)


def _pages(objects: list[bytes]) -> Iterable[bytes]:
    """The items of each page."""
    for first in range(0, len(objects), PAGE):
        yield b",".join(objects[first : first + PAGE])


def main() -> None:
    port, nodes, pods, rate, seconds = (int(word) for word in sys.argv[1:])
    replay = Replay(Crowd(nodes, pods), rate=rate, seconds=seconds)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(replay.serve(port))


if __name__ == "__main__":
    main()
