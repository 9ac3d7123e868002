"""Which groups are told of anew, as they wait for something else."""

from app.model.reason import Cause, Refusal
from app.service.cycle.refused import Refused
from tests.service.rig import Rig


async def test_a_group_that_waited_for_something_else_for_a_moment_is_told_of_again() -> None:
    rig = Rig()
    rig.gang("g", size=2)
    key, refused = rig.key("g"), Refused(rig.cache)
    why = {key: Refusal(Cause.QUEUE_QUOTA, where="default")}
    refused.replace(why)
    assert refused.note_causes() == {key}
    refused.replace(why)
    assert refused.note_causes() == set()
    refused.replace({})
    refused.replace(why)
    assert refused.note_causes() == {key}
    for decided in ({}, why):
        refused.note_on_demand(rig.cache.groups[key], decided)
    assert refused.note_causes() == {key}
    assert refused.note_causes() == set()
