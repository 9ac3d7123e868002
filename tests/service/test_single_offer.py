"""One offered node that is not the planned one: a guess at first, all there is when it returns."""

from app.model.ids import NodeName
from app.model.snapshot import Veto
from app.service.calls.filtering import Chosen, Wait
from tests.service.rig import Rig

NODES = ("n1", "n2", "n3", "n4")


async def test_the_same_single_node_twice_is_all_there_is() -> None:
    rig = Rig()
    rig.node(*NODES)
    rig.pod("p")
    await rig.cycle()
    planned = rig.place("p")
    only = next(name for name in NODES if name != planned)
    assert isinstance(rig.filter("p", [only]), Wait)
    assert rig.filter("p", [only]) == Chosen(NodeName(only))
    shape = rig.member("p").pod.shape
    now = rig.clock()
    assert rig.planning.vetoes.active(now=now) == {Veto(shape, NodeName(planned))}


async def test_a_gang_follows_its_members_to_the_only_node_that_is_offered() -> None:
    rig = Rig()
    rig.node(*NODES)
    names = rig.gang("g", size=3)
    await rig.cycle()
    only = "n4" if rig.place(names[0]) != "n4" else "n1"
    for _ in range(2):
        answers = [rig.filter(name, [only]) for name in names]
    assert answers == [Chosen(NodeName(only))] * 3


async def test_different_single_nodes_are_guesses() -> None:
    rig = Rig()
    rig.node(*NODES)
    rig.pod("p")
    await rig.cycle()
    planned = rig.place("p")
    others = [name for name in NODES if name != planned]
    for other in others:
        assert isinstance(rig.filter("p", [other]), Wait)
    assert len(rig.planning.vetoes) == 0
    assert rig.place("p") == planned


async def test_a_guess_before_each_full_offer_is_never_taken_for_all_there_is() -> None:
    rig = Rig()
    rig.node(*NODES)
    rig.pod("p")
    await rig.cycle()
    planned = rig.place("p")
    other = next(name for name in NODES if name != planned)
    for _ in range(3):
        assert isinstance(rig.filter("p", [other]), Wait)
        assert rig.filter("p") == Chosen(NodeName(planned))
    assert len(rig.planning.vetoes) == 0
