"""Exec plugins to log in with."""

import json
from pathlib import Path

API = "client.authentication.k8s.io/v1"


class Plugin:
    """A command that says what it is told to, and counts."""

    def __init__(self, folder: Path) -> None:
        self._said = folder / "said"
        self._runs = folder / "runs"
        self._runs.write_text("")
        self.command = folder / "plugin"
        self.command.write_text(f"#!/bin/sh\necho run >> {self._runs}\ncat {self._said}\n")
        self.command.chmod(0o755)
        self.user = {"exec": {"apiVersion": API, "command": str(self.command)}}

    def says(self, **status: str) -> None:
        said = {"apiVersion": API, "kind": "ExecCredential", "status": status}
        self._said.write_text(json.dumps(said))

    @property
    def runs(self) -> int:
        return len(self._runs.read_text().split())
