"""What is meant for a pod never reaches another that was made under its name."""

from dataclasses import replace

from app.model.ids import NodeName
from app.model.pod import GATE, QUEUE_GATE
from app.service.calls.filtering import Wait
from app.service.effects.nominations import PATIENCE_S
from app.service.limits import Limits, PlacementHint
from tests.builders import make_shape
from tests.service.rig import Rig, working
from tests.service.virtual_time import advance

N1 = NodeName("n1")


def written(rig: Rig) -> list[str]:
    """What the pod ``p`` of the API server got."""
    return [write.verb for write in rig.api.writes if write.target == "default/p"]


def tried(rig: Rig) -> list[str]:
    """What it was to get."""
    return [verb for verb, target in rig.api.tries if target == "default/p"]


async def test_another_pod_is_not_nominated_and_its_gate_stays() -> None:
    rig = Rig(Limits(hint=PlacementHint.NOMINATE))
    rig.node("n1")
    rig.pod("p", gates=(GATE,))
    rig.make_anew("p")
    with working(rig):
        await advance(3)
    assert written(rig) == []
    assert tried(rig) == ["pod-status"], "what is gone needs no more"


async def test_another_pod_keeps_its_nomination() -> None:
    rig = Rig()
    names = rig.gang("g", size=2, nominated=N1)
    rig.make_anew(*names)
    with working(rig):
        await advance(3 * PATIENCE_S)
    assert rig.api.of("pod-status") == []


async def test_another_pod_is_not_told_why_its_predecessor_waits() -> None:
    rig = Rig()
    rig.node("n1")
    rig.pod("p", gates=(GATE,), shape=make_shape(cpu=50_000))
    rig.make_anew("p")
    with working(rig):
        await advance(3)
    assert written(rig) == []


async def test_another_pod_is_not_shown_to_autoscalers() -> None:
    rig = Rig()
    rig.node("n1")
    asks = {QUEUE_GATE: "true"}
    rig.pod("p", gates=(GATE,), annotations=asks, shape=make_shape(cpu=50_000))
    rig.make_anew("p")
    with working(rig):
        await advance(3)
    assert written(rig) == []


async def test_another_pod_is_not_woken() -> None:
    rig = Rig()
    rig.node("n1", cpu=500)
    rig.pod("p")
    with working(rig):
        await advance(1)
        assert isinstance(rig.filter("p"), Wait)
        rig.make_anew("p")
        rig.node("n2")
        await advance(3)
    assert written(rig) == []
    assert tried(rig) == ["wake"], "what is gone needs no more"


async def test_a_gate_that_another_pod_has_is_left_to_the_plan_for_that_pod() -> None:
    """Its UID is not the one that the patch tests, and the watch shows it soon."""

    rig = Rig(Limits(hint=PlacementHint.PIN))
    rig.node("n1")
    old = rig.pod("p", gates=(GATE,))
    rig.make_anew("p")
    with working(rig):
        await advance(1)
        assert rig.api.of("patch") == []
        new = rig.api.pods["default/p"]
        rig.unsee("pods", old)
        rig.store(replace(new))
        await advance(1)
    [patch] = rig.api.of("patch")
    assert patch.body[0]["value"] == new.uid
