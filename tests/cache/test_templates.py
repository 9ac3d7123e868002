"""What the vcjobs say of their pods reaches the groups that they own, and only these."""

import pytest

from app.cache.cluster import ClusterCache
from app.cache.gangs.registry import Registry
from app.model.ids import GroupKey, group_key
from app.model.job import Template
from app.model.shape import PodShape
from app.model.workload import GroupPhase, PodGroup
from tests.builders import make_shape
from tests.cache.unwalkable import Unwalkable


class Rig:
    """Groups of one member each, and the vcjobs that own them."""

    def __init__(self) -> None:
        self.cache = ClusterCache(schedulers=frozenset({"volcano"}))

    def group(self, name: str, *, owner: str, uid: str = "") -> None:
        self.cache.set_group(
            PodGroup(
                "default",
                name,
                min_member=1,
                uid=uid or f"uid-{name}",
                resource_version="1",
                created=0.0,
                phase=GroupPhase.INQUEUE,
                owner_uid=owner,
            )
        )

    def drop(self, name: str) -> None:
        self.cache.drop_group(group_key("default", name))

    def job(self, uid: str, **shapes: PodShape) -> None:
        roles = {role: Template(shape, {"app": role}) for role, shape in shapes.items()}
        self.cache.registry.set_template(uid, roles)

    def settle(self) -> None:
        """Somebody has looked at all that changed."""
        self.cache.registry.refresh()
        self.cache.signals.groups.clear()
        self.cache.signals.dirty = False

    def changed(self) -> set[GroupKey]:
        return self.cache.signals.groups

    def shapes(self, name: str) -> dict[str, PodShape]:
        view = self.cache.registry.view(group_key("default", name))
        assert view is not None
        return dict(view.role_shapes)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_job_describes_the_groups_that_it_owns(rig: Rig) -> None:
    rig.group("early", owner="j")
    rig.group("other", owner="k")
    rig.job("j", worker=make_shape(cpu=500))
    rig.group("late", owner="j")
    assert rig.shapes("early") == rig.shapes("late") == {"worker": make_shape(cpu=500)}
    assert rig.shapes("other") == {}


def test_a_job_that_says_something_else_has_its_groups_planned_anew(rig: Rig) -> None:
    rig.group("g", owner="j")
    rig.group("h", owner="k")
    rig.job("j", worker=make_shape())
    rig.settle()
    rig.job("j", worker=make_shape(cpu=500))
    assert rig.changed() == {group_key("default", "g")}
    assert rig.cache.signals.dirty
    rig.settle()
    rig.job("j")
    assert rig.changed() == {group_key("default", "g")}
    assert rig.shapes("g") == {}


def test_a_job_that_says_nothing_new_sets_off_nothing(rig: Rig) -> None:
    """Its status is written at every pod that starts or ends."""
    rig.group("g", owner="j")
    rig.job("j", worker=make_shape())
    rig.settle()
    rig.job("j", worker=make_shape())
    assert rig.changed() == set()
    assert not rig.cache.signals.dirty


def test_a_job_is_looked_up_without_a_look_at_the_groups_of_others(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.group("g", owner="j")
    with monkeypatch.context() as patched:
        patched.setattr(rig.cache.registry, "groups", Unwalkable(rig.cache.groups))
        rig.job("j", worker=make_shape())
    assert rig.shapes("g") == {"worker": make_shape()}


def test_a_group_that_has_another_owner_now_is_described_by_that(rig: Rig) -> None:
    rig.job("j", worker=make_shape())
    rig.group("g", owner="j")
    rig.group("g", owner="k")
    rig.settle()
    rig.job("j", worker=make_shape(cpu=500))
    assert rig.changed() == set()
    rig.job("k", server=make_shape())
    assert rig.shapes("g") == {"server": make_shape()}


def owned(registry: Registry) -> int:
    return sum(len(groups) for groups in registry.by_owner.values())


def test_groups_that_are_gone_are_forgotten(rig: Rig) -> None:
    rig.job("j", worker=make_shape())
    rig.group("g", owner="j")
    rig.group("g", owner="j", uid="made anew")
    assert owned(rig.cache.registry) == 1
    rig.drop("g")
    assert rig.cache.registry.by_owner == {}
    rig.settle()
    rig.job("j", worker=make_shape(cpu=500))
    assert rig.changed() == set()
