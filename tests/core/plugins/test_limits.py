"""What counts when a claim is compared with a limit."""

import pytest

from app.core.plugins.limits import exceeding, missing
from app.model.resources import CPU_COLUMN, MEMORY_COLUMN, Vector
from tests.builders import make_gang
from tests.core.plugins.sessions import claiming, holding, room


@pytest.mark.parametrize(
    ("asked", "held", "expected"),
    [
        (room(cpu=1), room(cpu=3), ()),
        (room(cpu=1.5), room(cpu=3), (CPU_COLUMN,)),
        (room(cpu=1), room(cpu=1, gib=9), ()),
        (room(cpu=1, gib=1), room(cpu=5, gib=9), (CPU_COLUMN, MEMORY_COLUMN)),
        (room(pods=3), room(pods=9), ()),
    ],
    ids=["fits", "too much", "not asked for", "of two", "pods"],
)
def test_only_what_is_asked_for_exceeds_a_limit(
    asked: Vector, held: Vector, expected: tuple[int, ...]
) -> None:
    assert exceeding(asked, held=held, limit=room(cpu=4, gib=8, pods=2)) == expected


def test_what_a_gang_holds_is_not_missing() -> None:
    assert missing(make_gang()) is None
    assert missing(holding("h", cpu=3)) is None
    whole, part = (
        missing(claiming("c", cpu=4)),
        missing(holding("p", cpu=3, min_request=room(cpu=4))),
    )
    more = missing(holding("m", cpu=5, min_request=room(cpu=4)))
    assert whole is not None
    assert part is not None
    assert more is not None
    assert [v[CPU_COLUMN] for v in (whole, part, more)] == [4000, 1000, 0]
