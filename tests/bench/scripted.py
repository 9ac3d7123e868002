"""A real ``pumice extender`` on a scripted API server, which is a process of its own (`replay`)."""

from __future__ import annotations

import http.client
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from tests.bench.crowd import Crowd
from tests.bench.replay import STREAMS, Told
from tests.clusters import kubeconfigs
from tests.clusters.ports import free_port
from tests.clusters.processes import Process
from tests.clusters.pumice import COMMAND, Extender


class Server:
    """The scripted API server, from here."""

    def __init__(self, process: Process, port: int) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def told(self) -> Told:
        return msgspec.json.decode(self._read("GET", "/bench"), type=Told)

    def forget(self) -> None:
        self._read("POST", "/bench/forget")

    def churn(self) -> Told:
        """Begin; tells when it does."""
        return msgspec.json.decode(self._read("POST", "/bench/churn"), type=Told)

    def list_all(self) -> None:
        """Read every page of every kind and throw it away."""
        for asked in STREAMS:
            path, _, fields = asked.partition("?")
            token = ""
            while True:
                query = {"limit": "500", "fieldSelector": fields, "continue": token or "0"}
                page = self._read("GET", f"{path}?{urlencode(query)}")
                token = page[:200].partition(b'"continue":"')[2].partition(b'"')[0].decode()
                if not token:
                    break

    def relist(self) -> None:
        """Let the watches of pods end with 410."""
        self._read("POST", "/bench/relist")

    def _read(self, method: str, target: str) -> bytes:
        self._connection.request(method, target, body=b"" if method == "POST" else None)
        return self._connection.getresponse().read()


@contextmanager
def serving(folder: Path, population: Crowd, *, rate: int, seconds: int) -> Iterator[Server]:
    port = free_port()
    numbers = (port, population.nodes, population.pods, rate, seconds)
    argv = [sys.executable, "-m", "tests.bench.replay", *map(str, numbers)]
    with Process(argv, log=folder / "server.log", name="server") as process:
        process.wait_ready(lambda: answers(port, "/bench"), timeout_s=180)
        yield Server(process, port)


@contextmanager
def extending(folder: Path, server: Server) -> Iterator[Extender]:
    config = kubeconfigs.write(folder / "kubeconfig", server=server.url)
    port = free_port()
    argv = [
        str(COMMAND),
        "extender",
        f"--kubeconfig={config}",
        f"--port={port}",
        "--leader-elect=false",
    ]
    # Nobody binds what is planned here: it is to stay planned.
    argv.append("--planned-timeout=3600")
    with Extender(argv, log=folder / "extender.log", name="extender") as extender:
        extender.url = f"http://127.0.0.1:{port}"
        yield extender


def answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def port_of(extender: Extender) -> int:
    return int(extender.url.rpartition(":")[2])
