"""When the gangs that wait will start: quantiles over several courses that things may take.

In each course every gang has one of the run times that it may have. The draws are stratified: over
all courses a gang has each of so many equal parts of its distribution once, in an order that
depends on its key, so the answer is the same each time. Medians of all gangs in one course
would tell the time of the first of many ends much too late. Where only single numbers are known,
one course tells all.
"""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Final, NamedTuple

import numpy as np

from app.core.eta.afterwards import holdings_steps
from app.core.eta.course import COURSES, Course, Expected, Start, course_steps
from app.core.placement.statics import ShapeCache
from app.core.policy import Policies
from app.core.simulation import has_its_minimum
from app.model.gang import Gang
from app.model.ids import CLUSTER, GroupKey, NodeName
from app.model.reason import Refusal
from app.model.snapshot import Snapshot

_LATE: Final = 0.9
_MOST_LASTING: Final = 5
_MOST_AHEAD: Final = 100
_AT_ONCE: Final = 64
"""Gangs whose ETA is made up between two yields."""


class EtaOutcome(StrEnum):
    """What is known of the start of a gang."""

    NOW = "now"
    """The planner gives it its places at once."""
    LATER = "later"
    """At some time, by what is known of run times."""
    BEYOND = "beyond"
    """Later than a time up to which was looked."""
    UNKNOWN = "unknown"
    NEVER = "never"
    """No end of other gangs helps."""


@dataclass(frozen=True, slots=True, eq=False)
class Eta:
    """When the gang of ``key`` starts; times are seconds since the epoch.

    It starts by ``p50`` in half of the courses, by ``p90`` in nine of ten (None: in fewer), and not
    before ``beyond`` (None: all was looked at). ``nodes`` (or the ``domain`` that has all of them,
    where the gang asks for one), ``after`` and ``ahead`` are of the median course: the gangs that
    end before and leave it room, and the last of ``many_ahead`` that start before it. ``lasting``
    are gangs that have room and whose end is not known, ``refusal`` says why it does not start.
    """

    key: GroupKey
    outcome: EtaOutcome
    p50: float | None = None
    p90: float | None = None
    beyond: float | None = None
    nodes: tuple[NodeName, ...] = ()
    domain: str = ""
    after: tuple[GroupKey, ...] = ()
    ahead: tuple[GroupKey, ...] = ()
    many_ahead: int = 0
    evicts: bool = False
    lasting: tuple[GroupKey, ...] = ()
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """The ETA of each gang that was asked about and waits, by ``courses`` courses.

    ``ends`` are the ends that are expected of gangs that run now, in the median.
    """

    now: float
    etas: Mapping[GroupKey, Eta]
    ends: Mapping[GroupKey, float]
    courses: int


def forecast_steps(
    snapshot: Snapshot,
    policies: Policies,
    expected: Expected,
    *,
    now: float,
    wanted: Collection[GroupKey] | None = None,
    stops: Callable[[], bool] = lambda: False,
) -> Generator[None, None, Forecast]:
    """When the gangs ``wanted`` (None: all that wait) start, in pieces.

    ``now`` is seconds since the epoch. ``stops`` tells that no further cycle is to be planned: what
    is known by then is told. ``snapshot`` tells what runs.
    """
    waiting = {g.key: g for g in snapshot.pending if not has_its_minimum(g)}
    asked = [key for key in waiting if wanted is None or key in wanted]
    exact = all(expected.run_time(key).is_exact for key in snapshot.gangs)
    holdings = yield from holdings_steps(snapshot, expected.slots)
    shapes, found = ShapeCache(), list[Course]()
    for number in range(1 if exact else COURSES):
        if found and stops():
            break
        course = yield from course_steps(
            snapshot,
            policies,
            expected,
            waiting=waiting,
            wanted=asked,
            draw=number,
            now=now,
            shapes=shapes,
            holdings=holdings,
            stops=stops,
        )
        found.append(course)
    orders = {id(course): _Order.of(course) for course in found}
    etas: dict[GroupKey, Eta] = {}
    for number, key in enumerate(asked):
        etas[key] = _eta(waiting[key], found, orders, snapshot)
        if number % _AT_ONCE == 0:
            yield
    return Forecast(now, etas, _median_ends(found), len(found))


class _Order(NamedTuple):
    """The gangs that start in a course, in their order."""

    keys: Sequence[GroupKey]
    at: Mapping[GroupKey, int]

    @classmethod
    def of(cls, course: Course) -> "_Order":
        keys = list(course.starts)
        return cls(keys, {key: at for at, key in enumerate(keys)})


def _eta(
    gang: Gang, courses: Sequence[Course], orders: Mapping[int, _Order], snapshot: Snapshot
) -> Eta:
    key, first = gang.key, courses[0]
    if key in first.never and key not in first.starts:
        return Eta(key, EtaOutcome.NEVER, refusal=first.never[key])
    starts = sorted(
        (each for each in courses if key in each.starts), key=lambda each: each.starts[key].at
    )
    count = len(courses)
    middle, late = (count - 1) // 2, min(ceil(_LATE * count), count) - 1
    p90 = starts[late].starts[key].at if late < len(starts) else None
    cut = [each.now for each in courses if each.cut and key not in each.starts]
    beyond = max(cut, default=None)
    if middle >= len(starts):
        return _not_told(gang, courses, snapshot, beyond=beyond)
    course = starts[middle]
    start, order = course.starts[key], orders[id(course)]
    position = order.at[key]
    return Eta(
        key,
        EtaOutcome.NOW if start.at <= course.began else EtaOutcome.LATER,
        p50=start.at,
        p90=p90,
        beyond=beyond if p90 is None else None,
        nodes=tuple(snapshot.table.nodes[row].name for row in start.rows),
        domain=_domain(gang, start, snapshot),
        after=start.after,
        ahead=tuple(order.keys[max(position - _MOST_AHEAD, 0) : position]),
        many_ahead=position,
        evicts=start.evicts,
        lasting=tuple(course.lasting[:_MOST_LASTING]) if p90 is None else (),
    )


def _not_told(
    gang: Gang, courses: Sequence[Course], snapshot: Snapshot, *, beyond: float | None
) -> Eta:
    course = next(each for each in courses if gang.key not in each.starts)
    refusal = course.refused.get(gang.key)
    if beyond is not None:
        return Eta(gang.key, EtaOutcome.BEYOND, beyond=beyond, refusal=refusal)
    largest = sorted(course.lasting, key=lambda key: (-snapshot.gangs[key].counts.holding, key))
    lasting = tuple(largest[:_MOST_LASTING])
    return Eta(gang.key, EtaOutcome.UNKNOWN, lasting=lasting, refusal=refusal)


def _domain(gang: Gang, start: Start, snapshot: Snapshot) -> str:
    if gang.topology is None or snapshot.domains is None:
        return ""
    around = snapshot.domains.around(np.array(start.rows, dtype=np.intp))
    return "" if around == CLUSTER else around


def _median_ends(courses: Sequence[Course]) -> dict[GroupKey, float]:
    found: dict[GroupKey, list[float]] = {}
    for course in courses:
        for key, at in course.ends.items():
            found.setdefault(key, []).append(at)
    return {key: sorted(ends)[len(ends) // 2] for key, ends in found.items()}
