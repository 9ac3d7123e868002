"""Commands: the objects by which a user asks a controller to do something, once.

They are made in the namespace of a job, those for queues in ``default``, and belong to what they
are for, so that they go with it.
"""

from collections.abc import Mapping
from typing import Final, Literal

import typer

from app.cli.cluster import Cluster
from app.cli.job_rows import phase
from app.wire.kinds import COMMANDS, Resource
from app.wire.unstructured import Object, controlled_by, name, namespace

Action = Literal["AbortJob", "ResumeJob", "OpenQueue", "CloseQueue"]

_VERBS: Final[Mapping[Action, str]] = {
    "AbortJob": "suspend",
    "ResumeJob": "resume",
    "OpenQueue": "open",
    "CloseQueue": "close",
}


async def order(cluster: Cluster, resource: Resource, target: Object, action: Action) -> None:
    """Create the Command and say so: it is carried out later, by a controller."""
    await cluster.create(COMMANDS, command_for(target, action))
    what = f"{_VERBS[action]} {resource.kind.lower()} {name(target)}"
    typer.echo(f"asked the controllers to {what}")


def refusal(job: Object, action: Action) -> str:
    """Why the controllers will not carry the order out on the job as it is; empty: they will."""
    # Takes a while to load, and few commands ask.
    from app.controllers.job.machine import STEPS, Refuse
    from app.controllers.job.vocabulary import Action as JobAction
    from app.controllers.job.vocabulary import Phase

    known = next((each for each in Phase if each.value == phase(job)), Phase.NEW)
    step = STEPS[known][JobAction(action)]
    return step.why if isinstance(step, Refuse) else ""


def command_for(target: Object, action: Action) -> Object:
    """The Command that asks for ``action`` on ``target``."""
    reference = controlled_by(target)
    return {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {
            "generateName": f"{name(target)}-{action.lower()}-",
            "namespace": namespace(target) or "default",
            "ownerReferences": [reference],
        },
        "action": action,
        "target": reference,
    }
