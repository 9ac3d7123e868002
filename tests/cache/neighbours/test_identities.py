"""Rules about other pods see those that have no rules themselves, by the labels they ask for."""

from dataclasses import replace

import pytest

from app.cache.cluster import ClusterCache
from app.cache.snapshots.snapshotter import Snapshotter
from app.core.planner import plan
from app.model.gang import Gang
from app.model.ids import GroupKey, NodeName, PodUid, group_key
from app.model.job import Template
from app.model.plan import Plan
from app.model.pod import GROUP_ANNOTATION, TASK_SPEC
from app.model.shape import LabelSelector, Operator, PodShape, PodTerm, Requirement
from app.model.snapshot import Veto
from app.model.workload import GroupPhase, PodGroup
from tests.builders import make_node, make_pod, make_queue, make_shape
from tests.core.actions.rigs import HELM, policies

HOST = "kubernetes.io/hostname"
PLAIN = make_shape()
KEY = group_key("default", "g")


def of_app(app: str) -> tuple[PodTerm, ...]:
    """A term that selects pods of that application."""
    selector = LabelSelector((Requirement("app", Operator.IN, (app,)),))
    return (PodTerm(HOST, selector, ("default",)),)


def rule(*, near: str = "", apart: str = "", app: str = "") -> PodShape:
    """The shape of a pod of ``app`` that must be near one application, or apart from one."""
    return make_shape(
        pod_affinity=of_app(near) if near else (),
        pod_anti_affinity=of_app(apart) if apart else (),
        spread_identity=("default", (("app", app),) if app else ()),
    )


class Rig:
    """Two nodes and their planner; the group ``g``."""

    def __init__(self) -> None:
        self.cache = ClusterCache(schedulers=frozenset({"volcano"}))
        self._snapshotter = Snapshotter(self.cache)
        self.vetoes: frozenset[Veto] = frozenset()
        for name in ("n0", "n1"):
            self.cache.set_node(make_node(name, labels={HOST: name}))
        for name in ("root", "default"):
            self.cache.set_queue(make_queue(name))

    def group(self, name: str = "g", *, minimum: int = 1) -> None:
        """A group that was let in."""
        self.cache.set_group(
            PodGroup("default", name, f"uid-{name}", "1", 0.0, minimum, phase=GroupPhase.INQUEUE)
        )

    def pod(self, name: str, shape: PodShape, *, app: str = "", node: str = "") -> None:
        """A member of ``g``, or on ``node`` somebody else's."""
        labels = {"app": app, TASK_SPEC: app} if app else {}
        annotations = {} if node else {GROUP_ANNOTATION: "g"}
        scheduler = "default-scheduler" if node else "volcano"
        pod = make_pod(
            name,
            shape=shape,
            labels=labels,
            annotations=annotations,
            node=NodeName(node),
            scheduler=scheduler,
        )
        self.cache.set_pod(pod, now=0.0)

    def plan(self) -> Plan:
        """The next cycle's decisions, published."""
        snapshot = self._snapshotter.snapshot(vetoes=self.vetoes)
        decided = plan(snapshot, policies(HELM), now=0.0, shapes=None)
        for placed in decided.placed:
            assert self.cache.reservations.reserve(placed, now=0.0)
        return decided

    def view(self, key: GroupKey = KEY) -> Gang:
        """The gang as the planner sees it."""
        return self._snapshotter.snapshot().gangs[key]

    def where(self, *names: str) -> list[str]:
        """The nodes of members."""
        return [self.cache.members[PodUid(f"uid-{name}")].node for name in names]


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.group()
    return rig


def test_members_may_want_to_be_near_one_that_wants_nothing(rig: Rig) -> None:
    rig.group(minimum=3)
    rig.pod("server-0", PLAIN, app="ps")
    rig.pod("near-0", rule(near="ps", app="worker"), app="worker")
    rig.pod("near-1", rule(near="ps", app="worker"), app="worker")
    rig.plan()
    assert rig.where("server-0", "near-0", "near-1") == ["n0", "n0", "n0"]


def test_members_keep_apart_from_one_that_wants_nothing(rig: Rig) -> None:
    rig.group(minimum=2)
    rig.pod("ps-0", PLAIN, app="ps")
    rig.pod("worker", rule(apart="ps", app="worker"), app="worker")
    rig.plan()
    assert sorted(rig.where("ps-0", "worker")) == ["n0", "n1"]


@pytest.mark.parametrize(("theirs", "left"), [("n0", "n1"), ("n1", "n0")])
def test_a_pod_that_wants_nothing_keeps_off_those_that_do_not_want_it(
    rig: Rig, theirs: str, left: str
) -> None:
    rig.pod("lonely", rule(apart="web"), node=theirs)
    rig.pod("web", PLAIN, app="web")
    rig.plan()
    assert rig.where("web") == [left]


def test_where_no_pod_wants_it_no_room_is_reserved(rig: Rig) -> None:
    for node in ("n0", "n1"):
        rig.pod(f"lonely-{node}", rule(apart="web"), node=node)
    rig.pod("web", PLAIN, app="web")
    refusal = rig.plan().refused[KEY]
    assert [count.text for count in refusal.nodes] == [
        "node(s) didn't satisfy existing pods anti-affinity rules"
    ]


def test_room_that_is_kept_for_a_member_keeps_others_away(rig: Rig) -> None:
    apart = rule(apart="x", app="x")
    group = rig.cache.groups[KEY]
    group.templates = {"w": Template(apart, {"app": "x"})}
    rig.cache.registry.changed(group)
    rig.plan()
    [slot] = group.slots.values()
    rig.group("later")
    rig.cache.set_pod(
        make_pod("x", shape=apart, labels={"app": "x"}, annotations={GROUP_ANNOTATION: "later"}),
        now=0.0,
    )
    rig.plan()
    assert {slot.node, *rig.where("x")} == {"n0", "n1"}


@pytest.mark.parametrize("seen", [0, 1])
def test_room_is_kept_near_a_server_that_nobody_has_created_yet(rig: Rig, seen: int) -> None:
    """What its job says of its labels is all that is known; it comes before those near it."""
    near = rule(near="ps", app="a-worker")
    rig.group(minimum=3)
    group = rig.cache.groups[KEY]
    group.templates = {"a-worker": Template(near, {}), "ps": Template(PLAIN, {"app": "ps"})}
    rig.cache.registry.changed(group)
    for number in range(seen):
        rig.pod(f"w-{number}", near, app="a-worker")
    rig.plan()
    nodes = [slot.node for slot in group.slots.values()] + rig.where(*("w-0",)[:seen])
    assert nodes == ["n0"] * 3


def test_labels_nobody_asks_for_make_no_difference(rig: Rig) -> None:
    for number in range(3):
        labels = {"app": "web", "number": str(number)}
        annotations = {GROUP_ANNOTATION: "g"}
        pod = make_pod(f"p{number}", labels=labels, annotations=annotations, shape=PLAIN)
        rig.cache.set_pod(pod, now=0.0)
    assert {task.shape.spread_identity for task in rig.view().waiting} == {None}
    rig.pod("lonely", rule(apart="web"), node="n0")
    shapes = [task.shape for task in rig.view().waiting]
    assert shapes[0].spread_identity == ("default", (("app", "web"),))
    assert all(shape is shapes[0] for shape in shapes)
    rig.cache.drop_pod(PodUid("uid-lonely"))
    assert {task.shape.spread_identity for task in rig.view().waiting} == {None}


def test_views_are_made_anew_only_when_something_changed(rig: Rig) -> None:
    rig.pod("lonely", rule(apart="web"), node="n0")
    rig.pod("p", PLAIN, app="web")
    before = rig.view()
    assert rig.view() is before
    rig.pod("q", PLAIN, app="web")
    assert {task.name for task in rig.view().waiting} == {"p", "q"}


def test_a_veto_holds_for_pods_that_rules_look_at(rig: Rig) -> None:
    rig.pod("lonely", rule(apart="db"), node="n1")
    rig.pod("web", PLAIN, app="web")
    rig.vetoes = frozenset({Veto(replace(PLAIN), NodeName("n0"))})
    rig.plan()
    assert rig.where("web") == ["n1"]
