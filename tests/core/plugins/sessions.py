"""One plugin, opened on a snapshot; vectors and gangs in cores and GiB."""

from typing import Any

import numpy as np

from app.core.ledger import Ledger
from app.core.plugins import catalogue
from app.core.policy import Hooks, Session
from app.model.conf import PluginConf, SchedulerConf
from app.model.gang import Gang, Task
from app.model.ids import QueueName
from app.model.resources import ResourceAxis, Vector
from app.model.snapshot import Snapshot
from tests.builders import AXIS, GIB, make_amounts, make_gang, make_shape, make_task


def open_plugin(
    name: str,
    snapshot: Snapshot,
    *,
    now: float = 0.0,
    switches: dict[str, bool] | None = None,
    arguments: dict[str, object] | None = None,
) -> tuple[Hooks, Ledger]:
    """The hooks of the plugin ``name`` and the ledger that they read."""
    conf = PluginConf(name=name, switches=switches or {}, arguments=arguments or {})
    ledger = Ledger(snapshot)
    session = Session(ledger=ledger, conf=SchedulerConf(actions=(), tiers=((conf,),)), now=now)
    return catalogue.PLUGINS[name](conf)(session), ledger


def room(
    *, cpu: float = 0, gib: float = 0, pods: int = 0, axis: ResourceAxis = AXIS, **extra: int
) -> Vector:
    """A vector of ``cpu`` cores, ``gib`` GiB, ``pods`` and the named extras."""
    wanted = make_amounts(cpu=int(cpu * 1000), memory=int(gib * GIB), pods=pods, **extra)
    vector = axis.vector(wanted)
    assert isinstance(vector, np.ndarray)
    return vector


def amounts_of(*, cpu: float = 0, gib: float = 0, **extra: int) -> Any:
    """Amounts of ``cpu`` cores and ``gib`` GiB, as queues carry them."""
    return make_amounts(cpu=int(cpu * 1000), memory=int(gib * GIB), **extra)


def sized_task(name: str = "t-0", *, cpu: float = 1, gib: float = 1, **fields: Any) -> Task:
    """A waiting member of that size."""
    shape = make_shape(cpu=int(cpu * 1000), memory=int(gib * GIB))
    return make_task(name, shape=shape, **fields)


def claiming(name: str, *, cpu: float, gib: float = 0, queue: str = "default", **f: Any) -> Gang:
    """A gang without members yet whose ``minResources`` ask for that much."""
    axis = f.pop("axis", AXIS)
    return make_gang(
        name,
        queue=QueueName(queue),
        min_request=room(cpu=cpu, gib=gib, axis=axis),
        axis=axis,
        **f,
    )


def holding(name: str, *, cpu: float, gib: float = 0, queue: str = "default", **f: Any) -> Gang:
    """A gang that runs and holds that much; ``wants`` (cores) more of it waits."""
    wants = f.pop("wants", 0)
    held = room(cpu=cpu, gib=gib)
    return make_gang(
        name,
        queue=QueueName(queue),
        allocated=held,
        request=held + room(cpu=wants),
        **f,
    )
