"""`pumice sandbox` as a process, and stock kubectl beside it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.sandbox.controlplane.processes import Process

COMMAND = Path(sys.executable).with_name("pumice")
KUBECTL = shutil.which("kubectl") or ""


@dataclass(frozen=True)
class Started:
    """A sandbox that has said where it is."""

    process: Process

    def said(self, what: str) -> str:
        found = re.search(rf"^{what}: +(\S+)", self.process.log.read_text(), re.MULTILINE)
        assert found is not None, self.process.log.read_text()
        return found[1]

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def children(self) -> dict[str, int]:
        """Its child processes by the name of their program."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return {Path(f"/proc/{each}/comm").read_text().strip(): int(each) for each in children}

    def kubectl(self, *arguments: str, stdin: object = None, fails: bool = False) -> str:
        """Output of a kubectl call; of one that fails, what it complains of."""
        done = subprocess.run(
            [KUBECTL, *arguments],
            input=stdin if isinstance(stdin, str) else json.dumps(stdin),
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stderr
        return done.stderr if fails else done.stdout

    def environment(self) -> dict[str, str]:
        home = str(self.process.log.parent)
        return {"KUBECONFIG": self.said("kubeconfig"), "HOME": home, "PATH": "/usr/bin:/bin"}


def runs(pid: int) -> bool:
    """An ended process that nobody has waited for yet does not count."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@contextmanager
def started(
    log: Path, *flags: str, env: Mapping[str, str] | None = None, timeout_s: float = 60
) -> Iterator[Started]:
    """Run a sandbox; its temporary files and output are beside ``log``."""
    with begun(log, *flags, env=env) as process:
        process.wait_ready(lambda: "Ctrl-C" in log.read_text(), timeout_s=timeout_s)
        yield Started(process)


def begun(log: Path, *flags: str, env: Mapping[str, str] | None = None) -> Process:
    """The same without waiting, for those that will not come up."""
    environment = {**os.environ, "TMPDIR": str(log.parent), **(env or {})}
    return Process([COMMAND, "sandbox", *flags], log=log, name="pumice sandbox", env=environment)


def refused(*flags: str, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Exit code and complaint of a sandbox that does not start."""
    done = subprocess.run(
        [COMMAND, "sandbox", *flags],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert not done.stdout, done.stdout
    return done.returncode, done.stderr
