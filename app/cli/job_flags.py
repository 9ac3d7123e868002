"""Flags that ``job`` and the stand-alone commands share: how they are spelled, what they mean."""

from typing import Annotated

import typer

Minimum = Annotated[int, typer.Option("--min", "-m", help="Pods it needs to run.")]
Replicas = Annotated[int, typer.Option("--replicas", "-r", help="Pods it has.")]
Requests = Annotated[str, typer.Option("--requests", "-R", help="What a pod asks for.")]
Limits = Annotated[str, typer.Option("--limits", "-L", help="What a pod may use.")]
Words = Annotated[str, typer.Option("--command", "-c", help="The command, split as a shell would.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until the jobs have ended.")]
Timeout = Annotated[str, typer.Option("--timeout", help="How long to wait: 90s, 1h30m.")]

OfScheduler = Annotated[str, typer.Option("--scheduler", "-S", help="Only jobs of this scheduler.")]
Selector = Annotated[str, typer.Option("--selector", help="Only jobs with this in their names.")]
