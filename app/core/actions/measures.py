"""What members need of a domain, by sums: bounds that say at once which domains cannot take them.

Of members of one shape the places that nodes have for them tell all. Of several shapes each
resource is summed as well, and of sub-groups that need domains of their own it is counted how many
of them a domain can hold (:mod:`app.core.placement.domains`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from app.core.gangs.units import Unit
from app.core.placement.arrays import Counts
from app.core.placement.domains import Measure, Parts
from app.model.domains import Domains
from app.model.gang import Gang, Task
from app.model.ids import NodeName
from app.model.resources import Matrix, Vector

Places = Callable[[Task], Counts]
"""How many such members each node takes, shape (N,)."""

_Alike = tuple[int, NodeName]
"""What members alike have in common: the identity of their shape, and their pin."""


def sums_asked(
    tasks: Sequence[Task], least: int, *, room: Matrix, places: Places
) -> Iterator[Measure]:
    """What ``least`` of ``tasks`` ask for at least of each resource, of the ``room`` of nodes.

    Nothing where all are of one shape: their places say more.
    """
    one_of = {_alike(task): task for task in tasks}
    if len(one_of) < 2 or least < 1:
        return
    takes_any = np.logical_or.reduce([places(task) > 0 for task in one_of.values()])
    for column, amount in enumerate(_least(tasks, least).tolist()):
        if amount > 0:
            yield Measure(np.where(takes_any, np.maximum(room[:, column], 0), 0), amount)


def parts_asked(
    domains: Domains,
    gang: Gang,
    lacking: Mapping[str, int],
    units: Sequence[Unit],
    *,
    room: Matrix,
    places: Places,
) -> Iterator[Parts]:
    """How many sub-groups of ``gang`` are ``lacking`` by policy, of which these ``units`` wait.

    Left out are those that may lie anywhere, and those of a tier that there is not.
    """
    policies = {policy.name: policy for policy in gang.sub_groups}
    for name, count in lacking.items():
        topology = policies[name].topology
        highest = None if topology is None else domains.highest_tier(topology)
        some = [each for each in units if each.sub_group and each.sub_group.policy == name]
        if highest is None or highest >= domains.tiers[-1] or not some:
            continue
        yield Parts(name, count, highest, tuple(_of_each(some, room=room, places=places)))


def _of_each(units: Sequence[Unit], *, room: Matrix, places: Places) -> Iterator[Measure]:
    """What each of ``units`` needs at least."""
    one_of = {_alike(task): task for unit in units for task in unit.tasks}
    takes = {kind: places(task) for kind, task in one_of.items()}
    counts = [Counter(_alike(task) for task in unit.tasks) for unit in units]
    for kind, there in takes.items():
        spare = [len(unit.tasks) - unit.lacks for unit in units]
        least = min(of[kind] - more for of, more in zip(counts, spare, strict=True))
        if least > 0:
            yield Measure(there, least)
    if len(one_of) < 2:
        return
    takes_any = np.logical_or.reduce([there > 0 for there in takes.values()])
    smallest = np.min([task.request for task in one_of.values()], axis=0)
    asked = np.flatnonzero(smallest > 0)
    if len(asked):
        most = (np.maximum(room[:, asked], 0) // smallest[asked]).min(axis=1)
        yield Measure(np.where(takes_any, most, 0), min(unit.lacks for unit in units))
    least_of_all = np.min([_least(unit.tasks, unit.lacks) for unit in units], axis=0)
    for column, amount in enumerate(least_of_all.tolist()):
        if amount > 0:
            yield Measure(np.where(takes_any, np.maximum(room[:, column], 0), 0), amount)


def _least(tasks: Sequence[Task], count: int) -> Vector:
    """What ``count`` of ``tasks`` request at least, each resource by itself, shape ``(R,)``."""
    requests = np.stack([task.request for task in tasks])
    least: Vector = np.sort(requests, axis=0)[:count].sum(axis=0)
    return least


def _alike(task: Task) -> _Alike:
    return id(task.shape), task.pinned
