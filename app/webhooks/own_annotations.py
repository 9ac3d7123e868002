"""Annotations that rule planning, on jobs, PodGroups and queues: readable, on a kind that heeds it.

A value that cannot be read would be left unheeded, so it is refused. Of a change only the
annotations that differ are judged, so that no end or write of a controller hangs on an old value.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

from app.core.gangs import stranded, task_topology
from app.core.gangs.stranded import STRANDED_ACTION, STRANDED_AFTER
from app.core.protection.run_time import MINIMUM_RUN_TIME, RUN_TIME, parse_run_time
from app.model.booleans import boolean
from app.model.workload import (
    AFFINITY,
    ANTI_AFFINITY,
    EVICT_OVER_CAPABILITY,
    NODE_GROUP_LIMITS,
    TASK_ORDER,
)
from app.webhooks.world import Request
from app.wire import kinds
from app.wire.errors import DecodeError
from app.wire.findings import Findings
from app.wire.kinds import Resource
from app.wire.objects.queues import node_group_limits
from app.wire.reading import text
from app.wire.unstructured import annotations


class _Rule(NamedTuple):
    """``problem`` of the values of all annotations is what to write instead; empty: it is well."""

    heeding: tuple[Resource, ...]
    problem: Callable[[Mapping[str, str]], str]


def check_annotations(request: Request, kind: Resource, findings: Findings) -> None:
    """Refuse annotations that cannot be read, and warn of those that ``kind`` ignores."""
    given = {key: text(value) for key, value in annotations(request.item).items()}
    before = annotations(request.old)
    for key, rule in _RULES.items():
        if key not in given or given[key] == before.get(key):
            continue
        where = f"metadata.annotations[{key}]"
        if kind not in rule.heeding:
            others = " or a ".join(each.kind for each in rule.heeding)
            findings.warn(where, f"has no effect on a {kind.kind}: set it on a {others}")
        elif problem := rule.problem(given):
            findings.refuse(where, f'invalid value "{given[key]}": {problem}')


def _run_time(given: Mapping[str, str]) -> str:
    try:
        parse_run_time(given[MINIMUM_RUN_TIME])
    except ValueError:
        return "write how long pods of the queue are not evicted: 90s, 1h30m or a number of seconds"
    return ""


def _expected(given: Mapping[str, str]) -> str:
    try:
        parse_run_time(given[RUN_TIME])
    except ValueError:
        return "write how long it will run: 90s, 1h30m or a number of seconds"
    return ""


def _over_capability(given: Mapping[str, str]) -> str:
    if boolean(given[EVICT_OVER_CAPABILITY]) is None:
        return (
            'write "true" to have pods evicted that the queue holds beyond its capability, or '
            '"false"; pumice queue preview shows which pods'
        )
    return ""


def _node_group_limits(given: Mapping[str, str]) -> str:
    try:
        node_group_limits(given[NODE_GROUP_LIMITS])
    except DecodeError as error:
        return f'{error}; write a resource list for each node group: {{"a": {{"cpu": "8"}}}}'
    return ""


def _task_topology(given: Mapping[str, str], *, key: str) -> str:
    return next((problem for at, problem in task_topology.problems(given) if at == key), "")


def _stranded_after(given: Mapping[str, str]) -> str:
    found = stranded.unreadable(given)
    if found is None or found.annotation != STRANDED_AFTER:
        return ""
    return "write how long the gang may run below its minimum, such as 90s or 1h30m"


def _stranded_action(given: Mapping[str, str]) -> str:
    found = stranded.unreadable(given)
    if found is None:
        return ""
    if found.annotation == STRANDED_ACTION:
        return (
            "write restart, to have the remaining pods ended and all members made anew, or release"
            ", to give up the room for the members that are missing"
        )
    if STRANDED_AFTER in given:
        return ""
    return f"it does nothing alone: set {STRANDED_AFTER} as well, such as 90s or 1h30m"


_GANGS: Final = (kinds.JOBS, kinds.POD_GROUPS)
_RULES: Final[Mapping[str, _Rule]] = {
    MINIMUM_RUN_TIME: _Rule((kinds.QUEUES,), _run_time),
    EVICT_OVER_CAPABILITY: _Rule((kinds.QUEUES,), _over_capability),
    NODE_GROUP_LIMITS: _Rule((kinds.QUEUES,), _node_group_limits),
    AFFINITY: _Rule(_GANGS, partial(_task_topology, key=AFFINITY)),
    ANTI_AFFINITY: _Rule(_GANGS, partial(_task_topology, key=ANTI_AFFINITY)),
    TASK_ORDER: _Rule(_GANGS, partial(_task_topology, key=TASK_ORDER)),
    RUN_TIME: _Rule(_GANGS, _expected),
    STRANDED_AFTER: _Rule(_GANGS, _stranded_after),
    STRANDED_ACTION: _Rule(_GANGS, _stranded_action),
}
