"""priority: higher first."""

from tests.builders import make_gang, make_snapshot, make_task
from tests.core.plugins.sessions import open_plugin


def test_groups_and_members_of_higher_priority_go_first() -> None:
    hooks, _ = open_plugin("priority", make_snapshot())
    assert hooks.gang_order
    assert hooks.task_order
    low, high = make_gang("low", priority=-1), make_gang("high", priority=7)
    small, big = make_task("small", priority=1), make_task("big", priority=9)

    assert sorted((low, high), key=hooks.gang_order) == [high, low]
    key = hooks.task_order(low)
    assert key
    assert sorted((small, big), key=key) == [big, small]


def test_conformance_has_no_say_in_placing() -> None:
    hooks, _ = open_plugin("conformance", make_snapshot())

    assert not any(getattr(hooks, name) for name in type(hooks).__slots__)
