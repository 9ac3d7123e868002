"""Rules about the node itself."""

import pytest

from app.core.policy import Predicates
from app.model.ids import NodeName
from app.model.node import Taint
from app.model.shape import NodeTerm, Operator, PodShape, Requirement, Toleration
from app.model.snapshot import Veto
from tests.builders import make_node, make_shape
from tests.core.placement.rigs import Rig

NODES = (
    make_node("a", labels={"disk": "ssd", "gen": "1"}),
    make_node("b", labels={"disk": "hdd", "gen": "12"}),
    make_node("c", labels={"gen": "x"}),
)
GPU = Taint("gpu", "yes", "NoSchedule")


def affinity(*requirements: Requirement) -> PodShape:
    return make_shape(required_terms=(NodeTerm(expressions=requirements),))


def require(key: str, operator: Operator, *values: str) -> Requirement:
    return Requirement(key, operator, values)


@pytest.mark.parametrize(
    ("shape", "names"),
    [
        (make_shape(), ["a", "b", "c"]),
        (make_shape(node_selector=(("disk", "ssd"),)), ["a"]),
        (make_shape(node_selector=(("disk", "tape"),)), []),
        (affinity(require("disk", Operator.IN, "ssd", "hdd")), ["a", "b"]),
        (affinity(require("disk", Operator.NOT_IN, "ssd")), ["b", "c"]),
        (affinity(require("disk", Operator.EXISTS)), ["a", "b"]),
        (affinity(require("disk", Operator.DOES_NOT_EXIST)), ["c"]),
        (affinity(require("gen", Operator.GREATER, "2")), ["b"]),
        (affinity(require("gen", Operator.LESS, "2")), ["a"]),
        (make_shape(required_terms=()), []),
        (make_shape(required_terms=(NodeTerm(),)), []),
        (
            make_shape(
                required_terms=(
                    NodeTerm(fields=(require("metadata.name", Operator.IN, "c"),)),
                    NodeTerm((require("disk", Operator.IN, "hdd"),)),
                )
            ),
            ["b", "c"],
        ),
        (
            make_shape(
                required_terms=(
                    NodeTerm(
                        (require("disk", Operator.EXISTS),),
                        (require("metadata.name", Operator.NOT_IN, "a"),),
                    ),
                )
            ),
            ["b"],
        ),
    ],
    ids=lambda value: ",".join(value) or "none" if isinstance(value, list) else "",
)
def test_selectors_and_affinity_choose_nodes(shape: PodShape, names: list[str]) -> None:
    assert Rig(NODES).names(shape) == names


@pytest.mark.parametrize("label", ["6", "06", "1000", "+6", "9223372036854775807", f"{6:0>5000}"])
def test_what_go_reads_as_an_integer_is_compared(label: str) -> None:
    node = make_node("a", labels={"gen": label})
    assert Rig((node,)).names(affinity(require("gen", Operator.GREATER, "5"))) == ["a"]
    assert Rig((node,)).names(affinity(require("gen", Operator.LESS, "5"))) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "1_000",
        " 6",
        "6\n",
        "\u0666",
        "\uff16",
        "6.0",
        "0x6",
        "+-6",
        "+",
        "9223372036854775808",
    ],
)
def test_what_go_does_not_read_as_an_integer_satisfies_no_comparison(text: str) -> None:
    labelled, plain = make_node("a", labels={"gen": text}), make_node("b", labels={"gen": "7"})
    for operator in (Operator.GREATER, Operator.LESS):
        assert Rig((labelled,)).names(affinity(require("gen", operator, "5"))) == []
        assert Rig((plain,)).names(affinity(require("gen", operator, text))) == []


def test_negative_integers_reach_as_far_as_64_bits() -> None:
    least, beyond = "-9223372036854775808", "-9223372036854775809"
    nodes = [make_node(name, labels={"gen": gen}) for name, gen in (("a", least), ("b", beyond))]
    assert Rig(tuple(nodes)).names(affinity(require("gen", Operator.LESS, "-5"))) == ["a"]


@pytest.mark.parametrize(
    ("toleration", "names"),
    [
        (None, ["plain"]),
        (Toleration("gpu", value="yes"), ["gpu", "plain"]),
        (Toleration("gpu", value="no"), ["plain"]),
        (Toleration("gpu", exists=True, effect="NoExecute"), ["plain"]),
        (Toleration(exists=True), ["cordoned", "gpu", "plain"]),
        (
            Toleration("node.kubernetes.io/unschedulable", exists=True),
            ["cordoned", "plain"],
        ),
    ],
)
def test_taints_and_cordons_repel_who_does_not_tolerate_them(
    toleration: Toleration | None, names: list[str]
) -> None:
    rig = Rig(
        (
            make_node("plain", taints=(Taint("soft", "", "PreferNoSchedule"),)),
            make_node("gpu", taints=(GPU,)),
            make_node("cordoned", unschedulable=True),
            make_node("gone", ready=False),
        )
    )
    tolerations = () if toleration is None else (toleration,)
    assert rig.names(make_shape(tolerations=tolerations)) == names


def test_switched_off_predicates_refuse_no_node_but_a_cordoned_one() -> None:
    """There kube-scheduler lets nobody go."""
    nodes = (make_node("a", taints=(GPU,)), make_node("b", unschedulable=True))
    elsewhere = make_shape(node_selector=(("disk", "ssd"),))
    assert Rig(nodes, predicates=Predicates(enabled=False)).names(elsewhere) == ["a"]
    assert Rig(nodes, predicates=Predicates(taints=False)).names() == ["a"]
    assert Rig(NODES, predicates=Predicates(node_affinity=False)).names(elsewhere) == [
        "a",
        "b",
        "c",
    ]


def test_a_vetoed_node_is_left_out_for_that_shape_only() -> None:
    shape = make_shape(cpu=100)
    vetoes = frozenset({Veto(shape, NodeName("a")), Veto(shape, NodeName("unknown"))})
    rig = Rig(NODES, vetoes=vetoes)
    assert rig.names(shape) == ["b", "c"]
    assert rig.names(make_shape(cpu=200)) == ["a", "b", "c"]
    assert not rig.placer.fits(rig.gang, rig.task(shape), 0)


def test_a_pin_is_obeyed_and_a_nomination_tried_first() -> None:
    rig = Rig(NODES)
    assert rig.find(pinned=NodeName("b")) == "b"
    assert rig.find(pinned=NodeName("unknown")) is None
    assert rig.names(pinned=NodeName("unknown")) == []
    assert not rig.placer.fits(rig.gang, rig.task(pinned=NodeName("b")), 0)
    assert rig.find(nominated=NodeName("c")) == "c"
    rig.put(make_shape(cpu=8000), "c")
    assert rig.find(nominated=NodeName("c")) == "a"
    assert rig.find(pinned=NodeName("c")) is None


def test_only_requested_resources_must_be_free() -> None:
    rig = Rig((make_node("a", cpu=1000, pods=3),))
    rig.put(make_shape(cpu=2000), "a")
    assert rig.names(make_shape(cpu=1)) == []
    assert rig.names(make_shape(cpu=0, memory=0)) == ["a"]
    rig.put(make_shape(cpu=0), "a")
    rig.put(make_shape(cpu=0), "a")
    assert rig.names(make_shape(cpu=0, memory=0)) == []


def test_an_empty_cluster_has_no_node() -> None:
    rig = Rig(())
    assert rig.find() is None
    assert rig.verdicts() == {}
