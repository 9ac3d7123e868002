"""How many pods of each task a gang takes at the least."""

from __future__ import annotations

import pytest

from app.core.gangs.job_minimum import Part, pods_needed

LOW, HIGH = 0, 1000


@pytest.mark.parametrize(
    ("parts", "minimum", "needed"),
    [
        ([Part(LOW, 3, 3), Part(LOW, 2, 5)], 5, [3, 2]),
        ([Part(LOW, 3, 3), Part(LOW, 2, 5)], 7, [3, 4]),
        ([Part(LOW, 3, 3), Part(LOW, 2, 5)], 4, [3, 1]),
        ([Part(LOW, 3, 3), Part(HIGH, 2, 5)], 4, [0, 4]),
        ([Part(LOW, 1, 3), Part(HIGH, 1, 2)], 4, [2, 2]),
        ([Part(LOW, 0, 2)], 9, [2]),
        ([], 1, []),
    ],
    ids=["as the tasks say", "more", "fewer", "fewer by class", "more by class", "all", "none"],
)
def test_the_least_of_each_task(parts: list[Part], minimum: int, needed: list[int]) -> None:
    assert pods_needed(parts, minimum) == needed
