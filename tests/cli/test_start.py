"""What a command loads before it does anything: whoever types it waits for that."""

import subprocess
import sys

import pytest

_LOADED = "import sys, app.cli.{0}; print(*sorted(sys.modules))"


@pytest.mark.parametrize("program", ["root", "standalone", "vcctl"])
def test_commands_start_without_what_they_do_not_need(program: str) -> None:
    asked = [sys.executable, "-c", _LOADED.format(program)]
    loaded = subprocess.run(asked, capture_output=True, check=True, text=True).stdout.split()
    assert f"app.cli.{program}" in loaded
    assert not {"numpy", "fastapi", "kubernetes"}.intersection(loaded)
