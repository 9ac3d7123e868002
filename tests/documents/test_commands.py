"""Every command in the documents can be given as it stands.

A block runs as a script in a folder that looks like the checkout, against a sandbox. Where a block
starts a sandbox of its own, that one is meant from then on; one with the real control plane is
started by `tests/sandbox/test_command_on_the_real_one.py`. `make` only says what it would do, as
these targets are parts of `make test`, and there is no Docker.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.clusters.installation import ROOT
from tests.clusters.processes import wait_until
from tests.documents.blocks import Block, blocks
from tests.sandbox.started import KUBECTL, Started, started

_FILES: Final = ("examples", "manifests", "scheduler-config", "Dockerfile")
_STAND_INS: Final = {
    "make": 'exec "$REAL_MAKE" --dry-run --directory="$CHECKOUT" "$@" >/dev/null',
    "docker": '[ "$1" = push ] || test -f Dockerfile',
    "kubectl": 'KUBECONFIG=$(cat kubeconfig) exec "$REAL_KUBECTL" "$@"',
    "pumice": """
if [ "$1" = sandbox ] && [ -e pid ]; then exit 0; fi  # a second try
set -- "${@/10m/3s}"  # nothing here is to be looked at for ten minutes
if [ "$1" != sandbox ]; then KUBECONFIG=$(cat kubeconfig) exec "$REAL_PUMICE" "$@"; fi
[[ "$*" != *"--control-plane real"* ]] || exec "$REAL_PUMICE" "$@" --help >/dev/null
"$REAL_PUMICE" "$@" >started 2>&1 &
echo $! >pid
for _ in $(seq 200); do grep -q Ctrl-C started && break; sleep 0.1; done
sed -n 's/^kubeconfig: *//p' started >kubeconfig
test -s kubeconfig""",
}
"""Program -> what runs in its place."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    log = tmp_path_factory.mktemp("sandbox") / "log"
    with started(log, "--nodes=2", "--cpu=4") as running:
        running.kubectl("create", "namespace", "pumice-system")
        for name in ("n1", "n2"):
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
            running.kubectl("create", "--filename=-", stdin=node)
        yield running


@pytest.fixture
def checkout(tmp_path: Path, sandbox: Started) -> Iterator[Path]:
    """A folder that looks like the checkout, and whose programs mean the sandbox."""
    for name in _FILES:
        (tmp_path / name).symlink_to(ROOT / name)
    for folder in (tmp_path / "bin", tmp_path / ".venv" / "bin"):
        folder.mkdir(parents=True)
    for name, script in _STAND_INS.items():
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)
    (tmp_path / ".venv" / "bin" / "pumice").symlink_to(tmp_path / "bin" / "pumice")
    (tmp_path / "kubeconfig").write_text(sandbox.said("kubeconfig"))
    (tmp_path / "ufm-ca.pem").write_text("a certificate")
    yield tmp_path
    pid = tmp_path / "pid"
    if pid.exists():
        end(int(pid.read_text()))


def end(pid: int) -> None:
    """End a sandbox, by force if it does not go: nothing is left of a test, nor of one that fails.

    It was started in the background of a script, where an interrupt is ignored.
    """
    for ask, patience_s in ((signal.SIGTERM, 20), (signal.SIGKILL, 5)):
        try:
            os.kill(pid, ask)
            wait_until(lambda: not Path(f"/proc/{pid}").exists(), timeout_s=patience_s, what="end")
        except ProcessLookupError:
            return
        except AssertionError:
            continue
        return


def script(block: Block) -> str:
    """The block with its files below the folder that it runs in."""
    return block.text.replace("/etc/kubernetes", "etc/kubernetes")


def run(checkout: Path, block: Block) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script(block)],
        cwd=checkout,
        env={
            "PATH": f"{checkout / 'bin'}:/usr/bin:/bin",
            "HOME": str(checkout),
            "TMPDIR": str(checkout),
            "CHECKOUT": str(ROOT),
            "REAL_MAKE": shutil.which("make") or "",
            "REAL_KUBECTL": KUBECTL,
            "REAL_PUMICE": str(Path(sys.executable).with_name("pumice")),
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.sandbox
@pytest.mark.parametrize("block", blocks("sh"), ids=str)
def test_commands_run_as_they_stand(sandbox: Started, checkout: Path, block: Block) -> None:
    looks = "kubectl get " in block.text  # at what becomes of the commands before

    def done() -> bool:
        result = run(checkout, block)
        said.append(result.stderr)
        return result.returncode == 0

    said: list[str] = []
    if looks:
        wait_until(done, timeout_s=120, what=str(block))
    else:
        assert done(), said
