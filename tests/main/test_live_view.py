"""The live view of a running extender: what a reader gets over a real connection."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from httpx2 import Client, TransportError

from app.sandbox.controlplane.processes import wait_until
from app.service.telling.view.views import VIEWERS_OF_ACCOUNT
from tests.clusters.client import WITHOUT_TLS
from tests.clusters.processes import ended
from tests.main.extending import Extender, cluster, extender, gang, ready
from tests.sandbox.documents import node


class Follower(threading.Thread):
    """A reader of the live view; ``events`` are those that have come, ``over``: it has ended."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self.events: list[tuple[str, Any]] = []
        self.over = False
        self.start()

    def run(self) -> None:
        try:
            with (
                Client(timeout=30, trust_env=False, verify=WITHOUT_TLS) as client,
                client.stream("GET", f"{self._url}/view/stream") as answer,
            ):
                name = ""
                for line in answer.iter_lines():
                    key, _, text = line.partition(": ")
                    if key == "event":
                        name = text
                    elif key == "data":
                        self.events.append((name, json.loads(text)))
        except TransportError:
            return
        self.over = True

    def names(self) -> list[str]:
        return [name for name, _ in self.events]


@contextmanager
def stalled(process: Extender) -> Iterator[socket.socket]:
    """A reader that asks for the live view and takes nothing of it."""
    address = urlsplit(process.url)
    with socket.socket() as taker:
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        taker.connect((address.hostname, address.port))
        taker.sendall(b"GET /view/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        yield taker


def test_a_stream_tells_that_the_process_stops_and_does_not_delay_that(tmp_path: Path) -> None:
    with cluster(*gang("g", size=2)) as api, extender(tmp_path, api) as process:
        ready(process)
        follower = Follower(process.url)
        wait_until(lambda: bool(follower.events), timeout_s=20, what="the whole")
        wait_until(
            lambda: any(
                row["stage"] == "planned"
                for _, data in follower.events
                for row in data.get("jobs", data.get("changed", {}).get("jobs", ()))
            ),
            timeout_s=20,
            what="a job with places",
        )
        assert ended(process) == 0
        follower.join(timeout=10)
        assert follower.over
        assert follower.names()[0] == "whole"
        assert follower.events[-1] == ("stopping", {"why": "the process stops; connect again"})


def test_readers_that_take_nothing_or_hang_up_hold_up_no_other(tmp_path: Path) -> None:
    nodes = [node(f"many-{number}") for number in range(300)]
    with cluster(*nodes) as api, extender(tmp_path, api) as process:
        ready(process)
        with stalled(process), stalled(process):
            follower = Follower(process.url)
            wait_until(lambda: bool(follower.events), timeout_s=20, what="the whole")
            assert len(follower.events[0][1]["nodes"]) == 301
            assert process.status("/livez") == 200
        for _ in range(VIEWERS_OF_ACCOUNT + 1):
            with stalled(process) as taker:
                assert taker.recv(12) == b"HTTP/1.1 200"
        assert ended(process) == 0
