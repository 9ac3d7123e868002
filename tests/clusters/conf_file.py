"""A scheduler configuration that a running extender follows, as it does a mounted ConfigMap."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from app.wire.scheduler_conf import DEFAULT_CONF
from tests.clusters.pages import Pages
from tests.clusters.processes import wait_until

_LOADED: Final = 'pumice_configuration_reloads_total{outcome="loaded"}'
_WAIT_S = 30.0


class ConfFile:
    """The file volcano-scheduler.conf in a folder; at first with what is built in."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "volcano-scheduler.conf"
        self.path.write_text(DEFAULT_CONF)

    def put(self, text: str, extender: Pages) -> None:
        """Put a text into force; empty: what is built in. The extender follows the file."""
        wanted = text or DEFAULT_CONF
        if self.path.read_text() == wanted:
            return
        loads = extender.metrics()[_LOADED]
        written = self.path.with_suffix(".new")
        written.write_text(wanted)
        written.replace(self.path)  # never seen half written
        wait_until(
            lambda: extender.metrics()[_LOADED] > loads,
            timeout_s=_WAIT_S,
            what="the configuration is in force",
        )
