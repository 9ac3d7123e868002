"""Gangs that are parted, as their members come and go and their PodGroups change."""

from app.model.ids import NodeName
from app.model.parts import SubGroupPolicy
from app.model.workload import GroupPhase
from tests.service.rig import Rig, working
from tests.service.statuses import TOLD_S, conditions, phases, show
from tests.service.virtual_time import advance


async def test_a_running_gang_that_lost_a_member_of_a_sub_group_is_unknown() -> None:
    rig = Rig()
    rig.node("n1")
    pairs = SubGroupPolicy("pair", keys=("pair",), size=2, least=2)
    rig.group("g", minimum=2, sub_groups=(pairs,), phase=GroupPhase.RUNNING)
    for name in ("g-00", "g-01", "g-10", "g-11"):
        on = {"node": NodeName("n1"), "phase": "Running"}
        rig.pod(name, group="g", labels={"pair": name[2]}, **on)
    with working(rig):
        await advance(1)
        show(rig, "g")
        rig.delete("g-11")
        await advance(TOLD_S)
    assert phases(rig, "g") == ["Running", "Unknown"]
    assert conditions(rig, "g")["Unschedulable"] == (
        "True",
        "NotEnoughPodsOfTask",
        "Not enough valid subGroups of each task for gang-scheduling",
    )
