"""Finished pods whose PodGroup is not there, and what they are once it is back."""

from dataclasses import replace

from app.model.ids import NodeName
from app.model.pod import GROUP_ANNOTATION
from tests.builders import make_pod
from tests.cache.rig import KEY, Rig, group


def test_a_pod_that_failed_as_it_was_deleted_is_replaced_after_its_group_is_back_too() -> None:
    rig = Rig()
    failed = replace(
        make_pod("a", annotations={GROUP_ANNOTATION: "g"}),
        node=NodeName("n"),
        phase="Failed",
        deleting=True,
    )
    rig.cache.drop_group(KEY)
    rig.cache.set_pod(failed, now=rig.now)
    assert failed.uid not in rig.cache.members
    rig.cache.set_group(group())
    assert rig.cache.members[failed.uid].lost
