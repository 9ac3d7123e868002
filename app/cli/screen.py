"""The whole terminal for a view that changes, and the terminal as it was when the view is left.

The view is drawn on the terminal's other screen, so what stood there before comes back with the end
of the command, also when it ends by an error or is stopped by Ctrl-Z. ``q`` ends the view.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from rich.console import Console, RenderableType
from rich.live import Live

_LEAVING: Final = b"qQ"
_MOST_KEYS: Final = 64

Frame = Callable[[int, int], RenderableType]
"""The view on so many columns and lines."""


class Screen:
    """A view on the terminal: `draw` shows it as it is now."""

    def __init__(self, console: Console, frame: Frame) -> None:
        self._console = console
        self._frame = frame
        self._live = Live(
            get_renderable=self._drawn,
            console=console,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._keys = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._before: list[Any] = []
        self.left = asyncio.Event()
        """Set by the key that ends the view."""

    def draw(self) -> None:
        """Show the view as it is now, as large as the terminal is now."""
        if self._live.is_started:
            self._live.refresh()

    def enter(self) -> None:
        """Take the terminal."""
        if self._keys is not None:
            self._before = termios.tcgetattr(self._keys)
            tty.setcbreak(self._keys)
            asyncio.get_running_loop().add_reader(self._keys, self._read)
        self._live.start()
        self.draw()

    def leave(self) -> None:
        """Give the terminal back as it was."""
        self._live.stop()
        if self._keys is not None and self._before:
            asyncio.get_running_loop().remove_reader(self._keys)
            termios.tcsetattr(self._keys, termios.TCSADRAIN, self._before)

    def rest(self) -> None:
        """Stop, as Ctrl-Z asks; take the terminal again when the shell has the command go on."""
        self.leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        self.enter()

    def _read(self) -> None:
        keys = b""
        with suppress(OSError):
            keys = os.read(self._keys or 0, _MOST_KEYS)
        if not keys:  # the terminal is gone
            asyncio.get_running_loop().remove_reader(self._keys or 0)
        if not keys or set(keys) & set(_LEAVING):
            self.left.set()

    def _drawn(self) -> RenderableType:
        size = self._console.size
        return self._frame(size.width, size.height)


def has_screen() -> bool:
    """Whether standard output is a terminal on which a view can be drawn."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in {"", "dumb", "unknown"}


@asynccontextmanager
async def screen(frame: Frame) -> AsyncIterator[Screen]:
    """The terminal while a view is shown; a cancellation or an error gives it back as well."""
    loop = asyncio.get_running_loop()
    shown = Screen(Console(highlight=False), frame)
    handlers = {signal.SIGWINCH: shown.draw}
    if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
        handlers[signal.SIGTSTP] = shown.rest
    try:
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        shown.enter()
        yield shown
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
        shown.leave()
