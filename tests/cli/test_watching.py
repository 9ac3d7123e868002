"""``--watch``: a row for each change in a pipe, a table that changes on a terminal."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.cli.tables import Column, GrowingTable
from app.wire.documents import ObjectName
from app.wire.kinds import JOBS, PODS
from tests.cli.stand import Object, Stand, job
from tests.cli.stand import pod as pod_document
from tests.cli.terminal import PUMICE, terminal
from tests.kube.informing import GONE_LINE
from tests.kube.server import ScriptedServer, failure, line, lists_and_watches, page, watch


@contextmanager
def piped(config: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command whose output goes into a pipe; its lines are waited for by reading them."""
    started = subprocess.Popen(
        [*PUMICE, *arguments],
        env={"PATH": "/usr/bin:/bin", "KUBECONFIG": str(config)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def row(command: subprocess.Popen[str]) -> list[str]:
    assert command.stdout is not None
    return command.stdout.readline().split()


def ended(command: subprocess.Popen[str]) -> tuple[int, str]:
    """The code with which Ctrl-C ends it, and what it has complained of."""
    command.send_signal(signal.SIGINT)
    _, complaints = command.communicate(timeout=20)
    return command.returncode, complaints


def test_each_change_of_a_job_is_a_row_until_ctrl_c(stand: Stand) -> None:
    stand.create(job("first"), job("other", queue="another"))
    with piped(stand.config, "job", "list", "--watch", "--queue", "default") as command:
        assert row(command)[:3] == ["Name", "Creation", "Phase"]
        assert row(command)[0] == "first"
        stand.create(job("second"))
        assert row(command)[0] == "second"
        stand.status(JOBS, "first", {"state": {"phase": "Running"}, "running": 3})
        assert row(command)[:3] == ["first", "2023-11-14", "Running"]
        stand.status(JOBS, "other", {"state": {"phase": "Running"}})
        stand.server.delete("batch.volcano.sh/jobs", ObjectName("default", "second"))
        assert row(command)[0] == "second"
        assert ended(command) == (0, "")


def test_whole_objects_come_one_after_the_other(stand: Stand) -> None:
    stand.create(job("a"))
    with piped(stand.config, "job", "list", "-w", "-o", "json") as command:
        assert command.stdout is not None
        text = ""
        while text.count("\n}\n") < 1:
            text += command.stdout.readline()
        assert json.loads(text)["metadata"]["name"] == "a"
        assert ended(command) == (0, "")


def test_what_a_lost_server_and_one_that_forgets_have_missed_is_shown(tmp_path: Path) -> None:
    """Of pods: the first watch is told that the server has forgotten, the second breaks off."""
    with ScriptedServer() as server:
        lists = [page([pod("a", 1)], version=2), page([pod("a", 1), pod("b", 3)], version=4)]
        watches = [
            watch(GONE_LINE, then="end"),
            watch(then="drop"),
            failure(503, message="down"),
            watch(line("ADDED", pod("c", 5))),
        ]
        server.on("GET", PODS.path(namespace="default"), lists_and_watches(lists, watches))
        with piped(server.kubeconfig(tmp_path), "pod", "list", "-w") as command:
            assert [row(command)[0] for _ in range(4)] == ["Name", "a", "b", "c"]
            code, complaints = ended(command)
        assert code == 0
        assert complaints.count("Warning: ") == complaints.count("\n") > 0
        assert "down; it is tried again" in complaints


def test_a_terminal_has_a_table_that_changes(stand: Stand) -> None:
    stand.create(*(job(f"job-{number}") for number in range(12)))
    env = {"KUBECONFIG": str(stand.config)}
    with terminal(*PUMICE, "job", "list", "--watch", env=env, rows=8, columns=60) as shown:
        shown.wait_for("… 7 more")
        stand.status(JOBS, "job-0", {"state": {"phase": "Completed"}, "succeeded": 3})
        shown.wait_for("job-0    2023-11-14     Completed   Batch       3")
        assert all(len(line) <= 60 for line in shown.frame.splitlines())
        shown.press("q")
        assert shown.end() == 0
        assert shown.is_given_back


def test_a_list_that_is_refused_is_an_error_and_not_waited_for(stand: Stand) -> None:
    code, told = stand.refusal("job", "list", "-w", "--master", "http://127.0.0.1:1")
    assert (code, told.startswith("Failed to list job: the API server is not reached")) == (5, True)
    assert stand.refusal("job", "list", "-w", "-n", "a/b")[0] == 2
    assert stand.refusal("pod", "list", "-w", "--job", "j", "--queue", "q")[0] == 2


def test_columns_of_a_growing_table_only_grow() -> None:
    table = GrowingTable()
    columns = [Column("Name", lambda item: item["n"], 6), Column("X", lambda _: "x", 1)]
    assert table.lines(columns, [{"n": "abcdefgh"}]) == ["Name     X ", "abcdefgh x "]
    assert table.lines(columns, [{"n": "b"}])[1] == "b        x "


def pod(name: str, version: int) -> Object:
    made = pod_document(name, labels={"volcano.sh/job-name": "j"})
    made["metadata"]["resourceVersion"] = str(version)
    return made
