"""Our own processes beside a control plane, started as an operator would: by command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from app.cli.root import app
from tests.clusters.controlplane import ControlPlane, Scheduler
from tests.clusters.pages import Pages
from tests.clusters.ports import free_port
from tests.clusters.processes import Process, wait_until

COMMAND = Path(sys.executable).with_name("pumice")


class Extender(Process, Pages):
    """A `pumice extender`; `url` is where kube-scheduler and curl find it."""


def start_extender(
    controlplane: ControlPlane,
    *,
    port: int | None = None,
    kubeconfig: str | Path | None = None,
    conf: Path | None = None,
    flags: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    name: str = "extender",
    ready: bool = True,
    leader_elect: bool = False,
) -> Extender:
    """Start one and wait until it is ready."""
    where = port or free_port()
    argv: list[str | Path] = [
        COMMAND,
        "extender",
        f"--kubeconfig={kubeconfig or controlplane.kubeconfig}",
        f"--port={where}",
        f"--leader-elect={str(leader_elect).lower()}",
        *([f"--scheduler-conf={conf}"] if conf else []),
        *flags,
    ]
    extender = Extender(
        argv, log=controlplane.log(name), name=name, env=None if env is None else os.environ | env
    )
    extender.url = f"http://127.0.0.1:{where}"
    if ready:
        extender.wait_ready(lambda: extender.status("/readyz") == 200, timeout_s=60)
    return extender


def scheduler_config(
    controlplane: ControlPlane,
    extender_url: str,
    *,
    form: str = "a",
    name: str = "scheduler",
    kubeconfig: str | Path | None = None,
    options: Sequence[str] = (),
) -> Path:
    """Write what `pumice scheduler-config` prints for this control plane."""
    arguments = [
        "scheduler-config",
        f"--extender-url={extender_url}",
        f"--kubeconfig={kubeconfig or controlplane.kubeconfig}",
        f"--form={form}",
        *options,
    ]
    # In this process: every rig asks for one, and half a second would go to a process of its own.
    printed = CliRunner().invoke(app, arguments)
    assert printed.exit_code == 0, printed.output
    path = controlplane.folder / f"{name}.yaml"
    path.write_text(printed.stdout)
    return path


def start_scheduler(
    controlplane: ControlPlane,
    extender_url: str,
    *,
    form: str = "a",
    name: str = "volcano-scheduler",
    flags: Sequence[str] = (),
) -> Scheduler:
    """Start the stock scheduler with our configuration of that form."""
    config = scheduler_config(controlplane, extender_url, form=form, name=name)
    return controlplane.start_scheduler(config, name=name, extra_flags=flags)


def drift(extender: Pages) -> list[Any]:
    """Differences between the extender's ledger and the API server."""
    found: list[Any] = extender.get("/debug/ledger")["drifts"]
    return found


def wait_no_drift(extender: Pages, *, timeout_s: float = 15) -> None:
    """Wait until the ledger agrees with the API server."""
    wait_until(lambda: not drift(extender), timeout_s=timeout_s, what="ledger drift 0")
