"""Hypothesis strategies: small clusters with every kind of rule, made to collide."""

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
from hypothesis import strategies as st

from app.core.policy import Scoring
from app.model.gang import Task
from app.model.ids import NodeName, PodUid
from app.model.node import Node, Taint
from app.model.shape import (
    HostPort,
    LabelSelector,
    NodeTerm,
    Operator,
    PodShape,
    PodTerm,
    Requirement,
    Spread,
    Toleration,
)
from app.model.snapshot import Snapshot, Veto
from app.model.workload import Namespace
from tests.builders import make_amounts, make_node, make_pod, make_snapshot, make_table, make_task
from tests.placed_pods import PlacedPod, make_placed_pods

GPU = "example.com/gpu"
IMAGES = ("nginx:1", "tf:2", "busybox:latest")
APPS = ("web", "db")
NAMESPACES = ("default", "other")
KEYS = ("zone", "rack", "kubernetes.io/hostname")


class Theme(Enum):
    """What an example is about: one family of rules at a time meets often, all at once seldom."""

    NODES = "selectors, taints, images, vetoes"
    ROOM = "resources and scores of room"
    PORTS = "host ports"
    PODS = "inter-pod affinity and anti-affinity"
    SPREAD = "topology spread"
    ALL = "everything"


values = st.sampled_from(("1", "5"))
label_maps = st.fixed_dictionaries({"zone": values}, optional={"rack": values, "disk": values})
taints = st.builds(
    Taint,
    key=st.sampled_from(("dedicated", "spot")),
    value=st.sampled_from(("x", "y")),
    effect=st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute")),
)


@st.composite
def nodes(draw: st.DrawFn, name: str, theme: Theme) -> Node:
    """A node; only the themes of nodes and room make it hard to use."""
    about_nodes = theme in (Theme.NODES, Theme.ALL)
    about_room = theme in (Theme.ROOM, Theme.ALL)
    tainted = about_nodes or theme is Theme.SPREAD
    return make_node(
        name,
        cpu=draw(st.sampled_from((2000, 4000, 0))) if about_room else 9000,
        memory=draw(st.sampled_from((1 << 30, 1 << 20))) if about_room else 1 << 31,
        pods=draw(st.sampled_from((5, 2, 1))) if about_room else 20,
        extra=draw(st.sampled_from(({GPU: 2}, {}))) if about_room else {},
        labels={"kubernetes.io/hostname": name} | draw(label_maps),
        taints=tuple(draw(st.lists(taints, max_size=2))) if tainted else (),
        unschedulable=about_nodes and draw(st.integers(0, 7)) == 7,
        ready=not about_nodes or draw(st.integers(0, 7)) != 7,
        images=draw(st.dictionaries(st.sampled_from(IMAGES), st.integers(0, 2 << 30)))
        if about_nodes
        else None,
    )


operators = st.sampled_from(tuple(Operator))
requirements = st.builds(
    Requirement,
    key=st.sampled_from(("zone", "rack", "disk")),
    operator=operators,
    values=st.lists(values, min_size=1, max_size=2).map(tuple),
)
name_fields = st.builds(
    Requirement,
    key=st.just("metadata.name"),
    operator=st.sampled_from((Operator.IN, Operator.NOT_IN)),
    values=st.sampled_from(("n0", "n1", "n2")).map(lambda name: (name,)),
)
node_terms = st.builds(
    NodeTerm,
    expressions=st.lists(requirements, max_size=2).map(tuple),
    fields=st.lists(name_fields, max_size=1).map(tuple),
)
app_selectors = st.builds(
    lambda operator, apps: LabelSelector((Requirement("app", operator, tuple(apps)),)),
    st.sampled_from((Operator.IN, Operator.NOT_IN, Operator.EXISTS)),
    st.lists(st.sampled_from(APPS), min_size=1, max_size=2),
)
selectors = st.one_of(app_selectors, app_selectors, st.just(LabelSelector()), st.none())
namespace_selectors = st.one_of(
    st.none(),
    st.none(),
    st.just(LabelSelector()),
    st.just(LabelSelector((Requirement("team", Operator.IN, ("red",)),))),
)
pod_terms = st.builds(
    PodTerm,
    topology_key=st.sampled_from(KEYS),
    selector=selectors,
    namespaces=st.sampled_from((("default",), ("other",), ("default", "other"), ())),
    namespace_selector=namespace_selectors,
)
spreads = st.builds(
    Spread,
    max_skew=st.integers(1, 2),
    topology_key=st.sampled_from(KEYS),
    hard=st.booleans(),
    selector=selectors,
    min_domains=st.sampled_from((1, 1, 3)),
    honor_affinity=st.booleans(),
    honor_taints=st.booleans(),
)
tolerations = st.builds(
    Toleration,
    key=st.sampled_from(("dedicated", "spot", "node.kubernetes.io/unschedulable")),
    exists=st.booleans(),
    value=st.sampled_from(("x", "y")),
    effect=st.sampled_from(("", "NoSchedule", "PreferNoSchedule")),
) | st.just(Toleration(exists=True))
ports = st.builds(
    HostPort,
    ip=st.sampled_from(("", "0.0.0.0", "10.0.0.1", "10.0.0.2")),
    protocol=st.sampled_from(("TCP", "UDP")),
    port=st.sampled_from((80, 81)),
)
weights = st.integers(1, 3)


def some(
    strategy: st.SearchStrategy[Any], *, on: bool, most: int = 2
) -> st.SearchStrategy[tuple[Any, ...]]:
    """Nothing, or (when ``on``, mostly) up to ``most`` of ``strategy``."""
    if not on:
        return st.just(())
    return st.lists(strategy, max_size=most).map(tuple)


@st.composite
def shapes(draw: st.DrawFn, theme: Theme) -> PodShape:
    """A shape with rules of ``theme``; it has an identity, as when a rule looks at pods."""
    about = {each: theme in (each, Theme.ALL) for each in Theme}
    namespace, app = draw(st.sampled_from(NAMESPACES)), draw(st.sampled_from((*APPS, "")))
    signed = st.tuples(weights | weights.map(lambda w: -w), pod_terms)
    room, on_nodes = about[Theme.ROOM], about[Theme.NODES]
    tolerant = on_nodes or about[Theme.SPREAD]
    wish = st.lists(node_terms, max_size=2).map(tuple)
    return PodShape(
        requests=make_amounts(
            cpu=draw(st.sampled_from((0, 500, 1500))) if room else 100,
            memory=draw(st.sampled_from((0, 1 << 19, 1 << 28))) if room else 1 << 10,
            pods=1,
            **(draw(st.sampled_from(({}, {GPU: 1}))) if room else {}),
        ),
        node_selector=draw(some(st.tuples(st.just("zone"), values), on=tolerant, most=1)),
        required_terms=draw(st.none() | wish) if on_nodes else None,
        preferred_terms=draw(some(st.tuples(weights, node_terms), on=on_nodes)),
        tolerations=draw(some(tolerations, on=tolerant)),
        host_ports=draw(some(ports, on=about[Theme.PORTS])),
        pod_affinity=draw(some(pod_terms, on=about[Theme.PODS])),
        pod_anti_affinity=draw(some(pod_terms, on=about[Theme.PODS])),
        preferred_pods=draw(some(signed, on=about[Theme.PODS])),
        spread=draw(some(spreads, on=about[Theme.SPREAD])),
        images=draw(some(st.sampled_from(("nginx:1", "tf:2", "busybox")), on=on_nodes)),
        spread_identity=(namespace, (("app", app),) if app else ()),
    )


@st.composite
def placed_pods(draw: st.DrawFn, count: int, theme: Theme) -> tuple[PlacedPod, ...]:
    """Pods on the first ``count`` nodes, or on one that is gone (in the row after them)."""
    found = []
    for number in range(draw(st.integers(0, 5))):
        shape = draw(shapes(theme))
        assert shape.spread_identity is not None
        namespace, labels = shape.spread_identity
        pod = make_pod(
            f"r{number}",
            uid=PodUid(f"r{number}"),
            namespace=namespace,
            labels=dict(labels),
            shape=shape,
            deleting=draw(st.integers(0, 3)) == 3,
        )
        found.append(PlacedPod.of(pod, draw(st.integers(0, count))))
    return tuple(found)


@st.composite
def snapshots(draw: st.DrawFn, theme: Theme, known: Sequence[PodShape] = ()) -> Snapshot:
    """A cluster of a few nodes with placed pods; vetoes are about ``known`` shapes."""
    count = draw(st.integers(1, 6))
    table = make_table(
        tuple(draw(nodes(f"n{i}", theme)) for i in range(count)),
        axis=make_snapshot().axis.covering([GPU]),
    )
    living = draw(placed_pods(count, theme))
    used = np.zeros_like(table.allocatable)
    listening: dict[int, frozenset[HostPort]] = {}
    for placed_pod in (one for one in living if one.node < count):
        shape = placed_pod.shape
        used[placed_pod.node] += table.axis.vector(shape.requests)
        if shape.host_ports:
            before = listening.get(placed_pod.node, frozenset())
            listening[placed_pod.node] = before | frozenset(shape.host_ports)
    vetoes = [
        Veto(shape, NodeName(f"n{draw(st.integers(0, count))}"))
        for shape in known
        if theme is Theme.NODES and draw(st.integers(0, 3)) == 3
    ]
    return make_snapshot(
        table=table,
        used=used,
        placed_pods=make_placed_pods(living),
        inter_pod=True,
        ports=listening,
        vetoes=frozenset(vetoes),
        namespaces={"other": Namespace("other", {"team": "red"}, {})},
    )


def tasks_of(shape: PodShape, snapshot: Snapshot, name: str, **fields: Any) -> Task:
    """A task of ``shape`` on the snapshot's axis."""
    return make_task(name, shape=shape, axis=snapshot.axis, **fields)


scorings = st.builds(
    Scoring,
    least_requested=st.integers(0, 2),
    most_requested=st.integers(0, 2),
    balanced=st.integers(0, 2),
    node_affinity=st.integers(0, 2),
    pod_affinity=st.integers(0, 2),
    taint_toleration=st.integers(0, 2),
    image_locality=st.integers(0, 2),
    topology_spread=st.integers(0, 2),
    binpack_weight=st.integers(0, 2),
    binpack=st.dictionaries(st.sampled_from(("cpu", "memory", GPU, "absent")), st.integers(0, 3)),
)
