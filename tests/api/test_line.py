"""Where a group stands in the line of its queue, and which columns put it there."""

import json
from typing import Any

from pydantic import TypeAdapter

from app.core.ordering import LinePosition
from app.model.workload import PriorityClass
from tests.api.stand import Stand, stand
from tests.builders import make_shape
from tests.service.rig import Rig


def full() -> Rig:
    """A node that takes none of three groups, of which ``high`` ranks first and ``old`` next."""
    rig = Rig()
    rig.node("n1", cpu=1000)
    rig.cache.registry.set_class(PriorityClass("high", 9))
    for name, created, rank in (("old", 1.0, ""), ("young", 5.0, ""), ("high", 9.0, "high")):
        rig.group(name, minimum=1, created=created, priority_class=rank)
        rig.pod(f"{name}-0", group=name, shape=make_shape(cpu=2000))
    return rig


async def asked(at: Stand, name: str) -> dict[str, Any]:
    answer = await at.get(f"/line/default/{name}")
    assert answer.status_code == 200, answer.text
    TypeAdapter(LinePosition).validate_json(answer.content)
    found: dict[str, Any] = json.loads(answer.content)
    return found


async def test_the_line_is_that_of_the_planner_and_says_which_column_decided() -> None:
    async with stand(full()) as at:
        high, old, young = [await asked(at, name) for name in ("high", "old", "young")]
    assert [each["position"] for each in (high, old, young)] == [1, 2, 3]
    assert {each["waiting"] for each in (high, old, young)} == {3}
    assert [each["decided_by"] for each in (high, old, young)] == ["", "priority", "age"]
    assert [each["group"] for each in young["ahead"]] == ["default/high", "default/old"]
    assert young["itself"]["columns"][0] == {"by": "priority", "value": "0"}


async def test_a_group_that_does_not_wait_has_no_place_in_the_line() -> None:
    async with stand(full()) as at:
        answer = await at.get("/line/default/none")
    assert (answer.status_code, answer.text) == (404, "default/none is not known\n")
