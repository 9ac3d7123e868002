"""The process stops while Bindings are tried again."""

from dataclasses import replace

import pytest

from app.model.ids import NodeName
from app.service.limits import Limits
from tests.service.rig import FAILING
from tests.service.test_retried_bindings import later, raise_minimum, sent
from tests.service.virtual_time import settle


@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize("in_doubt", [True, False])
async def test_stopping_ends_what_is_tried_again_with_one_look_at_the_pod(
    arrived: bool, in_doubt: bool
) -> None:
    """The server stops before the time of a Binding is up, and would leave it unanswered."""

    rig, calls = await sent(first=[later(3.0)], second=[later(3.0)])
    if in_doubt:
        raise_minimum(rig)
    if arrived:
        for name, pod in rig.api.pods.items():
            rig.api.pods[name] = replace(pod, node=NodeName(rig.place(pod.name)))
    rig.parts.barrier.drain()
    await settle()
    assert [call.answer for call in calls] == (["", ""] if arrived else ["429", "429"])
    assert [verb for verb, _ in rig.api.tries].count("read") == 2
    assert rig.api.bound() == {}, "nothing was sent again"


async def test_a_binding_that_fails_while_stopping_is_not_tried_again() -> None:
    limits = Limits(binds_foreign=True)
    rig, calls = await sent(limits=limits, first=[FAILING], second=[FAILING])
    rig.pod("x", scheduler="other")
    rig.parts.barrier.drain()
    rig.api.fails["bind default/x"] = [FAILING]
    calls.append(rig.bind("x", "n0"))
    await settle()
    assert [call.answer for call in calls] == ["500: internal error"] * 3
