"""A kubeconfig that is of no use ends every command in the same way: one line, exit code 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = {
    "extender": ["extender", "--port=0"],
    "controllers": ["controllers", "--healthz-address="],
    "webhooks": ["webhooks", "--bind-address=127.0.0.1", "--port=0"],
    "verb": ["job", "list"],
}
KUBECONFIG = """
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: "https://x", certificate-authority-data: bm9uZQ==}}]
users: []
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_kubeconfig_of_no_use_is_one_line_and_exit_code_2(command: str, tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    code, lines = ended(COMMANDS[command], file)
    assert code == 2
    assert len(lines) == 1, lines
    assert f"the certificates of {file} cannot be read: " in lines[0]


def ended(arguments: list[str], file: Path) -> tuple[int, list[str]]:
    """Exit code and the lines that were said."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PUMICE_")}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from app.cli.root import main; main()",
            *arguments,
            f"--kubeconfig={file}",
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()
