"""priority: groups of higher priority go first, and so do members within a group."""

import numpy as np
from numpy.typing import NDArray

from app.core.policy import Hooks, OpenPlugin, Session
from app.core.victim_rules import Candidate, EvictionRule, Preemptor, Trait
from app.model.conf import PluginConf
from app.model.eviction import EvictionAction
from app.model.gang import Gang, Task
from app.model.resources import Rows
from app.model.running import Running

_LOOKS_AT = frozenset({Trait.GANG_PRIORITY, Trait.PRIORITY})


def configure(_conf: PluginConf) -> OpenPlugin:
    """Open the plugin; it takes no arguments."""
    return _open


def _open(session: Session) -> Hooks:
    ledger = session.ledger

    def starving(gang: Gang) -> bool:
        """Whether members lack a place, those included that its minimum takes and none made."""
        have = ledger.gang(gang).ready
        return bool(gang.waiting) or have < gang.min_member

    return Hooks(
        gang_order=_gang_key,
        task_order=lambda _gang: _task_key,
        starving=starving,
        preemptable=EvictionRule("priority", _preemptable, "same priority", _LOOKS_AT),
        unified_evictable=EvictionRule("priority", _evictable, "same priority", _LOOKS_AT),
        victim_order=_lower_first,
    )


def _gang_key(gang: Gang) -> int:
    return -gang.priority


def _task_key(task: Task) -> int:
    return -task.priority


def _lower_first(running: Running, rows: Rows) -> NDArray[np.int64]:
    priorities: NDArray[np.int64] = running.priorities[rows]
    return priorities


def _preemptable(preemptor: Preemptor, candidate: Candidate) -> bool:
    """Between gangs their priorities count, inside a gang those of the members."""
    if candidate.gang.key == preemptor.gang.key:
        return all(candidate.priority < task.priority for task in preemptor.tasks)
    return candidate.gang.priority < preemptor.gang.priority


def _evictable(preemptor: Preemptor, candidate: Candidate) -> bool | None:
    if preemptor.action is not EvictionAction.GANG_PREEMPT:
        return None
    return _preemptable(preemptor, candidate)
