"""What changes in the values of a snapshot when members get places or lose them."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.model.gang import Counts, Gang, Task
from app.model.parts import NO_SUB_GROUP
from app.model.placed_pods import NONE, Codes, PlacedPods, V, terms_of
from app.model.resources import Vector
from app.model.running import Running
from app.model.shape import PodShape
from app.model.workload import GroupPhase


class Held(NamedTuple):
    """Room that a member has: ``at`` is its position among the running pods, None: it has none."""

    row: int
    request: Vector
    shape: PodShape | None
    namespace: str
    labels: Mapping[str, str]
    releasing: bool = False
    at: int | None = None


def with_places(gang: Gang, tasks: Collection[Task]) -> Gang:
    """``gang`` once these members of it, slots included, run."""
    pods = {task.uid for task in tasks if not task.is_slot}
    left = tuple(task for task in gang.waiting if task.uid not in pods)
    ready, valid = dict(gang.role_ready), dict(gang.role_valid)
    scheduled, parted = dict(gang.role_scheduled), dict(gang.sub_group_ready)
    of_parts = dict(gang.sub_group_scheduled)
    took, new = np.zeros_like(gang.allocated), np.zeros_like(gang.allocated)
    for task in tasks:
        took += task.request
        ready[task.role] = ready.get(task.role, 0) + 1
        scheduled[task.role] = scheduled.get(task.role, 0) + 1
        if task.is_slot:
            new += task.request
            valid[task.role] = valid.get(task.role, 0) + 1
        part = gang.sub_group_of.get(task.uid, NO_SUB_GROUP)
        if part != NO_SUB_GROUP:
            parted[part] = parted.get(part, 0) + 1
            of_parts[part] = of_parts.get(part, 0) + 1
    counts = replace(
        gang.counts,
        pending=gang.counts.pending - len(pods),
        pending_best_effort=sum(task.best_effort for task in left),
        running=gang.counts.running + len(tasks),
    )
    is_whole = counts.ready >= gang.min_member
    return replace(
        gang,
        phase=GroupPhase.RUNNING if is_whole else gang.phase,
        waiting=left,
        queue_first=tuple(task for task in left if task.queue_first),
        allocated=gang.allocated + took,
        request=gang.request + new,
        role_ready=ready,
        role_valid=valid,
        role_scheduled=scheduled,
        sub_group_ready=parted,
        sub_group_scheduled=of_parts,
        sub_group_of={uid: of for uid, of in gang.sub_group_of.items() if uid not in pods},
        counts=counts,
        partial=gang.partial and not is_whole,
    )


def without_places(gang: Gang, tasks: Collection[Task]) -> Gang:
    """``gang`` once members of it, which have places, are evicted and wait again as ``tasks``."""
    ready, scheduled = dict(gang.role_ready), dict(gang.role_scheduled)
    lost = np.zeros_like(gang.allocated)
    for task in tasks:
        lost += task.request
        ready[task.role] = ready.get(task.role, 0) - 1
        scheduled[task.role] = scheduled.get(task.role, 0) - 1
    counts = _fewer(gang.counts, len(tasks))
    return replace(
        gang,
        phase=gang.phase if counts.ready >= gang.min_member else GroupPhase.INQUEUE,
        waiting=(*gang.waiting, *tasks),
        allocated=gang.allocated - lost,
        role_ready=ready,
        role_scheduled=scheduled,
        counts=replace(
            counts,
            pending=counts.pending + len(tasks),
            pending_best_effort=counts.pending_best_effort + sum(t.best_effort for t in tasks),
        ),
    )


def _fewer(counts: Counts, lost: int) -> Counts:
    """So many members less with a place: of those that run first."""
    of_running = min(counts.running, lost)
    of_bound = min(counts.bound, lost - of_running)
    return replace(
        counts,
        running=counts.running - of_running,
        bound=counts.bound - of_bound,
        placed=counts.placed - (lost - of_running - of_bound),
    )


def only(running: Running, stays: NDArray[np.bool_]) -> Running:
    """The running pods of that mask, shape ``(P,)``."""
    if stays.all():
        return running
    at = np.flatnonzero(stays)
    pods = tuple(running.pods[each] for each in at)
    return Running(
        pods=pods,
        index={pod.uid: position for position, pod in enumerate(pods)},
        nodes=running.nodes[at],
        gangs=tuple(running.gangs[each] for each in at),
        parts=tuple(running.parts[each] for each in at),
        queues=Codes(running.queues.codes[at], running.queues.values),
        requests=running.requests[at],
        priorities=running.priorities[at],
        created=running.created[at],
        started=running.started[at],
        counted=running.counted[at],
        bound=running.bound[at],
        releasing=running.releasing[at],
        protected=running.protected[at],
        saved=running.saved[at],
        grace=running.grace[at],
        kinds=Codes(running.kinds.codes[at], running.kinds.values),
    )


# --- what rules about other pods see --------------------------------------------------------------


def with_pod(placed: PlacedPods, held: Held) -> PlacedPods:
    """One pod more."""
    shape = None if held.shape is None else terms_of(held.shape)
    return PlacedPods(
        np.append(placed.rows, held.row),
        _appended(placed.homes, held.namespace),
        _appended(placed.leaving, None),
        _appended(placed.terms, shape),
        {key: _appended(codes, held.labels.get(key)) for key, codes in placed.labels.items()},
    )


def _appended(column: Codes[V], value: V | None) -> Codes[V]:
    values = column.values
    if value is None:
        return Codes(np.append(column.codes, NONE), values)
    if value not in values:
        values = {**values, value: len(values)}
    return Codes(np.append(column.codes, values[value]), values)


def without_pod(placed: PlacedPods, held: Held, *, nowhere: int) -> PlacedPods:
    """One pod less that looks like this one; its entry stays and is on no node."""
    mask = placed.rows == held.row
    mask &= placed.homes.codes == placed.homes.values.get(held.namespace, NONE)
    for key, column in placed.labels.items():
        value = held.labels.get(key)
        mask &= column.codes == (NONE if value is None else column.values.get(value, NONE))
    found = np.flatnonzero(mask)
    if not len(found):
        return placed
    rows = placed.rows.copy()
    rows[found[0]] = nowhere
    return replace(placed, rows=rows)
