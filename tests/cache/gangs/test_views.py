"""What the planner is shown of a pod."""

from collections.abc import Mapping
from typing import Any

import pytest

from app.cache.cluster import ClusterCache
from app.cache.gangs.views import task_priority
from app.model.gang import Gang
from app.model.ids import NodeName, group_key
from app.model.job import Template
from app.model.parts import SubGroupPolicy
from app.model.pod import GROUP_ANNOTATION, PREEMPTABLE
from app.model.topology import PREFERRED, REQUIRED, NetworkTopology, TopologyMode
from app.model.workload import EVICTION_ENDS, PodGroup, PriorityClass
from tests.builders import make_pod, make_shape


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


NOTHING: Mapping[str, str] = {}


class Rig:
    """One group ``g`` of the vcjob ``j``, and PriorityClasses."""

    def __init__(self) -> None:
        self.cache = ClusterCache(schedulers=frozenset({"volcano"}))

    def group(self, *, priority_class: str = "", ends: str = "", **said: Any) -> None:
        self.cache.set_group(
            PodGroup(
                "default",
                "g",
                uid="uid-g",
                resource_version="1",
                created=0.0,
                min_member=1,
                priority_class=priority_class,
                **({"annotations": {EVICTION_ENDS: ends} if ends else {}} | said),
                owner_uid="j",
            )
        )

    def job(self, **said: Any) -> None:
        self.cache.registry.set_template("j", {"w": Template(make_shape(), {}, **said)})

    def pod(self, name: str, *, says: Mapping[str, str] = NOTHING, **fields: Any) -> None:
        annotations = {GROUP_ANNOTATION: "g", **says}
        pod = make_pod(name, scheduler="volcano", annotations=annotations, **fields)
        self.cache.set_pod(pod, now=0.0)

    def classes(self, **preempts: bool) -> None:
        for name, does in preempts.items():
            is_default = name == "everyone"
            made = PriorityClass(name, 5, is_default=is_default, preempts=does)
            self.cache.registry.set_class(made)

    @property
    def view(self) -> Gang:
        found = self.cache.registry.view(group_key("default", "g"))
        assert found is not None
        return found


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.classes(polite=False, rude=True)
    return rig


@pytest.mark.parametrize(
    ("named", "preempts"), [("polite", False), ("rude", True), ("unknown", True), ("", True)]
)
def test_a_group_preempts_unless_its_priority_class_says_never(
    rig: Rig, named: str, preempts: bool
) -> None:
    rig.group(priority_class=named)
    assert rig.view.preempts is preempts


def test_a_priority_class_that_changes_its_word_changes_what_its_groups_may_do(rig: Rig) -> None:
    rig.group(priority_class="polite")
    assert not rig.view.preempts
    rig.classes(polite=True)
    assert rig.view.preempts
    rig.classes(polite=False)
    assert not rig.view.preempts


def test_the_default_priority_class_speaks_for_groups_that_name_none(rig: Rig) -> None:
    rig.group()
    rig.classes(everyone=False)
    assert not rig.view.preempts
    rig.group(priority_class="rude")
    assert rig.view.preempts


def test_one_waiting_member_that_never_preempts_speaks_for_its_gang(rig: Rig) -> None:
    rig.group()
    rig.pod("a")
    assert rig.view.preempts
    rig.pod("b", preempts=False)
    assert not rig.view.preempts


def test_a_member_that_has_a_node_does_not_speak_for_those_that_wait(rig: Rig) -> None:
    rig.group()
    rig.pod("a", preempts=False, node=NodeName("n1"), phase="Running")
    rig.pod("b")
    assert rig.view.preempts


def test_the_template_of_a_member_to_come_speaks_for_its_gang(rig: Rig) -> None:
    rig.group()
    rig.job(preempts=False)
    assert not rig.view.preempts
    rig.job(priority_class="polite")
    assert not rig.view.preempts
    rig.job(priority_class="rude")
    assert rig.view.preempts


def test_a_group_whose_owner_says_so_ends_whole(rig: Rig) -> None:
    rig.group()
    assert not rig.view.ends_whole
    rig.group(ends="job")
    assert rig.view.ends_whole
    rig.group(ends="nothing")
    assert not rig.view.ends_whole


@pytest.mark.parametrize(
    ("annotations", "labels", "says"),
    [
        ({}, {}, None),
        ({PREEMPTABLE: "false"}, {}, False),
        ({}, {PREEMPTABLE: "false"}, False),
        ({PREEMPTABLE: "true"}, {PREEMPTABLE: "false"}, True),
        ({PREEMPTABLE: "perhaps"}, {PREEMPTABLE: "true"}, False),
    ],
)
def test_a_group_says_by_annotation_or_label_whether_its_members_may_be_evicted(
    rig: Rig, annotations: dict[str, str], labels: dict[str, str], says: bool | None
) -> None:
    rig.group(annotations=annotations, labels=labels)
    assert rig.view.preemptable is says
    rig.group()
    assert rig.view.preemptable is None


RACK = NetworkTopology(TopologyMode.HARD, highest_tier_name="rack")
NEAR = NetworkTopology(TopologyMode.SOFT, highest_tier_name="rack")


@pytest.mark.parametrize(
    ("says", "asked"),
    [
        ([{}], None),
        ([{REQUIRED: "rack"}], RACK),
        ([{PREFERRED: "rack"}], NEAR),
        ([{REQUIRED: "rack", PREFERRED: "zone"}], RACK),
        ([{REQUIRED: ""}], None),
        ([{}, {REQUIRED: "rack"}], RACK),
        ([{PREFERRED: "a"}, {REQUIRED: "rack"}], RACK),
        ([{REQUIRED: "rack"}, {PREFERRED: "a"}], RACK),
        ([{REQUIRED: "zone"}, {REQUIRED: "rack"}], RACK),
    ],
    ids=str,
)
def test_pods_with_kueues_annotations_ask_for_their_group(
    rig: Rig, says: list[dict[str, str]], asked: NetworkTopology | None
) -> None:
    rig.group()
    for number, each in enumerate(says):
        rig.pod(f"p{number}", says=each)
    assert rig.view.topology == asked


def test_what_a_pod_group_asks_of_the_network_goes_before_what_its_pods_do(rig: Rig) -> None:
    of_group = NetworkTopology(TopologyMode.HARD, 2)
    rig.group(topology=of_group)
    rig.pod("p", says={REQUIRED: "rack"})
    assert rig.view.topology == of_group


def test_what_a_pod_group_asks_of_sub_groups_goes_before_what_its_pods_do(rig: Rig) -> None:
    rig.group(sub_groups=(SubGroupPolicy("s", keys=("k",), topology=RACK),))
    rig.pod("p", says={REQUIRED: "rack"})
    assert rig.view.topology is None


def test_a_pod_asks_of_the_network_as_long_as_it_is_there(rig: Rig) -> None:
    rig.group()
    rig.pod("p", says={REQUIRED: "rack"}, node=NodeName("n"), phase="Running")
    assert rig.view.topology == RACK
    rig.pod("q")
    rig.cache.drop_pod(make_pod("p").uid)
    assert rig.view.topology is None


def test_a_template_asks_of_the_network_before_its_pods_are_there(rig: Rig) -> None:
    rig.job(topology=RACK)
    rig.group()
    assert rig.view.topology == RACK
