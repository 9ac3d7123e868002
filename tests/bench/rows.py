"""What is measured: rows of the table, each a workload on a side.

A *side* is a set of scheduling processes beside the same control plane. Rows of one side follow
each other, so that it is started once per repeat; the sides take turns in each repeat, so that
what else happens on the machine hits all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class Side(StrEnum):
    """Which scheduling processes run."""

    STOCK = "stock kube-scheduler alone"
    STOCK_ALL = "stock kube-scheduler alone, percentageOfNodesToScore 100"
    STOCK_TWICE = "stock kube-scheduler beside a second one that has nothing to do"
    FORM_A = "form A: our kube-scheduler and the extender"
    FORM_A_SHARED = "form A beside the stock kube-scheduler"
    FORM_B = "form B: one kube-scheduler, only marked pods are sent"
    FORM_C = "form C: one kube-scheduler, every pod is sent"

    @property
    def has_extender(self) -> bool:
        return self not in {Side.STOCK, Side.STOCK_ALL, Side.STOCK_TWICE}


class Arrival(StrEnum):
    """How the pods of a gang come about."""

    AT_ONCE = "PodGroups, then pods right after"
    ADMITTED = "pods once all PodGroups are Inqueue"
    GATED = "pods behind the gate, as the admission policy makes them"
    SETTLED = "PodGroups, then pods right after, each to be bound where it was planned"
    PINNED = "pods pinned to the slots of GET /plan, as the job controller makes them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. ``gangs`` 0: pods without a PodGroup.

    ``pace``: pods created a second, at most. ``of``: the stock row its rate is compared with;
    ``at_least``: the ratio that must hold.
    """

    name: str
    side: Side
    nodes: int
    pods: int
    gangs: int = 0
    ours: bool = True
    arrival: Arrival = Arrival.AT_ONCE
    pace: float = math.inf
    of: str = ""
    at_least: float | None = None
    quick: bool = False

    @property
    def size(self) -> int:
        """Members of a gang."""
        return self.pods // self.gangs if self.gangs else 1

    @property
    def calls_filter(self) -> bool:
        """Whether the extender is asked about these pods."""
        return self.side.has_extender and (self.ours or self.side is Side.FORM_C)


SMALL, LARGE = 1_000, 5_000
"""Nodes of the first and of the second half of a run."""

_STOCK_SMALL, _STOCK_LARGE = "stock", "stock-5000"

ROWS = (
    Row(name=_STOCK_SMALL, side=Side.STOCK, nodes=SMALL, pods=2000, ours=False, quick=True),
    Row(
        name="stock-100%",
        side=Side.STOCK_ALL,
        nodes=SMALL,
        pods=2000,
        ours=False,
        of=_STOCK_SMALL,
    ),
    Row(
        name="100x20",
        side=Side.FORM_A,
        nodes=SMALL,
        pods=2000,
        gangs=100,
        of=_STOCK_SMALL,
        at_least=0.75,
        quick=True,
    ),
    Row(
        name="4x500",
        side=Side.FORM_A,
        nodes=SMALL,
        pods=2000,
        gangs=4,
        of=_STOCK_SMALL,
        at_least=0.75,
    ),
    Row(
        name="1x2000",
        side=Side.FORM_A,
        nodes=SMALL,
        pods=2000,
        gangs=1,
        of=_STOCK_SMALL,
        at_least=0.75,
        quick=True,
    ),
    Row(
        name="2000x1",
        side=Side.FORM_A,
        nodes=SMALL,
        pods=2000,
        of=_STOCK_SMALL,
        at_least=0.75,
        quick=True,
    ),
    Row(
        name="100x20-admitted",
        side=Side.FORM_A,
        nodes=SMALL,
        pods=2000,
        gangs=100,
        arrival=Arrival.ADMITTED,
        of=_STOCK_SMALL,
    ),
    Row(
        name="100x20-gated",
        side=Side.FORM_A,
        nodes=SMALL,
        pods=2000,
        gangs=100,
        arrival=Arrival.GATED,
        of=_STOCK_SMALL,
    ),
    Row(
        name="unexchanged",
        side=Side.FORM_A,
        nodes=SMALL,
        pods=1000,
        gangs=50,
        arrival=Arrival.SETTLED,
        of=_STOCK_SMALL,
    ),
    Row(
        name="pinned",
        side=Side.FORM_A,
        nodes=SMALL,
        pods=1000,
        gangs=50,
        arrival=Arrival.PINNED,
        of=_STOCK_SMALL,
        quick=True,
    ),
    Row(
        name="steady",
        side=Side.FORM_A,
        nodes=SMALL,
        pods=1000,
        gangs=50,
        arrival=Arrival.PINNED,
        pace=100,
        quick=True,
    ),
    Row(
        name="second",
        side=Side.STOCK_TWICE,
        nodes=SMALL,
        pods=2000,
        ours=False,
        of=_STOCK_SMALL,
    ),
    Row(
        name="plain-a",
        side=Side.FORM_A_SHARED,
        nodes=SMALL,
        pods=2000,
        ours=False,
        of=_STOCK_SMALL,
        at_least=0.95,
    ),
    Row(
        name="plain-b",
        side=Side.FORM_B,
        nodes=SMALL,
        pods=2000,
        ours=False,
        of=_STOCK_SMALL,
        at_least=0.95,
        quick=True,
    ),
    Row(
        name="plain-c",
        side=Side.FORM_C,
        nodes=SMALL,
        pods=2000,
        ours=False,
        of=_STOCK_SMALL,
    ),
    Row(name=_STOCK_LARGE, side=Side.STOCK, nodes=LARGE, pods=1000, ours=False, quick=True),
    Row(
        name="stock-100%-5000",
        side=Side.STOCK_ALL,
        nodes=LARGE,
        pods=1000,
        ours=False,
        of=_STOCK_LARGE,
    ),
    Row(
        name="pinned-5000",
        side=Side.FORM_A,
        nodes=LARGE,
        pods=1000,
        gangs=50,
        arrival=Arrival.PINNED,
        of=_STOCK_LARGE,
        at_least=0.90,
        quick=True,
    ),
    Row(
        name="unpinned-5000",
        side=Side.FORM_A,
        nodes=LARGE,
        pods=1000,
        gangs=50,
        of=_STOCK_LARGE,
    ),
)

PINNED_PAIR = ("pinned", "pinned-5000")
"""Rows whose scheduler CPU per pod must not differ by more than a fifth."""


def chosen(names: list[str], *, quick: bool) -> list[Row]:
    """The rows asked for, with the stock rows they are compared with; all (quick) ones if none."""
    unknown = set(names) - {row.name for row in ROWS}
    if unknown:
        raise ValueError(f"no rows {sorted(unknown)}; there are {[row.name for row in ROWS]}")
    wanted = set(names) or {row.name for row in ROWS if row.quick or not quick}
    wanted |= {row.of for row in ROWS if row.name in wanted and row.of}
    return [row for row in ROWS if row.name in wanted]


def order(rows: list[Row], *, repeat: int) -> list[Row]:
    """Rows of one half in the order of a repeat: sides take turns, the stock row opens and ends.

    Its second run is as far from the first as any other row can be, so its median is the machine's
    of that time.
    """
    sides = list(dict.fromkeys(row.side for row in rows if row.side is not Side.STOCK))
    turn = repeat % len(sides) if sides else 0
    stock = [row for row in rows if row.side is Side.STOCK]
    others = [row for side in sides[turn:] + sides[:turn] for row in rows if row.side is side]
    return [*stock, *others, *(stock if others else ())]
