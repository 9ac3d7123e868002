"""What the bodies of all requests of one port may take together."""

import socket
from contextlib import ExitStack

import pytest

from app.main.serving import server
from app.main.serving.bounded import PIPELINED
from tests.api.stand import args
from tests.main.serving.test_server import exchange, served
from tests.main.test_bounds import END, GET, connect, is_alive, is_over

SIZE = 2**18
UNFINISHED = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (SIZE + 1)
REFUSED = b"HTTP/1.1 429 Too Many Requests\r\n"


def begun(stack: ExitStack, where: tuple[str, int]) -> socket.socket:
    """A connection on which all of a body has come but for its last byte."""
    link = stack.enter_context(connect(where))
    link.sendall(UNFINISHED + bytes(SIZE))
    return link


def is_open(link: socket.socket) -> bool:
    """Whether nothing has come on it, not even its end."""
    link.settimeout(0.05)
    try:
        link.recv(1)
    except TimeoutError:
        return True
    except ConnectionError:
        return False
    return False


def test_bodies_that_do_not_end_keep_the_memory_of_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODIES", 4 * SIZE)
    with served() as where, ExitStack() as stack:
        links = [begun(stack, where) for _ in range(12)]
        assert is_over(links[0])
        assert is_alive(where)
        left = [link for link in links if is_open(link)]
        assert 1 <= len(left) <= 4
        assert left == links[-len(left) :]


def test_a_call_is_served_beside_bodies_that_do_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODIES", 4 * SIZE)
    with served() as where, ExitStack() as stack:
        for _ in range(12):
            begun(stack, where)
            body = repr(args("p")).replace("'", '"').replace("None", "null").encode()
            head = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
            assert exchange(where, head + body).startswith(b"HTTP/1.1 200 ")


def test_what_is_answered_takes_nothing_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODIES", 4 * SIZE)
    whole = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % SIZE + bytes(SIZE)
    with served() as where, ExitStack() as stack:
        first = begun(stack, where)
        for _ in range(20):
            assert exchange(where, whole).startswith(b"HTTP/1.1 400 ")
        assert is_open(first)


def test_a_few_requests_may_wait_for_the_answer_of_one_before() -> None:
    with served() as where, connect(where) as link:
        link.sendall((GET + END) * PIPELINED)
        told = b""
        while told.count(b"HTTP/1.1 200 ") < PIPELINED:
            told += link.recv(65536)


def test_requests_that_wait_for_answers_are_no_more_than_a_few() -> None:
    with served() as where, connect(where) as link:
        link.sendall((GET + END) * 10 * PIPELINED)
        told = b""
        while piece := link.recv(65536):
            told += piece
        assert REFUSED in told
        assert is_alive(where)
