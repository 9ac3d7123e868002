"""What becomes of minima that admission filled in when a job is changed: they follow its size.

Otherwise a job whose manifest says no minimum could not be made smaller: the minimum that was
filled in would be above the replicas. A minimum of the user's stays as it is, and is judged.
"""

from collections.abc import Mapping
from typing import Any

from app.webhooks.minimums import (
    FilledIn,
    as_filled_in,
    default_least,
    default_of_job,
    filled_in,
    named,
    noted,
    unsaid,
)
from app.webhooks.world import Request
from app.wire.reading import mapping, mappings, sequence
from app.wire.unstructured import Object, is_deleting

_MINIMUM = "minAvailable"


def followed(request: Request) -> Object:
    """The changed job, with the minima that admission filled in as it would fill them in now."""
    job = request.item
    new, old = mapping(job.get("spec")), mapping(request.old.get("spec"))
    tasks, before = sequence(new.get("tasks")), mappings(old.get("tasks"))
    if new == old or is_deleting(job) or len(tasks) != len(before):
        return job
    if not all(isinstance(task, dict) for task in tasks):
        return job
    ours = as_filled_in(named(job), old)
    spec: Object = {
        **new,
        "tasks": [
            {**task, _MINIMUM: max(default_least(task), 0)}
            if place in ours.tasks and task.get(_MINIMUM) == was.get(_MINIMUM)
            else task
            for place, (task, was) in enumerate(zip(tasks, before, strict=True))
        ],
    }
    if ours.of_job and spec.get(_MINIMUM) == old.get(_MINIMUM):
        spec[_MINIMUM] = max(default_of_job(spec), 0)
    made = {**job, "spec": spec}
    return noted(made, _still_filled_in(made, old))


def _still_filled_in(job: Object, old: Mapping[str, Any]) -> FilledIn:
    """What the note still holds of; not of a minimum that the user writes now."""
    still, left = filled_in(job), unsaid(mapping(job.get("spec")))
    written = unsaid(old).tasks - left.tasks
    return FilledIn(still.of_job, (still.tasks - written) | (named(job).tasks & left.tasks))
