"""What informers saw becomes what the cache holds: every kind, in any order, broken objects too."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from msgspec.json import encode

from app.cache.cluster import ClusterCache
from app.cache.gangs.members import Stage
from app.cache.gangs.views import counts_of
from app.cache.pods import Pods
from app.kube.decode import decoder
from app.model.device_families import DeviceConfig
from app.model.disruption import DisruptionBudget
from app.model.ids import GroupKey, NodeName, PodUid, group_key
from app.model.job import JobTemplate, Template
from app.model.lease import Lease
from app.model.node import DeviceClass
from app.model.numa import NumaLayout, NumaPolicy, NumaTopology
from app.model.plan import GangPlacement, Placement
from app.model.pod import GROUP_ANNOTATION, Pod
from app.model.shape import LabelSelector
from app.model.topology import HyperNode
from app.model.volumes import CsiDriver, StorageCapacity, VolumeAttachment
from app.model.workload import GroupPhase, Namespace, PodGroup, PriorityClass, Quota
from app.service.activity import Activity
from app.service.intake.feed import MALFORMED_KEPT, Feed
from app.wire.objects.device_configs import decode_device_config
from app.wire.objects.npu_cores import ChipHealth
from tests.builders import make_amounts, make_node, make_pod, make_queue, make_shape
from tests.device_claims import asks, claim, pool, template
from tests.volumes import FAST, limit, volume
from tests.volumes import claim as volume_claim

KEY = group_key("default", "g")


class Rig:
    """A feed, its cache, and what it told."""

    def __init__(self) -> None:
        self.cache = ClusterCache(schedulers=frozenset({"volcano"}))
        self.activity = Activity(
            clock=self.clock, elected=True, namespace="ns", name="lease", identity="me"
        )
        self.told: list[set[GroupKey]] = []
        self.feed = Feed(
            self.cache, activity=self.activity, clock=self.clock, settled=self._settled
        )
        self.now = 100.0

    def clock(self) -> float:
        return self.now

    def _settled(self, changed: Iterable[GroupKey]) -> None:
        self.told.append(set(changed))

    def see(self, kind: str, *values: Any) -> None:
        for value in values:
            self.feed.upsert(kind, value)

    def relist(self, kind: str, *values: Any) -> None:
        self.feed.begin_listing(kind)
        self.see(kind, *values)
        self.feed.end_listing(kind)

    def used(self, node: str) -> int:
        """CPU taken on a node."""
        vector = self.cache.node_usage.table().allocatable[0] - self.cache.node_usage.idle(
            NodeName(node)
        )
        return int(vector[0])

    def reserve(self, pod: Pod, node: str) -> None:
        task = self.cache.members[pod.uid].task
        placed = GangPlacement(pod.group, (Placement(task, NodeName(node)),), whole=True)
        assert self.cache.reservations.reserve(placed, now=self.now)

    def shown(self) -> list[tuple[str, str, str]]:
        return [(m.kind, m.name, m.message) for m in self.feed.malformed.values()]


@pytest.fixture
def rig() -> Rig:
    return Rig()


def group(name: str = "g", **fields: Any) -> PodGroup:
    defaults: dict[str, Any] = {
        "uid": f"uid-{name}",
        "resource_version": "1",
        "created": 0.0,
        "min_member": 1,
        "phase": GroupPhase.INQUEUE,
    }
    return PodGroup("default", name, **(defaults | fields))


def member(name: str, **fields: Any) -> Pod:
    return make_pod(name, annotations={GROUP_ANNOTATION: "g"}, **fields)


def foreign(name: str, node: str) -> Pod:
    return make_pod(name, scheduler="default-scheduler", node=NodeName(node), phase="Running")


@dataclass(frozen=True)
class Case:
    """An object of a kind, and whether the cache holds it."""

    kind: str
    value: Any
    name: str
    held: Callable[[Rig], bool]
    uid: str = ""


def _is_stored(attribute: str, name: str, rig: Rig) -> bool:
    return name in getattr(rig.cache.volumes.volumes().storage, attribute)


CASES = (
    Case("nodes", make_node("n"), "n", lambda r: "n" in r.cache.node_usage.nodes),
    Case("pods", make_pod("p"), "default/p", lambda r: "uid-p" in r.cache.members, uid="uid-p"),
    Case(
        "pods",
        foreign("f", "n"),
        "default/f",
        lambda r: "uid-f" in r.cache.pods.foreign,
        uid="uid-f",
    ),
    Case(
        "nominated",
        make_pod("w", scheduler="default-scheduler", nominated=NodeName("n")),
        "default/w",
        lambda r: bool(r.cache.pods.nominated.claims(r.cache.node_usage.vector)),
        uid="uid-w",
    ),
    Case(
        "waiting",
        make_pod("s", scheduler="default-scheduler"),
        "default/s",
        lambda r: "uid-s" in r.cache.pods.waiting,
        uid="uid-s",
    ),
    Case("podgroups", group(), "default/g", lambda r: KEY in r.cache.groups, uid="uid-g"),
    Case("queues", make_queue("q"), "q", lambda r: "q" in r.cache.queues, uid="uid-q"),
    Case(
        "priorityclasses",
        PriorityClass("high", 10),
        "high",
        lambda r: "high" in r.cache.registry.classes,
        uid="uid-high",
    ),
    Case("namespaces", Namespace("ns", {}, {}), "ns", lambda r: "ns" in r.cache.namespaces),
    Case(
        "resourcequotas",
        Quota("ns", "quota", make_amounts(cpu=1), ()),
        "ns/quota",
        lambda r: "ns/quota" in r.cache.quotas,
    ),
    Case(
        "poddisruptionbudgets",
        DisruptionBudget("ns", "budget", LabelSelector(), 1),
        "ns/budget",
        lambda r: "ns/budget" in r.cache.budgets,
    ),
    Case(
        "deviceclasses",
        DeviceClass("gpu", frozenset({"example.com/gpu"})),
        "gpu",
        lambda r: "gpu" in r.cache.device_claims.classes,
    ),
    Case(
        "resourceslices",
        pool("x", node="n"),
        "slice-n",
        lambda r: "slice-n" in r.cache.device_claims.pools.slices,
    ),
    Case(
        "resourceclaims",
        claim("c", asks()),
        "default/c",
        lambda r: "default/c" in r.cache.device_claims.claims,
    ),
    Case(
        "resourceclaimtemplates",
        template("t", asks()),
        "default/t",
        lambda r: "default/t" in r.cache.device_claims.templates,
    ),
    Case(
        "hypernodes",
        HyperNode("rack", tier=1),
        "rack",
        lambda r: "rack" in r.cache.network.domains(r.cache.node_usage.table()).names,
    ),
    Case(
        "numatopologies",
        NumaTopology(NodeName("n"), NumaLayout(NumaPolicy.NONE, True, (0,), (8,)), (8,)),
        "n",
        lambda r: "n" in r.cache.numa.nodes(),
    ),
    Case(
        "deviceconfigs",
        ("kube-system/config", DeviceConfig(hami_core=True)),
        "kube-system/config",
        lambda r: is_in_use(r, "kube-system/config"),
    ),
    *(
        Case(kind, value, name, partial(_is_stored, attribute, name))
        for kind, attribute, value, name in (
            ("persistentvolumeclaims", "claims", volume_claim("c"), "default/c"),
            ("persistentvolumes", "volumes", volume("pv"), "pv"),
            ("storageclasses", "classes", FAST, "fast"),
            ("csidrivers", "drivers", CsiDriver("d"), "d"),
            ("csinodes", "nodes", limit("n", 1), "n"),
            ("volumeattachments", "attachments", VolumeAttachment("a", NodeName("n"), "pv"), "a"),
            (
                "csistoragecapacities",
                "capacities",
                StorageCapacity("ns/s", "fast", None),
                "ns/s",
            ),
        )
    ),
    Case(
        "chiphealth",
        ChipHealth("kube-system/mindx-dl-deviceinfo-n", frozenset({"Ascend310P-0"})),
        "kube-system/mindx-dl-deviceinfo-n",
        lambda r: r.cache.devices.ill_chips == {"n": {"Ascend310P-0"}},
    ),
    Case(
        "leases",
        Lease(namespace="ns", name="lease", holder="me", renew=1.0, duration=15),
        "ns/lease",
        lambda r: "ns/lease" in r.activity.leases,
    ),
    Case(
        "jobs",
        JobTemplate("uid-job", "ns", "job", {"worker": Template(make_shape(), {})}),
        "ns/job",
        lambda r: "uid-job" in r.cache.registry.templates,
        uid="uid-job",
    ),
)


def is_in_use(rig: Rig, config_map: str) -> bool:
    """Whether that ConfigMap says what the devices are, where it is to count."""
    rig.cache.use_device_config(config_map)
    return rig.cache.devices.config.hami_core


def every_kind(test: Callable[..., None]) -> Any:
    ids = [f"{case.kind}: {case.name}" for case in CASES]
    return pytest.mark.parametrize("case", CASES, ids=ids)(test)


def test_the_table_names_every_kind(rig: Rig) -> None:
    assert {case.kind for case in CASES} == set(rig.feed.kinds())


@every_kind
def test_an_object_is_held_until_it_is_deleted(rig: Rig, case: Case) -> None:
    rig.feed.upsert(case.kind, case.value)
    assert case.held(rig)
    rig.feed.remove(case.kind, case.value)
    assert not case.held(rig)


@every_kind
def test_what_a_listing_does_not_name_has_gone_meanwhile(rig: Rig, case: Case) -> None:
    rig.relist(case.kind, case.value)
    assert case.held(rig)
    rig.relist(case.kind)
    assert not case.held(rig)


@every_kind
def test_until_a_listing_is_complete_nothing_goes(rig: Rig, case: Case) -> None:
    rig.relist(case.kind, case.value)
    rig.feed.begin_listing(case.kind)
    assert case.held(rig)
    rig.feed.begin_listing(case.kind)
    rig.feed.upsert(case.kind, case.value)
    rig.feed.end_listing(case.kind)
    assert case.held(rig)


@every_kind
def test_an_object_seen_only_by_the_watch_goes_with_the_next_listing_too(
    rig: Rig, case: Case
) -> None:
    rig.relist(case.kind)
    rig.feed.upsert(case.kind, case.value)
    rig.relist(case.kind)
    assert not case.held(rig)


@every_kind
def test_an_object_that_cannot_be_read_any_more_is_kept_as_it_was(rig: Rig, case: Case) -> None:
    rig.feed.upsert(case.kind, case.value)
    rig.feed.reject(case.kind, case.name, "spec.x: is wrong", uid=case.uid)
    assert case.held(rig)
    assert rig.shown() == [(case.kind, case.name, "spec.x: is wrong")]
    rig.feed.upsert(case.kind, case.value)
    assert rig.shown() == []


@every_kind
def test_the_deletion_of_an_object_that_cannot_be_read_takes_it_out(rig: Rig, case: Case) -> None:
    rig.feed.upsert(case.kind, case.value)
    rig.feed.reject(case.kind, case.name, "spec.x: is wrong", uid=case.uid)
    rig.feed.reject(case.kind, case.name, "spec.x: is wrong", uid=case.uid, deleted=True)
    assert not case.held(rig)
    assert rig.shown() == []


@every_kind
def test_a_listing_that_names_an_object_it_cannot_show_keeps_it(rig: Rig, case: Case) -> None:
    rig.relist(case.kind, case.value)
    rig.feed.begin_listing(case.kind)
    rig.feed.reject(case.kind, case.name, "spec.x: is wrong", uid=case.uid)
    rig.feed.end_listing(case.kind)
    assert case.held(rig)
    assert len(rig.shown()) == 1
    rig.relist(case.kind)
    assert not case.held(rig)
    assert rig.shown() == []


@every_kind
def test_deleting_what_was_never_seen_does_nothing(rig: Rig, case: Case) -> None:
    rig.feed.remove(case.kind, case.value)
    rig.feed.reject(case.kind, case.name, "spec.x: is wrong", uid=case.uid, deleted=True)
    assert not case.held(rig)
    assert rig.shown() == []


def test_a_pod_that_is_deleted_unreadable_gives_its_room_and_its_reservation_back(rig: Rig) -> None:
    rig.see("nodes", make_node("n"))
    rig.see("podgroups", group())
    bound, planned = foreign("f", "n"), member("p")
    rig.see("pods", bound, planned)
    rig.reserve(planned, "n")
    assert rig.used("n") == 2000
    for pod in (bound, planned):
        rig.feed.reject("pods", pod.key, "spec: is wrong", uid=pod.uid, deleted=True)
    assert rig.used("n") == 0
    assert [(lost.uid, lost.why) for lost in rig.cache.losses.lost] == [
        ("uid-p", "pod was deleted")
    ]


def test_a_pod_that_cannot_be_read_any_more_keeps_its_room(rig: Rig) -> None:
    rig.see("nodes", make_node("n"))
    rig.see("pods", foreign("f", "n"))
    rig.feed.reject("pods", "default/f", "spec: is wrong", uid="uid-f")
    assert rig.used("n") == 1000


def test_another_pod_of_the_same_name_is_not_the_one_that_was_deleted(rig: Rig) -> None:
    """A watch that was late: the first is deleted after the second was created."""
    first, second = make_pod("p"), make_pod("p", uid=PodUid("second"))
    rig.see("pods", first, second)
    rig.feed.reject("pods", "default/p", "spec: is wrong", uid="uid-p", deleted=True)
    assert set(rig.cache.members) == {"second"}


def test_only_so_many_unreadable_objects_are_shown_and_those_stay_current(rig: Rig) -> None:
    for n in range(MALFORMED_KEPT + 10):
        rig.feed.reject("nodes", f"n{n}", "old")
    rig.feed.reject("nodes", "n0", "new")
    rig.feed.reject("nodes", "late", "new")
    messages = [message for _, _, message in rig.shown()]
    assert messages.count("old") == MALFORMED_KEPT - 1
    assert messages.count("new") == 1


def test_a_line_of_which_nothing_can_be_read_is_shown_without_a_name(rig: Rig) -> None:
    rig.feed.reject("pods", "", "JSON is malformed")
    assert rig.shown() == [("pods", "", "JSON is malformed")]


def test_the_same_event_twice_changes_nothing(rig: Rig) -> None:
    rig.see("nodes", make_node("n"), make_node("n"))
    rig.see("podgroups", group(), group())
    rig.see("pods", foreign("f", "n"), foreign("f", "n"), member("p"), member("p"))
    assert rig.used("n") == 1000
    assert counts_of(rig.cache.groups[KEY]).pending == 1
    rig.feed.remove("pods", foreign("f", "n"))
    rig.feed.remove("pods", foreign("f", "n"))
    assert rig.used("n") == 0


def test_kinds_may_come_in_any_order(rig: Rig) -> None:
    """Each kind has a watch of its own, so a pod may be seen before its group and its node."""
    rig.see("pods", member("p", node=NodeName("n"), phase="Running"), member("q"))
    assert not rig.cache.groups[KEY].known
    assert not rig.cache.registry.pending
    rig.see("podgroups", group(min_member=2))
    assert set(rig.cache.registry.pending) == {KEY}
    rig.see("nodes", make_node("n"))
    assert rig.used("n") == 1000
    rig.feed.remove("nodes", make_node("n"))
    rig.see("nodes", make_node("n"))
    assert rig.used("n") == 1000


def test_a_deleted_group_leaves_its_pods_waiting_for_it(rig: Rig) -> None:
    rig.see("podgroups", group())
    rig.see("pods", member("p"))
    rig.feed.remove("podgroups", group())
    assert not rig.cache.groups[KEY].known
    rig.see("podgroups", group(uid="another", phase=GroupPhase.PENDING))
    assert rig.cache.groups[KEY].phase is GroupPhase.PENDING


def test_a_reservation_survives_a_listing_that_names_its_pod(rig: Rig) -> None:
    pod = member("p")
    rig.see("nodes", make_node("n"))
    rig.see("podgroups", group())
    rig.relist("pods", pod)
    rig.reserve(pod, "n")
    rig.relist("pods", pod)
    assert rig.cache.members[pod.uid].stage is Stage.PLANNED
    assert rig.cache.losses.lost == []
    rig.relist("pods")
    assert rig.used("n") == 0
    assert [lost.why for lost in rig.cache.losses.lost] == ["pod was deleted"]


def test_one_that_cannot_be_taken_out_keeps_no_other_that_a_listing_lacks(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop_pod = Pods.drop_pod

    def keeps_b(pods: Pods, uid: PodUid) -> None:
        if uid == "uid-b":
            raise RuntimeError("a bug")
        drop_pod(pods, uid)

    rig.relist("pods", *map(member, "abcdef"))
    rig.feed.reject("pods", "default/z", "spec.x: is wrong", uid="uid-z")
    rig.cache.set_pod(member("filtered"), now=0.0, observed=True)
    monkeypatch.setattr(Pods, "drop_pod", keeps_b)
    with pytest.raises(ExceptionGroup) as fault:
        rig.relist("pods", member("a"))
    assert [str(each) for each in fault.value.exceptions] == ["a bug"]
    assert set(rig.cache.members) == {"uid-a", "uid-b"}
    assert rig.shown() == []


def test_a_pod_that_only_filter_has_shown_goes_when_a_later_listing_lacks_it(rig: Rig) -> None:
    rig.cache.set_pod(make_pod("early"), now=rig.now, observed=True)
    rig.feed.begin_listing("pods")
    rig.cache.set_pod(make_pod("meanwhile"), now=rig.now, observed=True)
    rig.feed.end_listing("pods")
    assert set(rig.cache.members) == {"uid-meanwhile"}


def test_what_filter_shows_never_replaces_what_the_watch_said(rig: Rig) -> None:
    rig.see("pods", make_pod("p", resource_version="9", gates=("other.io/gate",)))
    rig.cache.set_pod(make_pod("p"), now=rig.now, observed=True)
    assert rig.cache.members[PodUid("uid-p")].pod.resource_version == "9"


def succeeded(rig: Rig, name: str = "g") -> int:
    """How many finished members the group has."""
    return counts_of(rig.cache.groups[group_key("default", name)]).succeeded


def test_finished_pods_count_while_there_is_a_group_of_their_name(rig: Rig) -> None:
    rig.see("pods", member("done", node=NodeName("n"), phase="Succeeded"), member("p"))
    assert set(rig.cache.members) == {"uid-p"}
    for uid in ("first", "second"):
        rig.see("podgroups", group(uid=uid))
        assert set(rig.cache.members) == {"uid-p", "uid-done"}
        assert succeeded(rig) == 1
        rig.feed.remove("podgroups", group(uid=uid))
        assert set(rig.cache.members) == {"uid-p"}


def test_finished_pods_that_are_gone_by_then_do_not(rig: Rig) -> None:
    deleted, missed, kept = (member(name, phase="Succeeded") for name in ("a", "b", "c"))
    rig.see("pods", deleted, missed, kept)
    rig.feed.remove("pods", deleted)
    rig.relist("pods", kept)
    rig.see("podgroups", group())
    assert set(rig.cache.members) == {"uid-c"}
    assert succeeded(rig) == 1


def test_a_finished_pod_counts_for_the_group_it_names_now(rig: Rig) -> None:
    done = member("done", phase="Succeeded")
    other = replace(done, annotations={GROUP_ANNOTATION: "other"})
    rig.see("podgroups", group())
    rig.see("pods", done, other)
    assert (succeeded(rig), set(rig.cache.members)) == (0, set())
    rig.see("podgroups", group("other"))
    assert succeeded(rig, "other") == 1
    rig.see("pods", done)
    assert (succeeded(rig), succeeded(rig, "other")) == (1, 0)


def test_what_filter_shows_does_not_bring_a_finished_pod_back(rig: Rig) -> None:
    rig.see("pods", member("done", phase="Succeeded"))
    rig.cache.set_pod(member("done"), now=rig.now, observed=True)
    assert not rig.cache.members
    rig.see("podgroups", group())
    assert succeeded(rig) == 1


def test_after_a_batch_it_is_told_which_groups_changed(rig: Rig) -> None:
    rig.see("podgroups", group())
    rig.feed.batch_done()
    assert rig.told == [{KEY}]


def test_a_listing_of_one_source_says_nothing_about_the_others(rig: Rig) -> None:
    rig.see("nodes", make_node("n"))
    rig.relist("pods/volcano", member("p"))
    rig.relist("pods/*", foreign("f", "n"))
    rig.cache.set_pod(make_pod("early", scheduler="volcano"), now=rig.now, observed=True)

    rig.relist("pods/*")
    assert rig.used("n") == 0
    assert set(rig.cache.members) == {"uid-p", "uid-early"}
    rig.relist("pods/volcano")
    assert not rig.cache.members


def test_config_maps_of_devices_of_one_name_are_told_apart_by_their_namespaces(rig: Rig) -> None:
    shares = DeviceConfig(hami_core=True)
    rig.relist("deviceconfigs/a/config", ("a/config", shares))
    rig.relist("deviceconfigs/b/config", ("b/config", DeviceConfig()))
    assert not is_in_use(rig, "b/config")
    assert is_in_use(rig, "a/config")
    rig.relist("deviceconfigs/b/config")
    assert is_in_use(rig, "a/config")
    assert not is_in_use(rig, "")


def test_a_config_map_of_devices_that_is_listed_anew_and_cannot_be_read_counts_as_it_was(
    rig: Rig,
) -> None:
    kind = "deviceconfigs/a/config"
    decoded = decoder(decode_device_config)
    head = {"name": "config", "namespace": "a"}
    good = {"metadata": head, "data": {"device-config.yaml": "vnpus: {hamiVnpuCore: true}"}}
    rig.relist(kind, *decoded.page(encode({"metadata": {}, "items": [good]})).objects)
    assert is_in_use(rig, "a/config")
    bad = {**good, "data": {"device-config.yaml": "vnpus: 7"}}
    page = decoded.page(encode({"metadata": {}, "items": [bad]}))
    rig.feed.begin_listing(kind)
    for each in page.malformed:
        rig.feed.reject(kind, each.key, each.message, uid=each.uid)
    rig.feed.end_listing(kind)
    assert is_in_use(rig, "a/config")
    [(_, name, _)] = rig.shown()
    assert name == "a/config"
