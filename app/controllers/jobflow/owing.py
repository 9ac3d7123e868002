"""Which jobs a JobFlow has still to tell the end of: until it has, they are not to be deleted.

Its controller remembers a job that goes too early (:mod:`app.controllers.jobflow.controller`), but
not when it is killed: then the step would be done again.
"""

from collections.abc import Callable

from app.controllers.jobflow.report import ended
from app.controllers.jobflow.steps import steps_of
from app.controllers.store import Store
from app.wire.kinds import JOB_FLOWS
from app.wire.unstructured import Key, Object, is_deleting, key_of, namespace, owner_of, uid

Owed = Callable[[Object], bool]


def owed_by(flows: Store | None) -> Owed:
    """Whether a job's flow has still to note its end; without ``flows`` no flow has."""

    def owed(job: Object) -> bool:
        owner = owner_of(job)
        if flows is None or owner is None or owner.kind != JOB_FLOWS.kind:
            return False
        flow = flows.get(Key(namespace(job), owner.name))
        if flow is None or uid(flow) != owner.uid or is_deleting(flow):
            return False
        key = key_of(job)
        counts = any(step.job == key for step in steps_of(flow).values())
        return counts and key.name not in ended(flow)

    return owed
