"""``pumice sandbox`` and ``pumice demo``: a cluster on this machine."""

from __future__ import annotations

import logging
import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

from app.cli.processes import Switch
from app.cli.scheduler_config import render
from app.cli.truths import switch
from app.kit.durations import parse_duration
from app.model.numa import NumaPolicy
from app.sandbox.controlplane.programs import FOLDER_VARIABLE, ProgramsMissing, located
from app.sandbox.nodes import NodeSpec, NumaSpec
from app.sandbox.quantities import parse_milli
from app.wire import manifests

LOOK = """
To look at such a cluster while it works, on a page: pumice demo --page
On a cluster of your own, the page is /ui of the extender's reading port."""


def sandbox(  # noqa: PLR0917 - one parameter per flag, all given by name
    nodes: Annotated[
        int, typer.Option(envvar="PUMICE_NODES", min=0, help="How many nodes there are.")
    ] = 10,
    cpu: Annotated[str, typer.Option(envvar="PUMICE_CPU", help="CPU of each node.")] = "4",
    memory: Annotated[
        str, typer.Option(envvar="PUMICE_MEMORY", help="Memory of each node.")
    ] = "16Gi",
    gpus: Annotated[int, typer.Option(envvar="PUMICE_GPUS", min=0, help="GPUs of each node.")] = 0,
    gpu_memory: Annotated[
        str, typer.Option(envvar="PUMICE_GPU_MEMORY", help="Memory of each GPU that is shared.")
    ] = "80Gi",
    vgpu: Annotated[
        bool,
        typer.Option("--vgpu", envvar="PUMICE_VGPU", help="Let pods share the GPUs as vGPUs."),
    ] = False,
    chips: Annotated[
        int,
        typer.Option(
            envvar="PUMICE_CHIPS",
            min=0,
            help="Ascend 310P chips of each node, cut as MindCluster does.",
        ),
    ] = 0,
    racks: Annotated[
        int,
        typer.Option(
            envvar="PUMICE_RACKS",
            min=0,
            help="How many racks the nodes stand in; each is a HyperNode.",
        ),
    ] = 0,
    numa: Annotated[
        int,
        typer.Option(
            envvar="PUMICE_NUMA",
            min=0,
            max=8,
            help="NUMA nodes of each node, told by Numatopologies.",
        ),
    ] = 0,
    numa_policy: Annotated[
        Literal["none", "best-effort", "restricted", "single-numa-node"],
        typer.Option(
            envvar="PUMICE_NUMA_POLICY", help="Policy of the topology managers of the nodes."
        ),
    ] = "single-numa-node",
    batch: Annotated[
        int,
        typer.Option(
            envvar="PUMICE_BATCH",
            min=0,
            max=100,
            help="Per cent of cpu and memory that offline pods may use too.",
        ),
    ] = 0,
    load: Annotated[
        bool,
        typer.Option(
            "--load",
            envvar="PUMICE_LOAD",
            help="Let nodes tell a load, as if their pods used what they request.",
        ),
    ] = False,
    port: Annotated[
        int,
        typer.Option(
            envvar="PUMICE_PORT", min=0, max=65535, help="Port of the API server; 0: any free one."
        ),
    ] = 0,
    extender_port: Annotated[
        int,
        typer.Option(
            envvar="PUMICE_EXTENDER_PORT",
            min=0,
            max=65535,
            help="Port of the extender; 0: any free one.",
        ),
    ] = 0,
    form: Annotated[
        manifests.Form,
        typer.Option(
            envvar="PUMICE_FORM",
            help="a: a scheduler of our own. b (real only): shared, only marked pods are sent."
            " c: shared, every pod is sent.",
        ),
    ] = "a",
    scheduler_conf: Annotated[
        Path | None,
        typer.Option(
            envvar="PUMICE_SCHEDULER_CONF",
            exists=True,
            dir_okay=False,
            help="A volcano-scheduler.conf. (default: Volcano's)",
        ),
    ] = None,
    webhooks: Annotated[
        Switch,
        typer.Option(
            envvar="PUMICE_WEBHOOKS",
            parser=switch,
            help="Complete and judge jobs, queues and pods as the webhooks do.",
        ),
    ] = "true",
    control_plane: Annotated[
        Literal["embedded", "real"],
        typer.Option(
            envvar="PUMICE_CONTROL_PLANE",
            help="embedded: an API server in memory. real: the stock programs.",
        ),
    ] = "embedded",
    control_plane_path: Annotated[
        Path | None,
        typer.Option(
            envvar=["PUMICE_CONTROL_PLANE_PATH", FOLDER_VARIABLE],
            help="Folder of the stock programs. (default: what `make controlplane` built)",
        ),
    ] = None,
) -> None:
    """Run a cluster until Ctrl-C and say where it is."""
    for flag, quantity in (("--cpu", cpu), ("--memory", memory), ("--gpu-memory", gpu_memory)):
        if not is_positive(quantity):
            _refuse(f"{flag}: {quantity!r} is no quantity such as 4, 500m or 16Gi")
    if vgpu and not gpus:
        _refuse("--vgpu: there are no GPUs to share (--gpus)")
    if racks > nodes:
        _refuse(f"--racks {racks}: there are only {nodes} nodes (--nodes)")
    if numa * 1000 > parse_milli(cpu):
        _refuse(f"--numa {numa}: a node has only {cpu} cpus (--cpu)")
    if form == "b" and control_plane == "embedded":
        _refuse("--form b needs --control-plane real")
    from app.main import sandbox as embedded
    from app.main import stock_sandbox as stock

    with tempfile.TemporaryDirectory(prefix="pumice-sandbox-") as folder:
        options = embedded.SandboxOptions(
            nodes=NodeSpec(
                count=nodes,
                cpu=cpu,
                memory=memory,
                gpus=gpus,
                gpu_memory=gpu_memory,
                vgpu=vgpu,
                chips=chips,
                racks=racks,
                batch=batch,
                tells_load=load,
                numa=NumaSpec(numa, NumaPolicy(numa_policy)) if numa else None,
            ),
            folder=Path(folder),
            port=port,
            extender_port=extender_port,
            form=form,
            scheduler_conf=scheduler_conf,
            webhooks=webhooks == "true",
        )
        try:
            if control_plane == "embedded":
                embedded.serve(options, say=typer.echo)
                return
            programs = stock.Programs(
                folder=located(control_plane_path), scheduler_config=partial(_config, form)
            )
            stock.serve(options, programs, say=typer.echo)
        except (embedded.SandboxFailed, ProgramsMissing) as error:
            _refuse(str(error), code=1)


def is_positive(quantity: str) -> bool:
    """Whether ``quantity`` can be read and is more than nothing."""
    try:
        return parse_milli(quantity) > 0
    except ValueError:
        return False


def _config(form: manifests.Form, extender_url: str, kubeconfig: str) -> str:
    return render(extender_url=extender_url, form=form, kubeconfig=kubeconfig)


def _refuse(why: str, *, code: int = 2, command: str = "sandbox") -> NoReturn:
    typer.echo(f"pumice {command}: {why}", err=True)
    raise typer.Exit(code)


def demo(
    page: Annotated[
        bool,
        typer.Option(
            "--page", help="Keep a cluster with work that moves, and say where its page is."
        ),
    ] = False,
    duration: Annotated[
        str,
        typer.Option("--for", help="How long the cluster is kept: 10m. (default: until Ctrl-C)"),
    ] = "",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port of the page; 0: any free one.")
    ] = 0,
) -> None:
    """Tell the first story on the sandbox, or keep a cluster to look at.

    Exit code 1 when the story goes another way.
    """
    if not page and (duration or port):
        _refuse("--for and --port need --page", command="demo")
    for_s = _seconds(duration) if duration else None
    # The story is told on the terminal; what works as usual would only stand between its lines.
    logging.getLogger("app").setLevel(logging.WARNING)
    if page:
        _keep(port, for_s)
        return
    from app.cli.certificates import check
    from app.main.demo import run

    code = run(check=check)
    if not code:
        typer.echo(LOOK)
    raise typer.Exit(code)


def _keep(port: int, for_s: float | None) -> None:
    from app.main.demo_page import keep
    from app.main.sandbox import SandboxFailed

    try:
        keep(port=port, for_s=for_s, say=typer.echo)
    except SandboxFailed as error:
        _refuse(str(error), code=1, command="demo")


def _seconds(duration: str) -> float:
    try:
        seconds = parse_duration(duration)
    except ValueError as error:
        _refuse(f"--for: {error}", command="demo")
    if seconds <= 0:
        _refuse(f"--for: {duration} is no time at all", command="demo")
    return seconds
