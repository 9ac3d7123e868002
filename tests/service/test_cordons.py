"""Cordoned nodes: they take pods that bear it, and stop nobody else."""

from app.model.reason import Cause
from app.model.shape import Toleration
from app.service.calls.filtering import Chosen
from tests.builders import make_node, make_shape
from tests.service.rig import Rig

ANYWHERE = make_shape(tolerations=(Toleration(exists=True),))


async def test_a_gang_that_bears_cordons_is_placed_on_a_cordoned_node() -> None:
    rig = Rig()
    rig.node("n1", unschedulable=True)
    names = rig.gang("g", size=2, shape=ANYWHERE)
    await rig.cycle()
    assert [rig.filter(name) for name in names] == [Chosen(rig.member("g-0").node)] * 2


async def test_a_place_on_a_node_that_is_cordoned_stays_with_who_bears_that() -> None:
    rig = Rig()
    rig.node("n1")
    rig.gang("bears", size=1, shape=ANYWHERE)
    rig.gang("does-not", size=1)
    await rig.cycle()
    rig.see("nodes", make_node("n1", unschedulable=True, resource_version="2"))
    assert (rig.place("bears-0"), rig.place("does-not-0")) == ("n1", "")


async def test_nobody_is_planned_onto_a_cordoned_node_where_predicates_are_off() -> None:
    """kube-scheduler does not let them go there whatever we think."""

    rig = Rig()
    assert rig.parts.configuration.load(
        'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}]\n'
    )
    rig.node("n1", unschedulable=True)
    rig.gang("g", size=1)
    await rig.cycle()
    assert rig.planning.log.stale == 0
    assert rig.refusals[rig.key("g")].cause is Cause.NO_NODE_FITS
