"""``pumice demo --page``: a cluster that is kept, with work in it that moves."""

from __future__ import annotations

import logging
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.root import app
from tests.cli.stand import invoke
from tests.clusters.processes import wait_until


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """The demo says less than other commands; later tests want all of it."""
    log = logging.getLogger("app")
    level = log.level
    yield
    log.setLevel(level)


PUMICE = str(Path(sys.executable).with_name("pumice"))


@pytest.mark.sandbox
def test_work_moves_in_several_queues_until_ctrl_c(tmp_path: Path) -> None:
    with subprocess.Popen(
        [PUMICE, "demo", "--page"],
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as demo:
        assert demo.stdout is not None
        try:
            said = [demo.stdout.readline() for _ in range(5)]
            assert re.fullmatch(r"page:  http://127\.0\.0\.1:\d+/ui\n", said[0])
            config = Path(said[1].split()[-1])

            def running() -> set[str]:
                rows = invoke(config, "job", "list", "-o", "wide").out.splitlines()[1:]
                return {row.split()[-4] for row in rows if "Running" in row}

            enough = {"batch", "production", "research", "small"}
            wait_until(lambda: running() >= enough, timeout_s=90, what="jobs run in each queue")
            assert "too-large-1" in invoke(config, "top").out, "and one waits"
            demo.send_signal(signal.SIGINT)
            rest = demo.stdout.read()
            assert (demo.wait(timeout=30), rest) == (0, "")
        finally:
            demo.kill()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sandbox
def test_it_ends_by_itself_when_its_time_is_over() -> None:
    done = subprocess.run(
        [PUMICE, "demo", "--page", "--for", "1s"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("flags", "code", "why"),
    [
        (("--for", "10m"), 2, "pumice demo: --for and --port need --page\n"),
        (("--page", "--for", "soon"), 2, "pumice demo: --for: 'soon' is not a duration"),
        (("--page", "--for", "0s"), 2, "pumice demo: --for: 0s is no time at all\n"),
        (("--page", "--port", "99999"), 2, "Invalid value for '--port'"),
    ],
)
def test_flags_that_make_no_sense_are_refused(flags: tuple[str, ...], code: int, why: str) -> None:
    done = CliRunner().invoke(app, ["demo", *flags])
    assert done.exit_code == code
    assert why in done.stderr


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, ["demo", "--page", "--port", str(port)])
    assert done.exit_code == 1
    assert done.stderr == f"pumice demo: port {port} on 127.0.0.1: Address already in use\n"
