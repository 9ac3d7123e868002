"""tdm: nodes of revocable zones take pods at certain hours, and only pods that may be evicted.

A node is in the zone that its label ``volcano.sh/revocable-zone`` names, and the arguments say when
each zone is open: ``tdm.revocable-zone.rz1: "22:00-06:00"``, by a clock in ``tdm.timezone`` (UTC).
Only pods with the annotation ``volcano.sh/revocable-zone: "*"``, or ``volcano.sh/preemptable:
"true"``, or of a PodGroup with one of these, may be there, while the zone is open; they go there
first. When it closes they are evicted, in rounds ``tdm.evict.period`` (1m) apart.

On other nodes pods go for gangs of their queue that are not preemptable themselves, of equal
priority too; a gang without a job disruption budget loses one pod, or all, in one cycle. Of two
gangs whose PodGroups say nothing of it none goes for the other: each would go in its turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np

from app.core.arguments import Arguments
from app.core.conf_error import ConfError
from app.core.policy import Hooks, NodeRule, NodeScore, NodesNow, OpenPlugin, Session
from app.core.protection.job_budgets import has_budget
from app.core.victim_rules import Candidate, EvictionRule, NodeExcess, Preemptor, RevokedPods, Trait
from app.kit.cron import ScheduleError, zone_of
from app.model.conf import PluginConf
from app.model.gang import Gang, Task
from app.model.pod import REVOCABLE_ZONE, bears_revocation
from app.model.resources import PODS_COLUMN, Mask, Rows, Scores

NAME: Final = "tdm"
_ZONE: Final = "tdm.revocable-zone."
_FULL: Final = 100.0
_PERIOD_S: Final = 60.0
_CLOSED: Final = "current time beyond revocable zone"
_NOT_FOR_IT: Final = "not allow to dispatch to revocable node"
_LOOKS_AT: Final = frozenset({Trait.GANG})


@dataclass(frozen=True, slots=True)
class Window:
    """From ``start`` until before ``end``, in minutes of the day; over midnight if that is less."""

    start: int
    end: int
    text: str

    def covers(self, minute: int) -> bool:
        """Whether that minute of the day is inside; all are where start and end are one."""
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end


@dataclass(frozen=True, slots=True)
class Setting:
    """When zones are open, by their names, on a clock in ``clock``."""

    windows: Mapping[str, Window]
    clock: ZoneInfo
    period_s: float


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``tdm.revocable-zone.<name>``, ``tdm.timezone`` and ``tdm.evict.period``."""
    arguments = Arguments(conf)
    keys = [key for key in conf.arguments if key.startswith(_ZONE)]
    setting = Setting(
        {key.removeprefix(_ZONE): _window(arguments, key) for key in keys},
        _clock(arguments),
        arguments.duration("tdm.evict.period") or _PERIOD_S,
    )
    return lambda session: Zones(setting, session).hooks()


class Zones:
    """The zones of one cycle."""

    def __init__(self, setting: Setting, session: Session) -> None:
        self._setting = setting
        self._now = session.now
        self._ledger = session.ledger
        self._snapshot = session.ledger.snapshot
        moment = datetime.fromtimestamp(session.now, setting.clock)
        self._minute = moment.hour * 60 + moment.minute
        self._zones = [node.labels.get(REVOCABLE_ZONE, "") for node in self._snapshot.table.nodes]

    def hooks(self) -> Hooks:
        """What the plugin takes part in."""
        return Hooks(
            gang_order=lambda gang: gang.preemptable is True,
            node_rules=self._node_rules() if any(self._zones) else None,
            node_score=NodeScore(lambda gang, task: () if _bears(gang, task) else None, self._score)
            if any(self._zones)
            else None,
            starving=lambda gang: gang.preemptable is not True,
            preemptable=EvictionRule(
                NAME,
                self._gives_way,
                "that tdm does not let go",
                _LOOKS_AT,
                among_equals=True,
                beside=EvictionRule(NAME, self._stays, "on revocable nodes", by_pod=True),
            ),
            revoked=RevokedPods(NAME, self._leaving),
        )

    # --- nodes -----------------------------------------------------------------------------------

    def _node_rules(self) -> list[NodeRule]:
        def open_now(_gang: Gang, _task: Task, nodes: NodesNow) -> Mask:
            return ~self._is_closed[nodes.rows]

        def not_lent(_gang: Gang, _task: Task, nodes: NodesNow) -> Mask:
            return ~self._is_revocable[nodes.rows]

        lent = NodeRule(
            _NOT_FOR_IT, lambda gang, task: None if _bears(gang, task) else (), not_lent
        )
        if not self._is_closed.any():
            return [lent]
        return [NodeRule(_CLOSED, lambda _gang, _task: (), open_now, details=self._details), lent]

    def _details(self, _gang: Gang, _task: Task, nodes: NodesNow) -> str:
        """``revocable zone rz1 is open 22:00-06:00, rz2 is not known``."""
        windows = self._setting.windows
        names = sorted({zone for row in nodes.rows.tolist() if (zone := self._zones[row])})
        told = [
            f"{name} is open {windows[name].text}" if name in windows else f"{name} not support"
            for name in names
        ]
        return f"revocable zone {', '.join(told)}"

    def _score(self, _gang: Gang, _task: Task, nodes: NodesNow) -> Scores:
        lent = self._is_revocable & ~self._is_closed
        scores: Scores = np.where(lent[nodes.rows], _FULL, 0.0)
        return scores

    @cached_property
    def _is_revocable(self) -> Mask:
        return np.array([bool(zone) for zone in self._zones], dtype=np.bool_)

    @cached_property
    def _is_closed(self) -> Mask:
        """The nodes of zones that are not open now, or of which nothing is said."""
        opened = {name for name, each in self._setting.windows.items() if each.covers(self._minute)}
        return np.array([bool(zone) and zone not in opened for zone in self._zones], np.bool_)

    # --- victims ---------------------------------------------------------------------------------

    def _gives_way(self, preemptor: Preemptor, candidate: Candidate) -> bool:
        mine = preemptor.gang
        if mine.preemptable is True or any(_bears(mine, task) for task in preemptor.tasks):
            return False
        gang = candidate.gang
        if mine.preemptable is None and not _is_offered(gang):
            return False
        if has_budget(gang.annotations, candidate.pod.annotations):
            return True
        losses = self._ledger.gang(gang).losses
        return losses is None or not losses.members

    def _stays(self, _preemptor: Preemptor, candidate: Candidate) -> bool | None:
        row = int(self._snapshot.running.nodes[candidate.at])
        return False if row < len(self._zones) and self._zones[row] else None

    def _leaving(self, rows: Rows) -> Mapping[int, NodeExcess]:
        """The pods on nodes of zones that have closed, those of low priority first."""
        last, running = self._snapshot.revoked, self._snapshot.running
        if last and self._now - last < self._setting.period_s:
            return {}
        found = [at for at in rows.tolist() if self._has_closed(int(running.nodes[at]))]
        found.sort(key=lambda at: (int(running.priorities[at]), running.pods[at].key))
        return {at: NodeExcess(int(running.nodes[at]), PODS_COLUMN, 0) for at in found}

    def _has_closed(self, row: int) -> bool:
        if row >= len(self._zones):
            return False
        return bool(self._is_closed[row]) and self._zones[row] in self._setting.windows


def _bears(gang: Gang, task: Task) -> bool:
    """Whether a task may be on revocable nodes."""
    return task.shape.bears_revocation or bears_revocation(gang.annotations)


def _is_offered(gang: Gang) -> bool:
    """Whether its PodGroup says that its members may be evicted."""
    return gang.preemptable is True or bears_revocation(gang.annotations)


def _liking(gang: Gang, task: Task) -> tuple[()] | None:
    """The key of the score: only tasks that may be on revocable nodes have one."""
    return () if _bears(gang, task) else None


def _refusing(gang: Gang, task: Task) -> tuple[()] | None:
    """The key of the rule that keeps all others from revocable nodes."""
    return None if _bears(gang, task) else ()


def _window(arguments: Arguments, key: str) -> Window:
    said = arguments.text(key)
    start, _, end = said.partition("-")
    first, last = _minute(start), _minute(end)
    if key == _ZONE or first is None or last is None:
        raise ConfError(f"plugin {NAME}: argument {key}: {said!r} is no time such as 22:00-06:00")
    return Window(first, last, said.strip())


def _minute(text: str) -> int | None:
    hours, colon, minutes = text.strip().partition(":")
    if not colon or not all(each.isascii() and each.isdigit() for each in (hours, minutes)):
        return None
    if len(hours) > 2 or len(minutes) != 2 or int(hours) > 23 or int(minutes) > 59:
        return None
    return int(hours) * 60 + int(minutes)


def _clock(arguments: Arguments) -> ZoneInfo:
    said = arguments.text("tdm.timezone").strip()
    try:
        return zone_of(said)
    except ScheduleError as error:
        raise ConfError(f"plugin {NAME}: argument tdm.timezone: {error}") from error
