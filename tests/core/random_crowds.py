"""Random trees of queues on a few full nodes, with jobs that wait for the room of others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

from app.core.policy import Policies
from app.model.conf import PluginConf
from app.model.ids import QueueName
from app.model.workload import Queue
from tests.builders import make_amounts, make_queue
from tests.core.actions.rigs import policies
from tests.core.crowds import Crowd, Job, boards

WHOLE = PluginConf("gang", switches={"enablePreemptable": False, "enableReclaimable": False})
FLAT, TREE, WEIGHTS, HDRF = "flat", "tree", "weights", "hdrf"
GIB = 1 << 30
ACTIONS = (
    ("enqueue", "allocate", "preempt", "reclaim", "backfill"),
    ("enqueue", "allocate", "reclaim", "preempt", "backfill"),
    ("enqueue", "allocate", "gangpreempt", "gangreclaim", "backfill"),
    ("enqueue", "reclaim", "preempt", "allocate", "gangreclaim"),
)


@dataclass(frozen=True)
class Rules:
    """A configuration: who ``shares`` the cluster, and what else may let a pod go.

    ``alike``: all jobs are single pods of one size.
    """

    shares: str
    actions: int
    whole: bool
    drf: bool
    level: int = 0
    borrows: bool = True
    alike: bool = False

    @cache  # noqa: B019 - there are few
    def policies(self) -> Policies:
        """The plugins and actions of these rules."""
        sharing: dict[str, Any] = {"borrowing": self.borrows}
        if self.shares == WEIGHTS:
            share = PluginConf("proportion", arguments=sharing)
        else:
            share = PluginConf(
                "capacity",
                switches={"enableHierarchy": self.shares == TREE},
                arguments=sharing | {"ancestorReclaimLevel": self.level},
            )
        drf = PluginConf("drf", switches={"enableHierarchy": self.shares == HDRF})
        last: tuple[str | PluginConf, ...] = ("predicates", share)
        if self.drf or self.shares == HDRF:
            last = (drf, *last)
        first = ("priority", WHOLE if self.whole else "gang", "conformance")
        return policies((first, last), ACTIONS[self.actions])


RULES = st.builds(
    Rules,
    shares=st.sampled_from((FLAT, TREE, TREE, WEIGHTS, HDRF)),
    actions=st.integers(0, len(ACTIONS) - 1),
    whole=st.booleans(),
    drf=st.booleans(),
    level=st.integers(0, 2),
    borrows=st.booleans(),
    alike=st.booleans(),
)


@st.composite
def crowds(draw: st.DrawFn, *, freezes: bool) -> tuple[Rules, Crowd]:
    """A cluster that is full as far as jobs fit, and jobs that wait."""
    rules = draw(RULES)
    most = 1 if rules.alike else 2
    queues = tuple(draw(_queues(rules.shares)))
    leaves = [q.name for q in queues if q.name[0] != "t"]
    sizes = draw(st.lists(st.tuples(st.integers(2, 5), st.integers(2, 5)), min_size=1, max_size=2))
    jobs = draw(
        st.lists(
            st.builds(
                _job,
                queue=st.sampled_from(leaves),
                priority=st.integers(0, 2),
                members=st.integers(1, 2 * most - 1),
                spare=st.integers(0, 2),
                cpu=st.integers(1, most),
                gib=st.integers(1 if rules.alike else 0, most),
                ends_whole=st.booleans(),
            ),
            min_size=3,
            max_size=7,
        )
    )
    return rules, Crowd(
        tuple(_packed(jobs, sizes)),
        boards(*sizes),
        rules.policies(),
        queues=queues,
        freezes=freezes,
    )


@st.composite
def _queues(draw: st.DrawFn, shares: str) -> Sequence[Queue]:
    leaves = draw(st.integers(2, 4))
    tops = draw(st.integers(1, 2)) if shares in (TREE, HDRF) else 0
    found = []
    names = [f"t{n}" for n in range(tops)] if shares == TREE else []
    for name in (*names, *(f"q{n}" for n in range(leaves))):
        above = ""
        if tops and name[0] == "q":
            above = draw(st.sampled_from(("", *(f"t{n}" for n in range(tops)))))
        cpu, gib, weight = (draw(st.integers(0, 4)) for _ in range(3))
        fields: dict[str, Any] = {}
        if shares == TREE:
            fields["parent"] = QueueName(above)
        elif shares == HDRF:
            path = [each for each in ("root", above, name) if each]
            fields["annotations"] = {
                "volcano.sh/hierarchy": "/".join(path),
                "volcano.sh/hierarchy-weights": "/".join(["1"] * (len(path) - 1) + [str(weight)]),
            }
        found.append(
            make_queue(
                name,
                deserved=make_amounts(cpu=cpu * 1000, memory=gib * GIB),
                weight=weight + 1,
                reclaimable=draw(st.integers(0, 5)) > 0,
                priority=draw(st.sampled_from((0, 0, 1))),
                **fields,
            )
        )
    return found


def _job(members: int, spare: int, **fields: Any) -> Job:
    return Job("", members, minimum=max(members - spare, 1), **fields)


def named(name: str, job: Job, rows: tuple[int, ...] = ()) -> Job:
    """``job`` of that name, whose first members run on ``rows``."""
    return replace(job, name=name, rows=rows)


def _packed(jobs: Sequence[Job], sizes: Sequence[tuple[int, int]]) -> Iterator[Job]:
    """The jobs: each runs on the first nodes with room, or waits where it does not fit whole."""
    room = [list(size) for size in sizes]
    for number, job in enumerate(jobs):
        before = [list(each) for each in room]
        rows = []
        for _ in range(job.members):
            for row, left in enumerate(room):
                if left[0] >= job.cpu and left[1] >= job.gib:
                    left[0] -= int(job.cpu)
                    left[1] -= job.gib
                    rows.append(row)
                    break
        if len(rows) < job.needs:
            room, rows = before, []
        yield named(f"j{number}", job, tuple(rows))
