"""The sandbox as a process, started as a user would: `pumice sandbox`.

It says on its output where it is; the test reads that from the log.
"""

from __future__ import annotations

import contextlib
import re
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from tests.clusters.client import ApiClient
from tests.clusters.conf_file import ConfFile
from tests.clusters.pages import Pages
from tests.clusters.processes import Process
from tests.clusters.pumice import COMMAND

_READY_S = 60.0


class Embedded:
    """A running sandbox without nodes; `with` starts and ends it."""

    kind: Literal["sandbox", "real"] = "sandbox"
    api: ApiClient
    extender: Pages
    kubeconfig: str

    def __init__(self, folder: Path, *, conf: Path | None = None) -> None:
        self._log = folder / "sandbox.log"
        # Behaviours of the scheduler's side are shown with objects that admission would not take.
        flags = ["--nodes=0", "--webhooks=false", *([f"--scheduler-conf={conf}"] if conf else [])]
        self._argv: list[str | Path] = [COMMAND, "sandbox", *flags]

    def __enter__(self) -> Self:
        self._process = Process(self._argv, log=self._log, name="sandbox")
        self._process.wait_ready(lambda: "Ctrl-C" in self._log.read_text(), timeout_s=_READY_S)
        self.kubeconfig = self._said("kubeconfig")
        self.api = ApiClient(self._said("API server"))
        self.extender = Pages()
        self.extender.url = self._said("extender")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.api.close()
        self._process.stop()

    def _said(self, what: str) -> str:
        found = re.search(rf"^{what}: +(\S+)", self._log.read_text(), re.MULTILINE)
        assert found is not None, self._log.read_text()
        return found[1]


class Sandboxes:
    """A sandbox without a configuration and one that follows a file, both ended by `with`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def of(self, conf: str) -> Embedded:
        """The sandbox with that configuration in force; empty: the one without."""
        if not conf:
            return self._plain
        sandbox, file = self._following
        file.put(conf, sandbox.extender)
        return sandbox

    @cached_property
    def _plain(self) -> Embedded:
        return self._started("plain", None)

    @cached_property
    def _following(self) -> tuple[Embedded, ConfFile]:
        file = ConfFile(self._folder)
        return self._started("following", file.path), file

    def _started(self, name: str, conf: Path | None) -> Embedded:
        folder = self._folder / name
        folder.mkdir(exist_ok=True)  # it may be the second try
        return self._stack.enter_context(Embedded(folder, conf=conf))
