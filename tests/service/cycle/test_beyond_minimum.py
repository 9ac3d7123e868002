"""Where a quota counts pods that wait, it is told how many more a queue can hold."""

import asyncio

import pytest

from app.model.amounts import amounts
from app.model.ids import QueueName, group_key
from app.model.workload import Quota
from app.service.cycle.beyond_minimum import bearable_beyond
from tests.builders import make_amounts, make_queue
from tests.service.rig import Rig


def told(*names: str, scoped: bool = False, namespace: str = "default") -> object:
    async def scenario() -> object:
        rig = Rig()
        rig.node("n1")
        rig.queue(make_queue("q", capability=make_amounts(cpu=3000)))
        rig.group("g", minimum=1, queue=QueueName("q"))
        rig.pod("g-0", group="g")
        await rig.cycle()
        hard = amounts(dict.fromkeys(names, 5))
        if names:
            rig.cache.quotas["quota"] = Quota(namespace, "quota", hard, (), scoped)
        group = rig.cache.groups[group_key("default", "g")]
        return bearable_beyond(rig.cache, rig.planning.queries, group)

    return asyncio.run(scenario())


@pytest.mark.parametrize("name", ["pods", "count/pods", "cpu", "requests.memory", "limits.cpu"])
def test_it_is_told_where_a_quota_counts_pods(name: str) -> None:
    assert told(name) == {"": 2}


def test_it_is_not_told_elsewhere() -> None:
    assert told() is None
    assert told("services", "count/jobs.batch", "requests.nvidia.com/gpu") is None
    assert told("pods", scoped=True) is None
    assert told("pods", namespace="other") is None
