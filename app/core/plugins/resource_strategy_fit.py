"""resource-strategy-fit: for each resource, whether full nodes or empty ones are preferred.

Three parts, which a configuration sets apart from each other:

* ``resources``: ``MostAllocated`` prefers nodes on which much of the resource is used, the default
  ``LeastAllocated`` those on which little is. cpu and memory count for every task, other resources
  if it asks for them. A name that ends in ``*`` stands for all that begin so; an exact name goes
  before it, and of several the longest counts;
* ``sra`` keeps tasks off nodes with scarce resources;
* ``proportional``: a task that asks for no scarce resource leaves so much cpu and memory on a node
  as belongs to what is idle there of each.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from app.core.arguments import Arguments
from app.core.conf_error import ConfError
from app.core.policy import Hooks, NodeRule, NodeScore, NodesNow, OpenPlugin, Session
from app.model.conf import PluginConf
from app.model.gang import Gang, Task
from app.model.resources import CPU_COLUMN, MEMORY_COLUMN, Mask, Matrix, ResourceAxis, Scores

_FULL = 100.0
_MILLI_PER_CORE = 1000.0
_BYTES_PER_GB = 1e9
_WEIGHT = "resourceStrategyFitWeight"
_MOST = "MostAllocated"
_Number = TypeVar("_Number", int, float)


class Strategy(NamedTuple):
    """How much a resource counts, and whether full nodes are preferred."""

    weight: int
    packs: bool


class Share(NamedTuple):
    """How much belongs to one piece of a scarce resource: ``cores`` and ``gigabytes``."""

    cores: float
    gigabytes: float


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """The arguments; ``scarce`` is resource -> weight, ``shares`` resource -> what belongs to it.

    A part without a weight, or without resources, is off.
    """

    weight: int
    strategies: Mapping[str, Strategy]
    scarce_weight: int
    scarce: Mapping[str, int]
    shares: Mapping[str, Share]

    def strategy(self, resource: str) -> Strategy | None:
        """The strategy of ``resource``: its own one, else that of the longest beginning."""
        own = self.strategies.get(resource)
        if own is not None:
            return own
        patterns = (name for name in self.strategies if name.endswith("*"))
        fitting = [name for name in patterns if resource.startswith(name[:-1])]
        return self.strategies[max(fitting, key=len)] if fitting else None


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``resourceStrategyFitWeight``, ``resources``, ``sra`` and ``proportional``."""
    setting = _setting(conf)

    def open_(session: Session) -> Hooks:
        fit = Fit(setting, session.ledger.snapshot.axis, session.ledger.snapshot.table.allocatable)
        scores = setting.weight > 0 or setting.scarce_weight > 0
        return Hooks(
            node_score=NodeScore(fit.request, fit.score) if scores else None,
            node_rules=fit.rules() or None,
        )

    return open_


class Fit:
    """The plugin on the nodes of one cycle; ``allocatable`` is of shape ``(N, R)``."""

    def __init__(self, setting: Setting, axis: ResourceAxis, allocatable: Matrix) -> None:
        self._setting = setting
        self._axis = axis
        self._allocatable = allocatable.T
        self._strategies = [setting.strategy(name) for name in axis.names]
        self._shares = [
            (axis.index[name], name, share)
            for name, share in setting.shares.items()
            if name in axis.index
        ]

    def request(self, _gang: Gang, task: Task) -> bytes:
        """What scores depend on beside the nodes."""
        return task.request.tobytes()

    def score(self, _gang: Gang, task: Task, nodes: NodesNow) -> Scores:
        """Both scores of ``task`` on ``nodes``, each by its weight."""
        allocatable = self._allocatable.take(nodes.rows, axis=1)
        scores = np.zeros(len(nodes.rows))
        columns = self._counted(task)
        if self._setting.weight:
            scores += self._fit(task, columns, nodes.free, allocatable)
        if self._setting.scarce_weight > 0:
            scores += self._spared(columns, allocatable)
        return scores

    def rules(self) -> Sequence[NodeRule]:
        """One per scarce resource whose share of cpu and memory is kept."""
        return [
            NodeRule(
                f"proportional of resource {name} check failed",
                self._plain_request,
                partial(_leaves, column=column, share=share),
            )
            for column, name, share in self._shares
        ]

    def _plain_request(self, gang: Gang, task: Task) -> bytes | None:
        """None for a task that asks for a scarce resource itself."""
        if any(task.request[column] > 0 for column, _, _ in self._shares):
            return None
        return self.request(gang, task)

    def _counted(self, task: Task) -> list[int]:
        """The columns of cpu and memory, and of what ``task`` asks for."""
        asked = np.flatnonzero(task.request).tolist()
        return sorted({CPU_COLUMN, MEMORY_COLUMN, *asked})

    def _fit(self, task: Task, columns: Sequence[int], free: Matrix, allocatable: Matrix) -> Scores:
        total, weights = np.zeros(free.shape[1]), 0
        overflows = np.zeros(free.shape[1], dtype=np.bool_)
        for column in columns:
            strategy = self._strategies[column]
            if strategy is None:
                continue
            left, size = free[column] - task.request[column], allocatable[column]
            part = left if not strategy.packs else size - left
            total += strategy.weight * np.divide(
                part, size, out=np.zeros(len(size)), where=size > 0
            )
            overflows |= (left < 0) & (size > 0)
            weights += strategy.weight
        total[overflows] = 0.0
        return total / max(weights, 1) * (_FULL * self._setting.weight)

    def _spared(self, columns: Sequence[int], allocatable: Matrix) -> Scores:
        """High for nodes without scarce resources; 0 for those that lack what is asked for."""
        scarce, index = self._setting.scarce, self._axis.index
        has, weights = np.zeros(allocatable.shape[1]), sum(scarce.values())
        for name, weight in scarce.items():
            if name in index:
                has += weight * (allocatable[index[name]] > 0)
        if not weights:
            return has
        able = (allocatable[list(columns)] > 0).all(axis=0)
        spared: Scores = (1.0 - has / weights) * able * (_FULL * self._setting.scarce_weight)
        return spared


def _leaves(_gang: Gang, task: Task, nodes: NodesNow, *, column: int, share: Share) -> Mask:
    """Where what belongs to the idle pieces of the resource at ``column`` is left by ``task``."""
    idle = nodes.free[column]
    cpu = nodes.free[CPU_COLUMN] - task.request[CPU_COLUMN]
    memory = nodes.free[MEMORY_COLUMN] - task.request[MEMORY_COLUMN]
    left: Mask = (cpu >= idle * (share.cores * _MILLI_PER_CORE)) & (
        memory >= idle * (share.gigabytes * _BYTES_PER_GB)
    )
    return left


def _setting(conf: PluginConf) -> Setting:
    parts = {key: _part(conf, key) for key in ("resources", "sra", "proportional")}
    given = {_WEIGHT: conf.arguments.get(_WEIGHT)}
    for key, part in parts.items():
        given.update(_paths(key, part))
    arguments = Arguments(replace(conf, arguments=given))
    weight = arguments.integer(_WEIGHT, 10)
    names = tuple(map(str, parts["resources"])) or ("cpu", "memory")
    spares = arguments.flag("sra.enable", default=False)
    shares = arguments.flag("proportional.enable", default=False)
    return Setting(
        weight=10 if weight < 0 else weight,
        strategies={name: _strategy(arguments, name) for name in names if _is_valid(name)},
        scarce_weight=arguments.integer("sra.weight", 0) if spares else 0,
        scarce={
            name: _or_one(arguments.integer(f"sra.resourceWeight.{name}", 1), least=0)
            for name in _listed(arguments, "sra.resources")
        },
        shares={
            name: _share(arguments, f"proportional.resourceProportion.{name}")
            for name in (_listed(arguments, "proportional.resources") if shares else ())
        },
    )


def _part(conf: PluginConf, key: str) -> Mapping[object, object]:
    value = conf.arguments.get(key)
    if value is None or value == "":
        return {}
    if not isinstance(value, Mapping):
        raise ConfError(f"plugin {conf.name}: argument {key}: {value!r} is not a mapping")
    return value


def _paths(path: str, value: object) -> Iterator[tuple[str, object]]:
    """The values inside, named by the way to them: ``sra.resourceWeight.nvidia.com/gpu``."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _paths(f"{path}.{key}", inner)
    else:
        yield path, value


def _is_valid(name: str) -> bool:
    """Whether ``name`` is a resource, or all that begin as it does: not all there are."""
    return "*" not in name[:-1] and name != "*"


def _strategy(arguments: Arguments, name: str) -> Strategy:
    weight = arguments.integer(f"resources.{name}.weight", 1)
    packs = arguments.text(f"resources.{name}.type") == _MOST
    return Strategy(_or_one(weight, least=1), packs)


def _share(arguments: Arguments, path: str) -> Share:
    cores, gigabytes = (arguments.number(f"{path}.{of}", 1.0) for of in ("cpu", "memory"))
    return Share(_or_one(cores, least=0), _or_one(gigabytes, least=0))


def _or_one(number: _Number, *, least: int) -> _Number:
    return number if number >= least else type(number)(1)


def _listed(arguments: Arguments, key: str) -> Sequence[str]:
    names = (name.strip() for name in arguments.text(key).split(","))
    return [name for name in names if name]
