"""What the annotations of a PodGroup say of its tasks."""

import pytest

from app.core.gangs.task_topology import named, problems, topology_of
from app.model.workload import AFFINITY, ANTI_AFFINITY, TASK_ORDER


def given(
    affinity: str | None = None, anti: str | None = None, order: str | None = None
) -> dict[str, str]:
    said = {AFFINITY: affinity, ANTI_AFFINITY: anti, TASK_ORDER: order}
    return {key: text for key, text in said.items() if text is not None}


def test_tasks_of_a_set_belong_together_or_apart() -> None:
    found = topology_of(given("ps,worker;ps,chief", "ps;worker,chief", "ps,worker,chief"))
    assert found is not None
    assert found.pull == {
        "ps": {"worker", "chief"},
        "worker": {"ps"},
        "chief": {"ps"},
    }
    assert found.push == {"ps": {"ps"}, "worker": {"chief"}, "chief": {"worker"}}
    assert found.turn == {"ps": 3, "worker": 2, "chief": 1}


@pytest.mark.parametrize(
    ("affinity", "anti", "weight"),
    [
        (None, "a", 4),
        ("a,b", None, 3),
        ("a", None, 2),
        (None, "a,b", 1),
        ("a;a,b", "a;a,b", 4),
        ("a;a,b", "a,b", 3),
        ("a", "a,b", 2),
    ],
)
def test_what_binds_a_task_most_weighs_most(
    affinity: str | None, anti: str | None, weight: int
) -> None:
    found = topology_of(given(affinity, anti))
    assert found is not None
    assert found.weight["a"] == weight


def test_the_order_of_the_user_goes_before_weights() -> None:
    found = topology_of(given("b,c", "a", "c"))
    assert found is not None
    assert sorted("abcd", key=found.rank) == ["c", "a", "b", "d"]


def test_attraction_counts_those_beside_less_those_apart() -> None:
    found = topology_of(given("a,b;a", "a,c"))
    assert found is not None
    there = {"a": 2, "b": 3, "c": 4, "d": 9}
    assert found.attraction("a", there) == 2 + 3 - 4
    assert found.repulsion("a", there) == 4
    assert found.attraction("d", there) == 0


def test_spare_marks_mean_nothing() -> None:
    tidy = topology_of(given("ps,worker;ps,chief", "ps;worker,chief", "ps,worker"))
    loose = topology_of(given("ps, worker;ps,,chief,;", "ps;worker,chief;;;", "ps,worker,,,"))
    assert tidy is not None
    assert loose is not None
    assert (tidy.pull, tidy.push, tidy.weight, tidy.turn) == (
        loose.pull,
        loose.push,
        loose.weight,
        loose.turn,
    )


@pytest.mark.parametrize(
    ("annotations", "at", "says"),
    [
        (given("ps,ps"), AFFINITY, "task ps is named twice in ps,ps"),
        (given(anti="a;b,c,b"), ANTI_AFFINITY, "task b is named twice in b,c,b"),
        (given(order="a,b,a"), TASK_ORDER, "task a is named twice"),
        (given(order="a;b"), TASK_ORDER, "the order is one list, without semicolons"),
    ],
)
def test_what_cannot_be_read_says_nothing_of_any_task(
    annotations: dict[str, str], at: str, says: str
) -> None:
    assert list(problems(annotations)) == [(at, says)]
    assert topology_of({AFFINITY: "x,y", **annotations}) is None


def test_groups_without_the_annotations_say_nothing() -> None:
    assert topology_of({"other": "a,b"}) is None


def test_the_tasks_that_are_named() -> None:
    assert named(given("ps,worker;ps"), AFFINITY) == ["ps", "worker"]
