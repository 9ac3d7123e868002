"""What the planner is shown of a pod."""

import pytest

from app.cache.gangs.views import task_priority
from tests.builders import make_pod


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("9", 9),
        ("0", 0),
        ("-9", -9),
        ("nine", 5),
        ("1_0", 5),
        ("٩", 5),
        ("2147483648", 5),
        ("", 5),
    ],
)
def test_an_annotation_that_is_a_priority_goes_before_the_pods_own(
    said: str, expected: int
) -> None:
    pod = make_pod("p", priority=5, annotations={"volcano.sh/task-priority": said})
    assert task_priority(pod) == expected


@pytest.mark.parametrize("own", [5, 0, -5])
def test_without_one_it_is_the_pods_own(own: int) -> None:
    assert task_priority(make_pod("p", priority=own)) == own
