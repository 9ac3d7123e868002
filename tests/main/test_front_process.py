"""The front as a process: it answers with places, hands on the rest, and ends when it is to."""

import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from httpx2 import Client

from app.sandbox.controlplane.processes import wait_until
from app.wire.filter_by_name import SAMPLE_FLOOR
from tests.bench import usage
from tests.clusters.client import WITHOUT_TLS
from tests.clusters.processes import ended
from tests.main.extending import (
    Extender,
    Post,
    binds_held,
    cluster,
    extender,
    gang,
    places,
    planned,
    ready,
)
from tests.sandbox.documents import node

WITHOUT_FRONT = "--front=false"


def front_of(process: Extender) -> int:
    """The process id of its front."""
    [front] = [pid for pid in usage.family(process.pid) if pid != process.pid]
    return front


def answered_by_front(process: Extender) -> float:
    return process.metrics()["pumice_front_answers_total"]


def test_the_front_answers_for_pods_that_have_their_places(tmp_path: Path) -> None:
    with cluster(*gang("g", size=1)) as api, extender(tmp_path, api) as process:
        ready(process)
        has_place = places(process)
        wait_until(has_place, timeout_s=20, what="a place")
        wait_until(lambda: answered_by_front(process) > 0, timeout_s=20, what="the front's answer")
        before = answered_by_front(process)
        assert all(has_place() for _ in range(5))
        wait_until(lambda: answered_by_front(process) == before + 5, timeout_s=20, what="5 more")
        counted = process.metrics()['pumice_extender_answers_total{answer="chosen",verb="filter"}']
        assert counted >= before + 5


def test_a_pod_whose_node_is_not_offered_has_the_place_of_an_equal_one(tmp_path: Path) -> None:
    pods = (*gang("g", size=1, cpus="3"), *gang("h", size=1, cpus="3"))
    with cluster(*pods, node("n2")) as api, extender(tmp_path, api) as process:
        ready(process)
        wait_until(lambda: all(planned_on(process)), timeout_s=20, what="places")
        mine, theirs = planned_on(process)
        with Client(base_url=api, trust_env=False, verify=WITHOUT_TLS) as client:
            pod = client.get("/api/v1/namespaces/default/pods/g-0").json()
        sample = [theirs, *(f"other-{number}" for number in range(SAMPLE_FLOOR))]
        call = {"Pod": pod, "Nodes": None, "NodeNames": sample}
        with Client(base_url=process.url, trust_env=False, verify=WITHOUT_TLS) as client:
            assert client.post("/filter", json=call).json()["NodeNames"] == [theirs]
        wait_until(lambda: answered_by_front(process) == 1, timeout_s=20, what="the front's answer")
        assert planned_on(process) == [theirs, mine]
        assert ended(process) == 0


def planned_on(process: Extender) -> list[str]:
    """The places of g-0 and h-0."""
    stories = [process.get(f"/explain/default/{name}") for name in "gh"]
    return [story["members"][0]["node"] for story in stories]


def test_a_front_that_is_killed_is_followed_by_another(tmp_path: Path) -> None:
    with cluster(*gang("g", size=1)) as api, extender(tmp_path, api) as process:
        ready(process)
        has_place = places(process)
        wait_until(has_place, timeout_s=20, what="a place")
        before = front_of(process)
        os.kill(before, signal.SIGKILL)
        assert has_place(), "the call waits for the next one"
        assert front_of(process) != before
        answered = answered_by_front(process)
        assert has_place(), "the next one was told all places"
        wait_until(lambda: answered_by_front(process) > answered, timeout_s=20, what="its answer")
        assert process.metrics()["pumice_front_starts_total"] == 2
        assert ended(process) == 0


def test_connections_leave_nothing_behind_in_either_process(
    two_extenders: tuple[Extender, Extender],
) -> None:
    process, _ = two_extenders
    both = (process.pid, front_of(process))
    _ask(process, times=3)  # what is opened once for good is open then, and soon the audit log
    wait_until(lambda: _keeps_its_audit_log(process), timeout_s=20, what="the audit log")
    before = [_descriptors(pid, besides=process.api_url) for pid in both]
    _ask(process, times=100)
    wait_until(
        lambda: all(
            _descriptors(pid, besides=process.api_url) <= was
            for pid, was in zip(both, before, strict=True)
        ),
        timeout_s=10,
        what="no more than before",
    )


def _keeps_its_audit_log(process: Extender) -> bool:
    """Whether it is open: its index is the last file of it that is opened."""
    opened = Path(f"/proc/{process.pid}/fd").iterdir()
    return any(_target(each).endswith(".db-shm") for each in opened)


def _ask(process: Extender, *, times: int) -> None:
    for _ in range(times):
        for path, body in (("/livez", b""), ("/nowhere", b"{}"), ("/filter", b"{}")):
            said(process, path, body)


def _descriptors(pid: int, *, besides: str) -> int:
    """How many are open; connections to the API server at ``besides`` come and go meanwhile."""
    port = f":{int(besides.rpartition(':')[2]):04X}"
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    left_out = {"", *(f"socket:[{row[9]}]" for row in rows if row[2].endswith(port))}
    return sum(_target(each) not in left_out for each in Path(f"/proc/{pid}/fd").iterdir())


def _target(descriptor: Path) -> str:
    """What it is of; empty when it is closed by now."""
    with suppress(FileNotFoundError):
        return os.readlink(descriptor)
    return ""


def test_the_front_ends_with_an_extender_that_is_killed_and_leaves_its_port(tmp_path: Path) -> None:
    with cluster() as api, extender(tmp_path, api) as process:
        ready(process)
        front, port = front_of(process), int(process.url.rpartition(":")[2])
        os.kill(process.pid, signal.SIGKILL)
        wait_until(lambda: not _runs(front), timeout_s=5, what="the front's end")
        wait_until(lambda: _is_free(port), timeout_s=5, what="the port")


def test_a_front_that_loses_its_priority_says_so_as_the_extender_would(tmp_path: Path) -> None:
    with cluster() as api, extender(tmp_path, api, "--log-format=json") as process:
        ready(process)
        os.kill(front_of(process), signal.SIGXCPU)
        wait_until(lambda: "any more" in process.log_tail(), timeout_s=5, what="a line")
        [line] = [line for line in process.log.read_text().splitlines() if "any more" in line]
        assert json.loads(line)["logger"] == "app.front.priority"
        assert process.status("/livez") == 200
        assert ended(process) == 0


def test_binds_that_are_held_are_given_up_with_a_front_that_is_killed(tmp_path: Path) -> None:
    with cluster(*gang("g", size=2)) as api, extender(tmp_path, api) as process:
        ready(process)
        held = Post(f"{process.url}/bind", planned(process))
        wait_until(lambda: binds_held(process) == 1, timeout_s=20, what="a held Bind")
        os.kill(front_of(process), signal.SIGKILL)
        held.join(timeout=10)
        assert held.answer is None
        wait_until(lambda: binds_held(process) == 0, timeout_s=20, what="no held Bind")
        assert ended(process) == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/filter", b"{}"),
        pytest.param(
            "/filter", b'{"Pod":{"metadata":{"uid":"u"},"spec":' + b"[" * 10**5, id="deep"
        ),
        pytest.param("/filter", b" " * 2**21, id="long"),
        ("http://elsewhere/filter", b"{}"),
        ("/v1/prioritize", b"not JSON"),
        ("/bind", b'{"PodUID":"u","PodName":"p","PodNamespace":"d","Node":"nowhere"}'),
        ("/bind", b'{"PodUID":"u","PodName":"p","PodNamespace":"d","Node":"n1"}'),
        ("/preempt", b"{"),
        ("/nowhere", b"{}"),
        ("/debug/gangs", b""),
        ("/livez", b""),
    ],
)
def test_answers_are_the_same_with_and_without_one(
    two_extenders: tuple[Extender, Extender], path: str, body: bytes
) -> None:
    one, other = (said(process, path, body) for process in two_extenders)
    assert one == other


@pytest.fixture(name="two_extenders", scope="module")
def _two_extenders(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Extender, Extender]]:
    """One with a front and one without."""
    first, second = tmp_path_factory.mktemp("with"), tmp_path_factory.mktemp("without")
    with (
        cluster() as api,
        extender(first, api) as fronted,
        extender(second, api, WITHOUT_FRONT) as alone,
    ):
        for process in (fronted, alone):
            ready(process)
        yield fronted, alone


def said(process: Extender, path: str, body: bytes) -> bytes:
    """All bytes of the answer, the last of its connection; a GET where there is no body."""
    port = int(process.url.rpartition(":")[2])
    method = "POST" if body else "GET"
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as connection,
        connection.makefile("rb") as answer,
    ):
        connection.sendall(head.encode() + body)
        lines = list(iter(answer.readline, b"\r\n"))
        [length] = re.findall(rb"content-length: (\d+)", b"".join(lines).lower())
        return b"".join(lines) + answer.read(int(length))


def test_who_comes_while_the_extender_drains_is_refused_at_once(tmp_path: Path) -> None:
    with cluster() as api, extender(tmp_path, api) as process:
        ready(process)
        port = int(process.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as slow:
            head = b"Host: x\r\nContent-Length: 5000000\r\nExpect: 100-continue\r\n"
            slow.settimeout(20)
            slow.sendall(b"POST /filter HTTP/1.1\r\n%b\r\n{" % head)
            assert slow.recv(100).startswith(b"HTTP/1.1 100 "), "the extender waits for the rest"
            process.terminate()
            wait_until(lambda: _refuses(port), timeout_s=2, what="a refusal")
            assert process.running
        assert process.wait(timeout_s=10) == 0


def _refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return True
    return False


def test_there_is_none_where_it_is_not_wanted(tmp_path: Path) -> None:
    with cluster(*gang("g", size=1)) as api, extender(tmp_path, api, WITHOUT_FRONT) as process:
        ready(process)
        wait_until(places(process), timeout_s=20, what="a place")
        assert usage.family(process.pid) == [process.pid]
        assert answered_by_front(process) == 0
        assert ended(process) == 0


def _is_free(port: int) -> bool:
    with suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
