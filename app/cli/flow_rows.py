"""JobFlows and JobTemplates as lines of a table."""

from collections.abc import Callable, Sequence

from app.cli.tables import NONE, fitted, table
from app.wire.ages import age
from app.wire.unstructured import Object, metadata, name, namespace, spec, status

_GAP = 4
_LISTS = (
    ("Pending", "pendingJobs"),
    ("Running", "runningJobs"),
    ("Completed", "completedJobs"),
    ("Failed", "failedJobs"),
    ("Terminated", "terminatedJobs"),
)


def flow_rows(flows: Sequence[Object], *, now: float, wide: bool = False) -> str:
    """The table of ``jobflow list`` and ``jobflow get``."""
    columns = [
        fitted("Name", name, gap=_GAP),
        fitted("Namespace", namespace, gap=_GAP),
        fitted("Phase", _phase, gap=_GAP),
        fitted("Age", lambda flow: age(metadata(flow).get("creationTimestamp"), now), gap=_GAP),
    ]
    if wide:
        columns.append(fitted("Flows", lambda flow: len(spec(flow).get("flows") or ()), gap=_GAP))
        for title, field in _LISTS:
            columns.append(fitted(title, _length(field), gap=_GAP))
    return table(columns, flows)


def template_rows(templates: Sequence[Object], *, wide: bool = False) -> str:
    """The table of ``jobtemplate list`` and ``jobtemplate get``."""
    columns = [fitted("Name", name, gap=_GAP), fitted("Namespace", namespace, gap=_GAP)]
    if wide:
        columns.append(fitted("Tasks", lambda item: len(spec(item).get("tasks") or ()), gap=_GAP))
        columns.append(fitted("Jobs", _jobs, gap=_GAP))
    return table(columns, templates)


def _length(field: str) -> Callable[[Object], int]:
    return lambda flow: len(status(flow).get(field) or ())


def _phase(flow: Object) -> str:
    return str((status(flow).get("state") or {}).get("phase") or "")


def _jobs(template: Object) -> str:
    return ",".join(status(template).get("jobDependsOnList") or ()) or NONE
