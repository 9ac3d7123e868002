"""What nodes are worth."""

import pytest

from app.core.policy import Scoring
from app.model.node import Taint
from app.model.shape import NodeTerm, Operator, PodShape, Requirement, Toleration
from tests.builders import GIB, make_node, make_shape
from tests.core.placement.rigs import Rig

MIB = 1 << 20
HALF = make_node("half", cpu=2000, memory=4 * GIB)
FULL = make_node("wide", cpu=4000, memory=16 * GIB)
TASK = make_shape(cpu=1000, memory=GIB)


@pytest.mark.parametrize(
    ("scoring", "expected"),
    [
        (Scoring(least_requested=1), [62.5, 84.375]),
        (Scoring(least_requested=3), [187.5, 253.125]),
        (Scoring(most_requested=1), [37.5, 15.625]),
        (Scoring(balanced=1), [87.5, 90.625]),
        (Scoring(balanced=-1), [-87.5, -90.625]),
        (Scoring(least_requested=1, most_requested=1, balanced=-1), [12.5, 9.375]),
        (Scoring(binpack_weight=1, binpack={"cpu": 1, "memory": 1}), [37.5, 15.625]),
        (Scoring(binpack_weight=2, binpack={"cpu": 3, "memory": 1}), [87.5, 40.625]),
        (Scoring(binpack_weight=1, binpack={"memory": 1, "other": 9}), [25.0, 6.25]),
        (Scoring(binpack_weight=1, binpack={"cpu": 0, "pods": 0}), [0.0, 0.0]),
        (Scoring(binpack={"cpu": 1}), [0.0, 0.0]),
        (Scoring(least_requested=1, balanced=1), [150.0, 175.0]),
        (Scoring(), [0.0, 0.0]),
    ],
    ids=str,
)
def test_room_is_scored_by_the_share_left(scoring: Scoring, expected: list[float]) -> None:
    assert Rig((HALF, FULL), scoring=scoring).scores(TASK) == pytest.approx(expected, abs=1e-3)


def test_binpack_counts_scarce_resources_that_are_asked_for() -> None:
    gpus = make_node("g", extra={"gpu": 4})
    rig = Rig((gpus,), scoring=Scoring(binpack_weight=1, binpack={"gpu": 5, "cpu": 0}))
    wanting = PodShape(requests=(("cpu", 1000), ("gpu", 1), ("pods", 1)))
    assert rig.scores(wanting) == [25.0]
    assert rig.scores(TASK) == [0.0]
    rig.put(wanting, "g")
    assert rig.scores(wanting) == [50.0]


def test_tasks_without_requests_spread_by_number() -> None:
    nodes = (make_node("a"), make_node("b"), make_node("c"))
    rig = Rig(nodes, scoring=Scoring(least_requested=1, balanced=1))
    nothing = make_shape(cpu=0, memory=0)
    assert [rig.put_found(nothing) for _ in range(4)] == ["a", "b", "c", "a"]


def test_least_requested_spreads_and_binpack_fills() -> None:
    nodes = (make_node("a"), make_node("b"))
    spreading = Rig(nodes, scoring=Scoring(least_requested=1))
    assert [spreading.put_found() for _ in range(4)] == ["a", "b", "a", "b"]
    packing = Rig(nodes, scoring=Scoring(binpack_weight=1, binpack={"cpu": 1}))
    assert [packing.put_found() for _ in range(9)] == ["a"] * 8 + ["b"]


def test_preferred_node_affinity_is_scaled_to_the_best_usable_node() -> None:
    def prefers(weight: int, disk: str) -> tuple[int, NodeTerm]:
        return weight, NodeTerm((Requirement("disk", Operator.IN, (disk,)),))

    nodes = (
        make_node("a", labels={"disk": "ssd"}),
        make_node("b", labels={"disk": "hdd"}),
        make_node("c", labels={"disk": "tape"}),
        make_node("d", labels={"disk": "nvme"}, unschedulable=True),
    )
    rig = Rig(nodes, scoring=Scoring(node_affinity=2))
    terms = (prefers(40, "ssd"), prefers(10, "hdd"), prefers(80, "nvme"), (90, NodeTerm()))
    assert rig.scores(make_shape(preferred_terms=terms))[:3] == [200.0, 50.0, 0.0]
    assert rig.scores(make_shape()) == [0.0] * 4


def test_soft_taints_cost_in_proportion() -> None:
    def soft(*keys: str) -> tuple[Taint, ...]:
        return tuple(Taint(key, "", "PreferNoSchedule") for key in keys)

    nodes = (
        make_node("a", taints=soft("x", "y")),
        make_node("b", taints=soft("x")),
        make_node("c"),
    )
    rig = Rig(nodes, scoring=Scoring(taint_toleration=3))
    assert rig.scores() == [0.0, 150.0, 300.0]
    assert rig.scores(make_shape(tolerations=(Toleration("x", exists=True),))) == [
        0.0,
        300.0,
        300.0,
    ]
    assert rig.find() == "c"


def test_images_count_by_size_and_how_common_they_are() -> None:
    nodes = (
        make_node("a", images={"tf:latest": 2000 * MIB}),
        make_node("b", images={"nginx:1": 100 * MIB}),
        make_node("c"),
        make_node("d", images={"nginx:1": 100 * MIB}),
    )
    rig = Rig(nodes, scoring=Scoring(image_locality=1))
    scale = 1000 - 23
    assert rig.scores(make_shape(images=("tf",))) == [round(100 * (500 - 23) / scale, 3), 0, 0, 0]
    nginx = round(100 * (50 - 23) / scale, 3)
    assert rig.scores(make_shape(images=("nginx:1",))) == [0, nginx, 0, nginx]
    assert rig.scores(make_shape(images=("registry:5000/nginx",))) == [0.0] * 4


def test_preferences_taints_and_images_add_up() -> None:
    nodes = (
        make_node("a", labels={"disk": "ssd"}, taints=(Taint("x", "", "PreferNoSchedule"),)),
        make_node("b", images={"tf:latest": 3000 * MIB}),
    )
    term = NodeTerm((Requirement("disk", Operator.IN, ("ssd",)),))
    rig = Rig(nodes, scoring=Scoring(node_affinity=2, taint_toleration=3, image_locality=1))
    shape = make_shape(preferred_terms=((10, term),), images=("tf",))
    assert rig.scores(shape) == [200.0, 300.0 + 100.0]


def test_scores_are_given_for_nodes_that_are_full_too() -> None:
    rig = Rig((HALF, FULL), scoring=Scoring(least_requested=1))
    rig.put(make_shape(cpu=2000), "half")
    assert rig.find(TASK) == "wide"
    assert len(rig.placer.scores(rig.gang, rig.task(TASK), [1, 0])) == 2
    assert rig.placer.scores(rig.gang, rig.task(TASK), []).tolist() == []
