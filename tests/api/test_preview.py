"""Which pods a queue would give up, asked over HTTP: nothing is decided by the question."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from app.api.preview import QueuePreview
from app.model.ids import NodeName, QueueName
from app.model.workload import EVICT_OVER_CAPABILITY
from tests.api.stand import Stand, stand
from tests.builders import make_amounts, make_queue, make_shape
from tests.service.rig import Rig

CONF = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: {sharing}
"""
TWO = make_shape(cpu=2000)


def full(*, sharing: str = "capacity", **queue: Any) -> Rig:
    """Five pods of two cores: three beyond the minimum of ``g``, one that is not preemptable."""
    rig = Rig()
    rig.parts.configuration.load(CONF.format(sharing=sharing))
    rig.node("n1", cpu=12_000)
    rig.queue(make_queue("default", **queue))
    rig.group("g", minimum=1)
    for number in range(4):
        rig.pod(f"g-{number}", group="g", node=NodeName("n1"), phase="Running", shape=TWO)
    kept = {"volcano.sh/preemptable": "false"}
    rig.pod("kept", node=NodeName("n1"), phase="Running", shape=TWO, annotations=kept)
    return rig


async def asked(at: Stand, query: str = "") -> dict[str, Any]:
    answer = await at.get(f"/preview/queue/default{query}")
    assert answer.status_code == 200, answer.text
    TypeAdapter(QueuePreview).validate_json(answer.content)
    found: dict[str, Any] = json.loads(answer.content)
    return found


async def test_it_tells_who_would_go_for_a_capability_that_is_only_asked_about() -> None:
    rig = full()
    async with stand(rig) as at:
        found = await asked(at, "?capability=cpu%3D6")
        assert found["holds"]["cpu"] == 10_000
        assert (found["capability"], found["over"]) == ({"cpu": 6000}, {"cpu": 4000})
        assert {pod["kind"] for pod in found["pods"]} == {"surplus"}
        assert len(found["pods"]) == 2
        assert found["kept"] == {}
        assert found["spared"] == {"not preemptable": 1}
        assert found["candidates"] == 5
        assert not found["evicts"]
    await rig.cycle()
    assert not rig.planning.evictions.plans
    assert rig.cache.queues[QueueName("default")].capability == ()


async def test_what_protected_pods_hold_stays_beyond() -> None:
    async with stand(full(capability=make_amounts(cpu=1000))) as at:
        found = await asked(at)
        assert len(found["pods"]) == 4
        assert found["kept"] == {"cpu": 1000}


async def test_it_foretells_what_the_annotation_brings() -> None:
    capability = make_amounts(cpu=6000)
    rig = full(capability=capability)
    async with stand(rig) as at:
        foretold = {pod["pod"] for pod in (await asked(at))["pods"]}
        said = {EVICT_OVER_CAPABILITY: "true"}
        rig.queue(make_queue("default", capability=capability, annotations=said))
        assert (await asked(at))["evicts"]
        await rig.cycle()
        [begun] = rig.planning.evictions.decided
        assert {f"{v.namespace}/{v.name}" for v in begun.intent.victims} == foretold
        assert (await asked(at))["pods"] == []


@pytest.mark.parametrize(("sharing", "told"), [("drf", True), ("proportion", False)])
async def test_where_no_plugin_heeds_capabilities_it_says_so(sharing: str, told: bool) -> None:
    async with stand(full(sharing=sharing, capability=make_amounts(cpu=2000))) as at:
        found = await asked(at)
        assert bool(found["problem"]) is told
        assert bool(found["pods"]) is not told


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("none", 404, "no queue none is known"),
        ("default?capability=cpu", 400, "write cpu=8,memory=32Gi"),
        ("default?capability=cpu%3Dmuch", 400, "write cpu=8,memory=32Gi"),
        ("default?capability=%3D5", 400, "write cpu=8,memory=32Gi"),
        ("default?capability=cpu%3D-5", 400, "write cpu=8,memory=32Gi"),
        ("default?capability=cpu%3D5,cpu%3D6", 400, "capability: cpu is there twice"),
        ("default?capability=&capability=cpu%3D6", 400, "capability is asked twice"),
    ],
)
async def test_what_cannot_be_answered_says_why(path: str, status: int, text: str) -> None:
    async with stand(full()) as at:
        answer = await at.get(f"/preview/queue/{path}")
        assert answer.status_code == status
        assert text in answer.text
