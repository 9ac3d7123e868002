"""How many more members a queue could hold: its limits and its share, members that wait apart."""

import pytest

from app.core.bearable import bearable
from app.core.tiers import build
from app.model.conf import PluginConf, SchedulerConf
from app.model.gang import Gang
from app.model.ids import QueueName
from app.model.workload import Queue
from tests.builders import GIB, make_gang, make_node, make_queue, make_shape, make_snapshot
from tests.core.plugins.sessions import amounts_of, holding, room

NODES = (make_node("n", cpu=8_000, memory=100 * GIB, pods=100),)
PLUGINS = ("proportion", "capacity")


def gang(*, held: float, roles: dict[str, int]) -> Gang:
    """It holds so many cores; members of a role ask for that many."""
    shapes = {role: make_shape(cpu=cpu * 1000, memory=0) for role, cpu in roles.items()}
    return make_gang(
        "g", queue=QueueName("q"), allocated=room(cpu=held), min_member=1, role_shapes=shapes
    )


def more(plugin: str, mine: Gang, *others: Gang, queues: tuple[Queue, ...]) -> dict[str, int]:
    snapshot = make_snapshot(nodes=NODES, queues=queues, gangs=(mine, *others))
    policies = build(SchedulerConf(actions=(), tiers=((PluginConf(plugin),),)))
    return bearable(snapshot, policies, gang=mine, now=0.0)


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_queue_bears_what_its_capability_leaves(plugin: str) -> None:
    queue = make_queue("q", capability=amounts_of(cpu=5))
    mine = gang(held=1, roles={"one": 1, "three": 3, "nine": 9})
    assert more(plugin, mine, queues=(queue,)) == {"one": 4, "three": 1, "nine": 0}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_what_terminates_is_not_left(plugin: str) -> None:
    queue = make_queue("q", capability=amounts_of(cpu=5))
    going = make_gang("gone", queue=QueueName("q"), releasing=room(cpu=2))
    assert more(plugin, gang(held=1, roles={"": 1}), going, queues=(queue,)) == {"": 2}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_queue_without_limits_bears_what_the_cluster_has(plugin: str) -> None:
    mine = gang(held=1, roles={"": 2})
    assert more(plugin, mine, queues=(make_queue("q"),)) == {"": 3}


def test_a_queue_bears_no_more_than_its_share() -> None:
    queues = (make_queue("q"), make_queue("other"))
    other = holding("o", cpu=1, wants=20, queue="other")
    mine = gang(held=1, roles={"": 1})
    assert more("proportion", mine, other, queues=queues) == {"": 3}
    assert more("proportion", gang(held=4, roles={"": 1}), other, queues=queues) == {"": 0}


def test_a_queue_that_is_gone_bears_nothing() -> None:
    assert more("capacity", gang(held=0, roles={"": 1}), queues=()) == {"": 0}
