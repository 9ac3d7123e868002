"""The minima of a job: those that it says, and those that stand where it says none.

Admission notes in an annotation which ones it has filled in. A minimum that was filled in follows
the replicas, and a warning about it says where it comes from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.model.ids import FILLED_IN
from app.wire.reading import integer, mapping, mappings, number_or_none, text
from app.wire.unstructured import Object

_OF_JOB: Final = "minAvailable"
_ALL_TASKS: Final = "tasks[*]"


@dataclass(frozen=True, slots=True)
class FilledIn:
    """Minimums that admission filled in: the job's own, and those of the tasks in these places."""

    of_job: bool = False
    tasks: frozenset[int] = frozenset()


def default_least(task: Mapping[str, Any]) -> int:
    """The minimum of a task that says none."""
    partition = mapping(task.get("partitionPolicy"))
    least = integer(partition.get("minPartitions")) * integer(partition.get("partitionSize"))
    return least if integer(partition.get("minPartitions")) > 0 else integer(task.get("replicas"))


def least_of(task: Mapping[str, Any]) -> int:
    """The minimum of a task."""
    least = number_or_none(task.get("minAvailable"))
    return default_least(task) if least is None else least


def default_of_job(spec: Mapping[str, Any]) -> int:
    """The minimum of a job that says none."""
    return sum(map(least_of, mappings(spec.get("tasks"))))


def unsaid(spec: Mapping[str, Any]) -> FilledIn:
    """What a job leaves to admission; 0 is no minimum of a job, and is one of a task."""
    tasks = mappings(spec.get("tasks"))
    return FilledIn(
        of_job=not spec.get("minAvailable"),
        tasks=frozenset(at for at, task in enumerate(tasks) if task.get("minAvailable") is None),
    )


def named(job: Object) -> FilledIn:
    """What the note of the job names."""
    words = set(text(_annotations(job).get(FILLED_IN)).split(","))
    places = range(len(mappings(mapping(job.get("spec")).get("tasks"))))
    every = _ALL_TASKS in words
    return FilledIn(
        of_job=_OF_JOB in words,
        tasks=frozenset(at for at in places if every or f"tasks[{at}]" in words),
    )


def as_filled_in(noted: FilledIn, spec: Mapping[str, Any]) -> FilledIn:
    """The filled-in minimums that stand in this spec as admission would fill them in."""
    return FilledIn(
        of_job=noted.of_job and spec.get("minAvailable") == default_of_job(spec),
        tasks=frozenset(
            at
            for at, task in enumerate(mappings(spec.get("tasks")))
            if at in noted.tasks and task.get("minAvailable") == default_least(task)
        ),
    )


def filled_in(job: Object) -> FilledIn:
    """What admission filled in, and still stands so."""
    return as_filled_in(named(job), mapping(job.get("spec")))


def noted(job: Object, *found: FilledIn) -> Object:
    """The job with the note that these have been filled in, and nothing else."""
    tasks = {at for each in found for at in each.tasks}
    words = _words(
        tasks,
        of_job=any(each.of_job for each in found),
        count=len(mappings(mapping(job.get("spec")).get("tasks"))),
    )
    annotations = {key: value for key, value in _annotations(job).items() if key != FILLED_IN}
    if words:
        annotations[FILLED_IN] = ",".join(words)
    if annotations == _annotations(job):
        return job
    return {**job, "metadata": {**mapping(job.get("metadata")), "annotations": annotations}}


def _words(tasks: Iterable[int], *, of_job: bool, count: int) -> list[str]:
    places = sorted(tasks)
    named = [_ALL_TASKS] if len(places) == count > 0 else [f"tasks[{at}]" for at in places]
    return [*([_OF_JOB] if of_job else []), *named]


def _annotations(job: Object) -> Mapping[str, Any]:
    return mapping(mapping(job.get("metadata")).get("annotations"))
