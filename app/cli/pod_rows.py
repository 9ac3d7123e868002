"""Pods of jobs and of queues as lines of a table."""

from collections.abc import Iterable, Sequence

from app.cli.tables import Column, fitted, table
from app.wire.columns import Column as PodColumn
from app.wire.pod_columns import POD_COLUMNS
from app.wire.unstructured import Object, annotations, key_of, labels, namespace

JOB_LABEL = "volcano.sh/job-name"
QUEUE_LABEL = "volcano.sh/queue-name"
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"

_GAP, _TITLE_GAP = 8, 2
_TITLES = {"Restarts": "Restart"}


def rows(
    pods: Sequence[Object], *, now: float, wide: bool = False, all_namespaces: bool = False
) -> str:
    """The table of ``pod list``, by namespace and name."""
    found = columns(now=now, wide=wide, all_namespaces=all_namespaces)
    return table(found, sorted(pods, key=lambda pod: str(key_of(pod))))


def columns(*, now: float, wide: bool = False, all_namespaces: bool = False) -> list[Column]:
    """The columns of ``pod list``; ages are those at ``now``, in seconds since the epoch."""
    found = [_column(each, now) for each in POD_COLUMNS if wide or not each.priority]
    if all_namespaces:
        found.insert(0, fitted("Namespace", namespace, gap=_GAP, title_gap=_TITLE_GAP))
    return found


def of_queue(pods: Iterable[Object], queue: str) -> list[Object]:
    """Pods that say they are in ``queue``: of jobs by a label, others by an annotation."""
    return [
        pod
        for pod in pods
        if queue in (labels(pod).get(QUEUE_LABEL), annotations(pod).get(QUEUE_ANNOTATION))
    ]


def is_elsewhere(pods: Iterable[Object], queue: str) -> bool:
    """Whether one of them says it is in another queue."""
    return any(labels(pod).get(QUEUE_LABEL, queue) != queue for pod in pods)


def _column(source: PodColumn, now: float) -> Column:
    title = _TITLES.get(source.name, source.name)
    return fitted(title, lambda pod: source.cell(pod, now), gap=_GAP, title_gap=_TITLE_GAP)
