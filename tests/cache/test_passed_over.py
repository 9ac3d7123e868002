"""Members beyond the minimum that nobody came for: what the planner is told of them."""

from app.cache.gangs.members import Stage
from app.model.gang import Gang
from app.model.ids import NodeName
from tests.cache.rig import KEY, Rig


def view(rig: Rig) -> Gang:
    gang = rig.cache.registry.view(KEY)
    assert gang is not None
    return gang


def passed_over() -> Rig:
    """``running`` is the minimum, ``extra`` had a place."""
    rig = Rig()
    rig.see(min_member=1)
    rig.pod("running", node=NodeName("n"), phase="Running")
    rig.pod("extra")
    rig.stage("extra", Stage.PLANNED)
    rig.cache.reservations.pass_over(KEY, [rig.uid("extra")], until=101.0, now=rig.now)
    return rig


def test_it_has_no_place_any_more_and_goes_last() -> None:
    rig = passed_over()
    assert not rig.member("extra").reserved
    assert view(rig).unused == {rig.uid("extra")}
    assert view(rig).yields_until == 101.0
    assert rig.cache.groups[KEY].wants_planning


def test_it_does_so_until_somebody_comes() -> None:
    rig = passed_over()
    rig.cache.decisions.asked_for(rig.member("running"))
    assert view(rig).unused
    rig.cache.decisions.asked_for(rig.member("extra"))
    assert not view(rig).unused


def test_an_update_of_the_pod_changes_nothing_of_that() -> None:
    rig = passed_over()
    rig.pod("extra", labels={"a": "b"})
    assert view(rig).unused == {rig.uid("extra")}


def test_it_is_forgotten_with_the_pod() -> None:
    rig = passed_over()
    rig.cache.drop_pod(rig.uid("extra"))
    assert not view(rig).unused


def test_one_whose_binding_is_under_way_loses_nothing() -> None:
    rig = passed_over()
    rig.stage("extra", Stage.BINDING)
    rig.cache.reservations.pass_over(KEY, [rig.uid("extra")], until=101.0, now=rig.now)
    assert rig.member("extra").reserved
