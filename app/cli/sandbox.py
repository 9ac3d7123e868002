"""``pumice sandbox`` and ``pumice demo``: the embedded cluster."""

import asyncio
import tempfile
from pathlib import Path
from typing import Annotated, Literal

import typer

from app.sandbox.nodes import NodeSpec


def sandbox(  # noqa: PLR0917 - one parameter per flag, all given by name
    nodes: Annotated[int, typer.Option(envvar="PUMICE_NODES", min=0)] = 10,
    cpu: Annotated[str, typer.Option(envvar="PUMICE_CPU", help="CPU of each node.")] = "4",
    memory: Annotated[str, typer.Option(envvar="PUMICE_MEMORY", help="Memory of each.")] = "16Gi",
    gpus: Annotated[int, typer.Option(envvar="PUMICE_GPUS", min=0, help="GPUs of each.")] = 0,
    port: Annotated[int, typer.Option(envvar="PUMICE_PORT", help="API port; 0: any.")] = 0,
    extender_port: Annotated[int, typer.Option(envvar="PUMICE_EXTENDER_PORT")] = 0,
    form: Annotated[Literal["a", "c"], typer.Option(envvar="PUMICE_FORM")] = "a",
    scheduler_conf: Annotated[Path | None, typer.Option(envvar="PUMICE_SCHEDULER_CONF")] = None,
) -> None:
    """Run an embedded cluster until Ctrl-C and say where it is."""
    from app.main.sandbox import SandboxOptions, serve
    from app.sandbox.assembly import Form

    with tempfile.TemporaryDirectory(prefix="pumice-sandbox-") as folder:
        options = SandboxOptions(
            nodes=NodeSpec(count=nodes, cpu=cpu, memory=memory, gpus=gpus),
            folder=Path(folder),
            port=port,
            extender_port=extender_port,
            form=Form(form),
            scheduler_conf=scheduler_conf,
        )
        asyncio.run(serve(options, say=typer.echo))


def demo() -> None:
    """Tell the first story on the sandbox; exit code 1 when it goes another way."""
    from app.main.demo import run

    raise typer.Exit(run())
