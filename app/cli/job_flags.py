"""Flags that ``job`` and the stand-alone commands share: how they are spelled, what they mean."""

from typing import Annotated

import typer

Minimum = Annotated[int, typer.Option("--min", "-m", help="How many pods the job needs to run.")]
Replicas = Annotated[int, typer.Option("--replicas", "-r", help="How many pods the job has.")]
Requests = Annotated[str, typer.Option("--requests", "-R", help="Requests of each pod.")]
Limits = Annotated[str, typer.Option("--limits", "-L", help="Limits of each pod.")]
Words = Annotated[
    str, typer.Option("--command", "-c", help="The command, split as a shell does it.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until the jobs have ended.")]
Timeout = Annotated[str, typer.Option("--timeout", help="How long to wait: 90s, 1h30m.")]

OfScheduler = Annotated[str, typer.Option("--scheduler", "-S", help="Only jobs of this scheduler.")]
Selector = Annotated[str, typer.Option("--selector", help="Only jobs with this in their names.")]
