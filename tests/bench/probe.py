"""How long a Filter call takes as seen by its client: a process of its own.

Run as `python -m tests.bench.probe HOST PORT RATE < body`: posts the body RATE times a second over
one kept connection, as kube-scheduler does, until it gets SIGTERM; then it prints the times in
milliseconds and how many answers named no node. An empty line before that says that it has begun.
In the benchmark's own process the event loop, busy with creating pods, would be measured along, and
without going first the wait for a core after the answer has come.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from types import FrameType

from tests.bench.first import go_first

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_NO_NODE = re.compile(rb'"NodeNames":\s*(null|\[\])')


@dataclass(slots=True)
class Probe:
    """Calls made so far."""

    host: str
    port: int
    body: bytes
    times_ms: list[float] = field(default_factory=list)
    refused: int = 0
    ended: bool = False

    def run(self, rate: float) -> None:
        """Call until ended."""
        head = f"POST /v1/filter HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(self.body)}\r\n\r\n"
        request = head.encode() + self.body
        with socket.create_connection((self.host, self.port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while not self.ended:
                began = time.perf_counter()
                connection.sendall(request)
                answer = _answer(connection)
                took = time.perf_counter() - began
                if not self.times_ms:
                    sys.stdout.write("\n")
                    sys.stdout.flush()
                self.times_ms.append(took * 1000)
                self.refused += not answer.startswith(b"HTTP/1.1 200") or bool(
                    _NO_NODE.search(answer)
                )
                time.sleep(max(0.0, 1 / rate - took))

    def end(self, _signal: int, _frame: FrameType | None) -> None:
        self.ended = True


def _answer(connection: socket.socket) -> bytes:
    received = b""
    while True:
        chunk = connection.recv(2**20)
        if not chunk:
            raise ConnectionError("the server closed the connection")
        received += chunk
        head, end, body = received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if end and length and len(body) >= int(length[1]):
            return received


def main() -> None:
    host, port, rate = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    probe = Probe(host, port, sys.stdin.buffer.read())
    signal.signal(signal.SIGTERM, probe.end)
    if not go_first():
        sys.stderr.write("not permitted to go first: times hold the client's wait for a core\n")
    probe.run(rate)
    json.dump({"times_ms": probe.times_ms, "refused": probe.refused}, sys.stdout)


if __name__ == "__main__":
    main()
