"""Commands: the objects by which a user asks a controller to do something, once.

They are made in the namespace of a job, those for queues in ``default``, and belong to what they
are for, so that they go with it.
"""

from typing import Literal

from app.wire.kinds import COMMANDS
from app.wire.unstructured import Object, controlled_by, name, namespace

Action = Literal["AbortJob", "ResumeJob", "OpenQueue", "CloseQueue"]


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
