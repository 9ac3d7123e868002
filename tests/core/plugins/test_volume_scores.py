"""predicates: nodes are liked by how full a pod's volumes leave the storage there."""

from __future__ import annotations

from typing import Any

import pytest

from app.core.conf_error import ConfError
from app.core.placement.volume_scores import Point, shape_of, worth
from app.core.tiers import build
from app.model.conf import PluginConf, SchedulerConf
from app.model.shape import LabelSelector, Operator, Requirement
from app.model.volumes import CsiDriver, StorageCapacity
from tests.builders import GIB
from tests.core.plugins.test_predicates_of_volumes import gang, plan
from tests.volumes import DRIVER, FAST, LOCAL, ZONE, claim, on, pod_with, storage, volume, volumes

EMPTY_FIRST = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
FULL_FIRST = [{"utilization": "0", "score": "0"}, {"utilization": "100", "score": "10"}]
SHAPE = "volumebinding.shape"
WEIGHT = "volumebinding.weight"


def left(name: str, zone: str, gib: int) -> StorageCapacity:
    """What the driver has left in a zone."""
    where = LabelSelector((Requirement(ZONE, Operator.IN, (zone,)),))
    return StorageCapacity(name, "fast", where, left=gib * GIB)


POOLS = (FAST, CsiDriver(DRIVER, tells_capacity=True), left("a", "a", 20), left("b", "b", 100))


def node_of(arguments: dict[str, object], *stored: Any, gib: int = 10, of: str = "fast") -> str:
    """Where the pod goes that waits for a volume so large; ``n0`` is in zone a, ``n1`` in b."""
    there = storage(claim("data", gib=gib, of=of), *stored)
    outcome = plan(gang("g", 1, pod_with("data")), of=volumes(there), arguments=arguments)
    [node] = outcome.nodes("g").values()
    return node


@pytest.mark.parametrize(
    ("arguments", "node"),
    [
        ({}, "n0"),
        ({SHAPE: EMPTY_FIRST}, "n1"),
        ({SHAPE: FULL_FIRST}, "n0"),
        ({SHAPE: EMPTY_FIRST, WEIGHT: 0}, "n0"),
        ({SHAPE: EMPTY_FIRST, WEIGHT: "5"}, "n1"),
        ({SHAPE: EMPTY_FIRST, "predicate.VolumeBindingEnable": False}, "n0"),
    ],
    ids=["no shape", "empty first", "full first", "no weight", "as text", "no rule"],
)
def test_new_volumes_are_made_where_the_shape_likes_it(
    arguments: dict[str, object], node: str
) -> None:
    assert node_of(arguments, *POOLS) == node


def test_free_volumes_count_by_how_much_of_them_is_used() -> None:
    there = (
        LOCAL,
        volume("large", gib=100, storage_class="local", terms=on(ZONE, "a")),
        volume("small", gib=10, storage_class="local", terms=on(ZONE, "b")),
    )
    assert node_of({SHAPE: FULL_FIRST}, *there, of="local") == "n1"
    assert node_of({SHAPE: EMPTY_FIRST}, *there, of="local") == "n0"


def test_members_of_a_gang_count_with_each_other() -> None:
    each = [claim(f"c{n}", gib=40) for n in range(3)]
    there = storage(*each, FAST, POOLS[1], left("a", "a", 100), left("b", "b", 100))
    gangs = [gang(f"g{n}", 1, pod_with(f"c{n}")) for n in range(3)]
    spread = plan(*gangs, of=volumes(there), arguments={SHAPE: EMPTY_FIRST})
    packed = plan(*gangs, of=volumes(there), arguments={SHAPE: FULL_FIRST})
    assert [set(spread.nodes(f"g{n}").values()) for n in range(2)] == [{"n0"}, {"n1"}]
    assert [set(packed.nodes(f"g{n}").values()) for n in range(2)] == [{"n0"}, {"n0"}]


@pytest.mark.parametrize(
    ("asked", "there", "expected"),
    [(0, 100, 100), (20, 100, 90), (40, 100, 80), (60, 100, 60), (100, 100, 0), (101, 100, 0)],
)
def test_the_worth_lies_on_the_line_between_two_points(
    asked: int, there: int, expected: int
) -> None:
    shape = (Point(0, 10), Point(40, 8), Point(80, 4), Point(100, 0))
    assert worth(shape, asked=asked, there=there) == expected


@pytest.mark.parametrize("used", [0, 30, 100])
def test_a_shape_of_one_point_is_worth_the_same_everywhere(used: int) -> None:
    assert worth((Point(50, 7),), asked=used, there=100) == 70


def test_numbers_of_a_shape_may_be_text() -> None:
    assert shape_of(FULL_FIRST, "here") == (Point(0, 0), Point(100, 10))
    assert shape_of(None, "here") == ()


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ([], "[] is no list of points with utilization and score"),
        ("0:10", "'0:10' is no list of points"),
        ([{"utilization": 0}], "point 1: {'utilization': 0} is no utilization with its score"),
        (
            [{"utilization": 101, "score": 1}],
            "point 1: utilization: 101 is not a whole number from 0 to 100",
        ),
        ([{"utilization": 1, "score": 11}], "score: 11 is not a whole number from 0 to 10"),
        ([{"utilization": True, "score": 1}], "utilization: True is not a whole number"),
        ([*EMPTY_FIRST, EMPTY_FIRST[1]], "utilization 100 does not come after 100"),
    ],
    ids=str,
)
def test_a_shape_that_is_none_is_refused(shape: object, says: str) -> None:
    with pytest.raises(ConfError) as caught:
        plan(of=volumes(storage()), arguments={SHAPE: shape})
    assert str(caught.value).startswith(f"plugin predicates: argument {SHAPE}: ")
    assert says in str(caught.value)


@pytest.mark.parametrize("key", [WEIGHT, "volumebinding.bindTimeoutSeconds"])
@pytest.mark.parametrize("value", [-1, "-1"])
def test_less_than_nothing_is_refused(key: str, value: object) -> None:
    conf = PluginConf("predicates", arguments={key: value})
    with pytest.raises(ConfError, match=f"argument {key}: -1 is"):
        build(SchedulerConf(actions=("allocate",), tiers=((conf,),)))
