"""``pumice top``: the view on a terminal, and that the terminal is given back whatever happens."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from app.wire.kinds import QUEUES
from tests.cli.stand import Object, Stand, answering, group, queue
from tests.cli.terminal import PUMICE, Terminal, terminal
from tests.cli.test_node_usage import node, pod
from tests.kube.server import ScriptedServer, failure, line, lists_and_watches, page, watch

TOP = (*PUMICE, "top", "--interval", "200ms")


@pytest.fixture
def busy(stand: Stand) -> Stand:
    waiting = {"type": "Reserved", "status": "False", "reason": "NoRoom", "message": "cpu asked 9"}
    stand.create(
        node("n1"),
        node("n2", unschedulable=True),
        pod("p", "n1", job="j", cpu="2"),
        queue("default"),
        group("waits", phase="Pending", conditions=[waiting]),
        group("runs", phase="Running"),
    )
    return stand


@pytest.fixture
def drawn(busy: Stand) -> Iterator[Terminal]:
    with terminal(*TOP, env={"KUBECONFIG": str(busy.config)}) as shown:
        shown.wait_for("q ends")
        yield shown


class TestOnATerminal:
    """One view until it is left."""

    def test_queues_waiting_gangs_and_nodes_are_drawn_as_they_change(
        self, busy: Stand, drawn: Terminal
    ) -> None:
        drawn.wait_for("Nodes: 2, cpu 2/16, memory 0/64Gi, 1 away")
        assert "default/waits" in drawn.text
        assert "cpu asked 9" in drawn.text
        assert "default/runs" not in drawn.text
        busy.create(group("late", phase="Inqueue"))
        drawn.wait_for("default/late")
        drawn.resize(30, 40)
        drawn.wait_for("Waiting: 2")
        drawn.press("q")
        assert drawn.end() == 0
        assert drawn.is_given_back

    def test_sigterm_ends_it_with_code_0_and_gives_the_terminal_back(self, busy: Stand) -> None:
        env = {"KUBECONFIG": str(busy.config), "NO_COLOR": "1"}
        with terminal(*TOP, env=env) as shown:
            shown.wait_for("[..........]")
            shown.process.send_signal(signal.SIGTERM)
            assert shown.end() == 0
            assert shown.is_given_back
            assert not re.search(r"\x1b\[3\dm", shown.raw), "no colours where none are wanted"

    def test_a_view_that_is_stopped_gives_the_terminal_back_until_it_goes_on_and_ends_by_ctrl_c(
        self, drawn: Terminal
    ) -> None:
        drawn.process.send_signal(signal.SIGTSTP)
        status = 0
        while not os.WIFSTOPPED(status):
            _, status = os.waitpid(drawn.process.pid, os.WUNTRACED | os.WNOHANG)
            drawn.read()
        assert drawn.is_given_back
        drawn.process.send_signal(signal.SIGCONT)
        drawn.wait_for("q ends")
        assert not drawn.is_given_back
        drawn.process.send_signal(signal.SIGINT)
        assert drawn.end() == 0
        assert drawn.is_given_back


def test_an_error_while_it_is_drawn_gives_the_terminal_back() -> None:
    program = """
import asyncio
from app.cli.screen import screen

def frame(width, height):
    if broken:
        raise RuntimeError("nothing to draw")
    return "fine"

broken = False

async def show():
    global broken
    async with screen(frame) as shown:
        broken = True
        shown.draw()

asyncio.run(show())
"""
    with terminal(sys.executable, "-c", program) as shown:
        assert shown.end() == 1
        assert "fine" in shown.text
        assert "RuntimeError: nothing to draw" in shown.text
        assert shown.is_given_back


def test_a_server_that_is_lost_is_told_in_place_until_it_is_back(tmp_path: Path) -> None:
    back = threading.Event()

    async def lost(server: ScriptedServer, request: web.BaseRequest) -> web.StreamResponse:
        again = watch(line("ADDED", {**queue("late"), "metadata": version("late", 3)}))
        return await (again if back.is_set() else failure(503, message="down"))(server, request)

    with ScriptedServer() as server:
        first = page([{**queue("early"), "metadata": version("early", 1)}], version=2)
        server.on("GET", QUEUES.path(), lists_and_watches([first], [watch(then="drop"), lost]))
        config = server.kubeconfig(tmp_path)
        with terminal(*TOP, env={"KUBECONFIG": str(config)}) as shown:
            shown.wait_for("down; what is shown may be old")
            assert "early" in shown.text
            assert "Nodes: not shown: " in shown.text
            back.set()
            shown.wait_for("late")
            assert "what is shown may be old" not in shown.frame
            shown.press("q")
            assert shown.end() == 0
            assert shown.is_given_back


def version(name: str, number: int) -> Object:
    return {"name": name, "resourceVersion": str(number)}


class TestElsewhere:
    """Where nothing can be drawn."""

    def test_a_pipe_gets_everything_once(self, busy: Stand) -> None:
        queues, waiting, nodes = busy.printed("top").split("\n\n")
        assert queues == (
            "Queues: 1\n"
            "Name     State  Waiting  Share              Of  Allocated  Deserved\n"
            "default         1        [..........]   0%  -   <none>     cpu=~8,memory=~32Gi"
        )
        title, columns, row = waiting.splitlines()
        assert title == "Waiting: 1"
        assert columns.split() == ["Gang", "Queue", "Phase", "For", "Needs", "Reason", "Why"]
        gang, queue, phase, _, needs, reason, *why = row.split()
        assert (gang, queue, phase, needs) == ("default/waits", "default", "Pending", "2")
        assert (reason, " ".join(why)) == ("NoRoom", "cpu asked 9")
        assert nodes == (
            "Nodes: 2, cpu 2/16, memory 0/64Gi, 1 away\n"
            "Name  State  CPU  Memory  GPUs  Jobs\n"
            "n1    ready  2/8  0/32Gi  -     1\n"
            "n2    away   0/8  0/32Gi  -     0\n"
        )

    def test_a_terminal_that_cannot_be_drawn_on_gets_everything_once(self, busy: Stand) -> None:
        env = {"KUBECONFIG": str(busy.config), "TERM": "dumb"}
        with terminal(*PUMICE, "top", env=env) as shown:
            assert shown.end() == 0
            assert "Waiting: 1" in shown.raw
            assert "\x1b" not in shown.raw

    @pytest.mark.parametrize(
        ("flags", "why"),
        [
            (("--interval", "soon"), "--interval: "),
            (("--interval", "10ms"), "--interval: 10ms is not between 200ms and 1h"),
            (("--namespace", "a/b"), "namespace 'a/b': nothing has a name with / or % in it"),
        ],
    )
    def test_flags_that_make_no_sense_are_refused(
        self, stand: Stand, flags: tuple[str, ...], why: str
    ) -> None:
        code, told = stand.refusal("top", *flags)
        assert code == 2
        assert why in told

    def test_flags_of_the_view_are_refused_before_a_command(self, stand: Stand) -> None:
        code, told = stand.refusal("top", "--interval", "5s", "queues")
        assert code == 2
        assert "--interval is for the view of `pumice top` alone: it stands before queues" in told
        assert stand.refusal("top", "--master", "http://127.0.0.1:1", "queues")[0] == 2

    def test_a_server_that_is_not_there_is_code_5(self, stand: Stand) -> None:
        code, told = stand.refusal("top", "--master", "http://127.0.0.1:1")
        assert code == 5
        assert "the API server is not reached" in told

    def test_what_serves_no_queues_at_all_is_told(self, stand: Stand) -> None:
        with answering(b'{"kind": "Status", "code": 404}', status=404) as (url, _):
            code, told = stand.refusal("top", "--master", url)
        assert code == 3
        assert "the API server does not serve queues.scheduling.volcano.sh" in told


def test_only_gangs_of_the_namespace_are_shown_that_is_asked_for(busy: Stand) -> None:
    assert "Waiting: no gang waits\n" in busy.printed("top", "--namespace", "other")
    assert "Waiting: 1\n" in busy.printed("top", "-n", "default")
