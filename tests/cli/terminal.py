"""A command on a terminal of its own: what it draws, keys and signals for it, how it leaves it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

PATIENCE_S: Final = 20.0
PUMICE: Final = (str(Path(sys.executable).with_name("pumice")),)

_ENTERED, _LEFT = "\x1b[?1049h", "\x1b[?1049l"
_HIDDEN, _SHOWN = "\x1b[?25l", "\x1b[?25h"
_ORDERS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A pseudo-terminal with a process on it."""

    def __init__(
        self, argv: tuple[str, ...], env: Mapping[str, str], *, rows: int, columns: int
    ) -> None:
        self._master, self._slave = pty.openpty()
        self.resize(rows, columns)
        self._before = self._attributes()
        self.process = subprocess.Popen(
            argv,
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env={"PATH": "/usr/bin:/bin", "TERM": "xterm-256color", **env},
            start_new_session=True,
        )
        self.raw = ""

    @property
    def text(self) -> str:
        """All that was drawn, without orders to the terminal."""
        return _ORDERS.sub("", self.raw)

    @property
    def frame(self) -> str:
        """What was drawn last, from the upper left corner on."""
        return _ORDERS.sub("", self.raw.rpartition("\x1b[H")[2])

    @property
    def is_given_back(self) -> bool:
        """Whether the terminal is as it was before the command: its screen, cursor and keys."""
        screens, cursors = (
            self.raw.rfind(on) < self.raw.rfind(off)
            for on, off in ((_ENTERED, _LEFT), (_HIDDEN, _SHOWN))
        )
        return screens and cursors and self._attributes() == self._before

    def resize(self, rows: int, columns: int) -> None:
        """Make the terminal larger or smaller."""
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: str) -> None:
        """Press keys; those of signals (``\\x03``) do nothing without a controlling terminal."""
        os.write(self._master, keys.encode())

    def wait_for(self, text: str) -> None:
        """Read on until the text has been drawn since the last call."""
        begun = len(self.raw)
        until = time.monotonic() + PATIENCE_S
        while text not in _ORDERS.sub("", self.raw[begun:]):
            assert time.monotonic() < until, f"{text!r} is not in {self.raw[begun:]!r}"
            self.read()

    def end(self) -> int:
        """Read on until the process has ended; its exit code."""
        until = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < until, self.raw
            self.read()
        self.read()
        return self.process.returncode

    def close(self) -> None:
        """End what is left."""
        self.process.kill()
        self.process.wait()
        for end in (self._master, self._slave):
            os.close(end)

    def read(self) -> None:
        """Read what has come, or wait a moment for it."""
        ready, _, _ = select.select([self._master], [], [], 0.05)
        if ready:
            self.raw += os.read(self._master, 1 << 16).decode(errors="replace")

    def _attributes(self) -> list[Any]:
        return termios.tcgetattr(self._slave)


@contextmanager
def terminal(
    *argv: str, env: Mapping[str, str] | None = None, rows: int = 30, columns: int = 100
) -> Iterator[Terminal]:
    """A terminal with the command on it; what still runs at the end is killed."""
    opened = Terminal(argv, env or {}, rows=rows, columns=columns)
    try:
        yield opened
    finally:
        opened.close()
