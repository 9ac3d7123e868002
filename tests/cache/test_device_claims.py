"""What pods claim is what they ask for, and a claim that pods share counts once."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.device_claims import DeviceClaims
from app.cache.snapshots.snapshotter import Snapshotter
from app.core.policy import NodesNow
from app.model.device_claims import ClaimSpec
from app.model.device_slices import Capacity, ClaimedDevices
from app.model.job import JobTemplate, Template
from app.model.node import DeviceClass
from app.model.shape import PodClaim, PodClaims, PodShape
from tests.builders import make_node, make_queue, make_shape
from tests.cache.rig import Rig as Small
from tests.core.plugins.sessions import open_plugin
from tests.device_claims import asks, claim, claiming, on_node, pool, template
from tests.scale import examples

GPU = "deviceclass/gpu"


class Rig(Small):
    """The group ``g`` may have members that claim devices."""

    def claims(self, name: str, *, of: ClaimSpec, **fields: Any) -> None:
        self.cache.device_claims.set_claim(claim(name, of, **fields))

    def template(self, name: str, spec: ClaimSpec) -> None:
        self.cache.device_claims.set_template(template(name, spec))

    def asked(self) -> Mapping[str, int]:
        """The devices that each member asks for, of those that ask for some."""
        Snapshotter(self.cache).snapshot()
        found = {m.pod.name: dict(m.pod.shape.requests).get(GPU, 0) for m in self.members()}
        return {name: count for name, count in found.items() if count}

    def held(self) -> int:
        """What the queue is charged with."""
        [usage] = Snapshotter(self.cache).snapshot().usage.values()
        axis = self.cache.node_usage.axis
        return int(usage.allocated[axis.index[GPU]]) if GPU in axis.index else 0

    def members(self) -> list[Any]:
        return list(self.cache.members.values())


def test_a_pod_asks_for_what_its_template_says() -> None:
    rig = Rig()
    rig.template("t", asks(2))
    rig.pod("a", shape=claiming(of="t"))
    assert rig.asked() == {"a": 2}


@pytest.mark.parametrize("broken", ["1 / 0 == 1", "[1][5] == 1", "[1].map(x, x / 0) == [1]", "("])
def test_an_expression_that_fails_keeps_no_snapshot_from_being_made(broken: str) -> None:
    rig = Rig()
    rig.cache.device_claims.set_class(DeviceClass("gpu", frozenset(), (broken,)))
    rig.cache.device_claims.set_slice(pool("x", node="n"))
    rig.template("bad", asks(selectors=(broken,)))
    rig.template("good", asks(selectors=("true",)))
    rig.claims("c", of=asks(selectors=(broken,)))
    for name, of in (("a", "bad"), ("b", "good")):
        rig.pod(name, shape=claiming("c", of=of))
    facts = Snapshotter(rig.cache).snapshot().claimed_devices
    assert facts is not None
    assert facts.satisfying["true"] == {0}
    assert facts.satisfying[broken] == (frozenset({0}) if broken == "(" else frozenset())


def test_a_pod_that_comes_before_its_template_asks_for_it_once_it_is_there() -> None:
    rig = Rig()
    rig.pod("a", shape=claiming(of="t"))
    assert rig.asked() == {}
    rig.template("t", asks(2))
    assert rig.asked() == {"a": 2}
    rig.cache.device_claims.drop_template("default/t")
    assert rig.asked() == {}


def test_the_claim_that_was_made_of_a_template_counts_in_its_stead() -> None:
    rig = Rig()
    rig.template("t", asks(every=True))
    rig.pod("a", shape=claiming(of="t"))
    assert rig.asked() == {"a": 32}
    has = on_node("x", "y", node="n")
    rig.claims("a-own", of=asks(every=True), allocation=has, pod=rig.uid("a"), entry="own")
    assert rig.asked() == {"a": 2}
    rig.cache.device_claims.drop_claim("default/a-own")
    assert rig.asked() == {"a": 32}


def test_templates_and_claims_of_other_namespaces_are_not_meant() -> None:
    rig = Rig()
    rig.template("t", asks(2))
    elsewhere = PodClaims("other", (PodClaim("own", template="t"),))
    rig.pod("a", shape=make_shape(claims=elsewhere))
    assert rig.asked() == {}


def test_a_claim_that_pods_share_is_charged_to_one_of_them() -> None:
    rig = Rig()
    rig.claims("c", of=asks(2))
    for name in ("a", "b"):
        rig.pod(name, shape=claiming("c"))
    assert rig.asked() == {"a": 2}
    assert rig.member("b").task.after == (rig.uid("a"),)


def test_the_member_with_a_place_is_charged() -> None:
    rig = Rig()
    rig.claims("c", of=asks(2))
    for name in ("a", "b"):
        rig.pod(name, shape=claiming("c"))
    assert rig.place(b="n")
    assert rig.asked() == {"b": 2}
    assert (rig.held(), rig.member("a").task.after) == (2, ())


def test_a_shared_claim_is_charged_until_the_last_pod_with_it_goes() -> None:
    rig = Rig()
    rig.claims("c", of=asks(2))
    for name in ("a", "b"):
        rig.pod(name, shape=claiming("c"), node="n", phase="Running")
    assert (rig.asked(), rig.held()) == ({"a": 2}, 2)
    rig.cache.drop_pod(rig.uid("a"))
    assert (rig.asked(), rig.held()) == ({"b": 2}, 2)
    rig.pod("b", shape=claiming("c"), node="n", phase="Succeeded")
    assert rig.held() == 0


def test_a_terminating_pod_is_charged_only_where_no_other_has_the_claim() -> None:
    rig = Rig()
    rig.claims("c", of=asks(2))
    for name in ("a", "b"):
        rig.pod(name, shape=claiming("c"), node="n", phase="Running")
    rig.pod("a", shape=claiming("c"), node="n", phase="Running", deleting=True)
    assert rig.asked() == {"b": 2}
    rig.cache.drop_pod(rig.uid("b"))
    assert rig.asked() == {"a": 2}


def twice_of(name: str) -> PodShape:
    each = (PodClaim("a", template=name), PodClaim("b", template=name))
    return make_shape(claims=PodClaims("default", each))


def test_a_pod_with_two_claims_of_one_template_is_charged_until_it_goes() -> None:
    rig = Rig()
    rig.template("t", asks(2))
    for name in ("a", "b"):
        rig.pod(name, shape=twice_of("t"), node="n", phase="Running")
    assert (rig.asked(), rig.held()) == ({"a": 4, "b": 4}, 8)
    rig.cache.drop_pod(rig.uid("a"))
    assert (rig.asked(), rig.held()) == ({"b": 4}, 4)
    rig.pod("b", shape=twice_of("t"), node="n", phase="Succeeded")
    assert (rig.asked(), rig.held()) == ({}, 0)


def test_a_pod_goes_whatever_is_wrong_with_its_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("a bug")

    rig = Rig()
    rig.template("t", asks(2))
    for name in ("a", "b"):
        rig.pod(name, shape=claiming(of="t"), node="n", phase="Running")
    monkeypatch.setattr(DeviceClaims, "drop_pod", fails)
    with pytest.raises(RuntimeError):
        rig.cache.drop_pod(rig.uid("a"))
    assert rig.held() == 2


def test_each_queue_is_charged_for_a_claim_that_pods_of_both_share() -> None:
    rig = Rig()
    rig.cache.set_queue(make_queue("q"))
    rig.claims("c", of=asks(2))
    rig.pod("a", shape=claiming("c"), node="n", phase="Running")
    in_q = {"scheduling.volcano.sh/queue-name": "q", "scheduling.k8s.io/group-name": ""}
    rig.pod("b", shape=claiming("c"), node="m", phase="Running", annotations=in_q)
    assert rig.asked() == {"a": 2, "b": 2}


def test_a_pod_may_claim_devices_in_several_ways() -> None:
    rig = Rig()
    rig.claims("c", of=asks(2))
    rig.claims("d", of=asks(1))
    rig.template("t", asks(4))
    rig.pod("a", shape=claiming("c", "d", of="t"))
    assert rig.asked() == {"a": 7}


def test_equal_pods_have_one_shape() -> None:
    rig = Rig()
    rig.template("t", asks(2))
    for name in ("a", "b"):
        rig.pod(name, shape=claiming(of="t"))
    assert rig.member("a").pod.shape is rig.member("b").pod.shape


def test_foreign_pods_are_not_charged() -> None:
    rig = Rig()
    rig.claims("c", of=asks(2))
    rig.pod("x", shape=claiming("c"), node="n", scheduler="default-scheduler")
    rig.pod("a", shape=claiming("c"))
    assert rig.asked() == {"a": 2}


@pytest.mark.parametrize(
    ("told", "least"),
    [({"cpu": 2000}, {GPU: 4}), ({"cpu": 2000, GPU: 1}, {GPU: 1}), (None, None)],
    ids=["claims-count", "what-it-names-is-meant", "no-minimum"],
)
def test_the_minimum_of_a_group_has_the_devices_of_its_members(
    told: dict[str, int] | None, least: dict[str, int] | None
) -> None:
    rig = Rig()
    rig.template("t", asks(2))
    rig.see(min_resources=tuple(sorted(told.items())) if told else None)
    for name in ("a", "b", "c"):
        rig.pod(name, shape=claiming(of="t"))
    [gang] = Snapshotter(rig.cache).snapshot().gangs.values()
    found = gang.min_request
    if least is None:
        assert found is None
    else:
        assert found is not None
        assert found[rig.cache.node_usage.axis.index[GPU]] == least[GPU]


def test_pods_of_a_job_that_are_to_come_ask_for_what_its_templates_claim() -> None:
    rig = Rig()
    job = JobTemplate("u", "default", "j", {"w": Template(claiming(of="t"), {})})
    rig.cache.device_claims.set_job(job)
    rig.template("t", asks(2))
    made = rig.cache.registry.templates["u"]["w"]
    assert dict(made.shape.requests)[GPU] == 2
    rig.cache.device_claims.drop_job("u")
    assert rig.cache.registry.templates == {}


def test_a_claim_is_charged_no_more_of_a_class_than_there_is() -> None:
    rig = Rig()
    rig.template("t", asks(every=True))
    rig.pod("a", shape=claiming(of="t"))
    rig.cache.device_claims.set_class(DeviceClass("gpu", frozenset()))
    assert rig.asked() == {"a": 32}
    rig.cache.device_claims.set_slice(pool("x", "y", node="n"))
    assert rig.asked() == {"a": 2}
    rig.cache.device_claims.set_slice(pool("x", "y", "z", node="m"))
    assert rig.asked() == {"a": 5}
    rig.cache.device_claims.drop_class("gpu")
    assert rig.asked() == {"a": 32}


def test_the_cluster_has_the_devices_that_its_slices_offer() -> None:
    rig = Rig()
    rig.template("t", asks(capacity=(("memory", 8),)))
    rig.pod("a", shape=claiming(of="t"))
    some = 'device.attributes["gpu.example.com"].size == 80'
    rig.cache.device_claims.set_class(DeviceClass("gpu", frozenset(), (some,)))
    for node, size in (("n", 80), ("m", 40)):
        given_ = {"attributes": (("size", size),), "capacity": (("memory", Capacity(size)),)}
        rig.cache.device_claims.set_slice(pool("x", "y", node=node, **given_))
    Snapshotter(rig.cache).snapshot()
    total, index = rig.cache.total(), rig.cache.node_usage.axis.index
    assert (total[index[GPU]], total[index["memory.deviceclass/gpu"]]) == (2, 160)


# --- what the planner is told --------------------------------------------------------------------


def facts(rig: Rig) -> ClaimedDevices:
    found = Snapshotter(rig.cache).snapshot().claimed_devices
    assert found is not None
    return found


def test_the_planner_is_told_nothing_while_no_pod_claims_devices() -> None:
    rig = Rig()
    rig.template("t", asks())
    rig.pod("a")
    assert Snapshotter(rig.cache).snapshot().claimed_devices is None


def test_the_planner_is_told_nothing_where_no_claims_are_served() -> None:
    rig = Rig()
    rig.pod("a", shape=claiming(of="t"))
    assert Snapshotter(rig.cache).snapshot().claimed_devices is None


def test_of_a_pool_the_latest_generation_counts() -> None:
    rig = Rig()
    rig.pod("a", shape=claiming(of="t"))
    old, new = pool("x", "y", node="n"), pool("z", node="n")
    rig.cache.device_claims.set_slice(old)
    rig.cache.device_claims.set_slice(replace(new, name="new", generation=2, slices=2))
    told = facts(rig)
    assert [each.id.device for each in told.devices] == ["z"]
    assert told.incomplete == {("gpu.example.com", "n")}
    rig.cache.device_claims.drop_slice("new")
    assert [each.id.device for each in facts(rig).devices] == ["x", "y"]


def test_the_planner_is_told_which_devices_satisfy_an_expression() -> None:
    rig = Rig()
    expression = 'device.attributes["gpu.example.com"].size == 80'
    rig.pod("a", shape=claiming(of="t"))
    rig.template("t", asks(selectors=(expression,)))
    small = pool("x", node="m", attributes=(("size", 40),))
    rig.cache.device_claims.set_slice(small)
    assert facts(rig).satisfying == {expression: frozenset()}
    rig.cache.device_claims.set_slice(pool("x", node="n", attributes=(("size", 80),)))
    assert facts(rig).satisfying == {expression: frozenset({1})}


def test_pods_with_places_whose_claims_have_no_devices_are_told() -> None:
    rig = Rig()
    rig.template("t", asks())
    for name in ("a", "b", "c"):
        rig.pod(name, shape=claiming(of="t"))
    assert rig.place(a="n", b="n")
    assert [each.uid for each in facts(rig).reserved] == [rig.uid("a"), rig.uid("b")]
    has = on_node("x", node="n")
    rig.claims("a-own", of=asks(), allocation=has, pod=rig.uid("a"), entry="own")
    told = facts(rig)
    assert [each.uid for each in told.reserved] == [rig.uid("b")]
    assert told.users["default/a-own"] == {rig.uid("a")}


def test_equal_moments_share_what_is_told() -> None:
    rig = Rig()
    rig.template("t", asks())
    rig.claims("c", of=asks(), users=frozenset({rig.uid("x")}))
    rig.pod("a", shape=claiming(of="t"))
    rig.pod("x", scheduler="default-scheduler", node="n", phase="Running")
    devices = rig.cache.device_claims
    seen = [facts(rig)]
    for change in (
        lambda: rig.pod("a", shape=claiming(of="t"), node="n", phase="Running"),
        lambda: rig.pod("x", scheduler="default-scheduler", node="n", deleting=True),
        lambda: rig.claims("c", of=asks(2)),
        lambda: rig.claims("a-own", of=asks(), pod=rig.uid("a"), entry="own"),
        lambda: devices.drop_claim("default/c"),
        lambda: rig.template("t", asks(2)),
        lambda: devices.drop_template("default/t"),
        lambda: devices.set_class(DeviceClass("gpu", frozenset())),
        lambda: devices.drop_class("gpu"),
        lambda: devices.set_slice(pool("x", node="n")),
        lambda: devices.drop_slice("slice-n"),
        lambda: rig.pod("b", shape=claiming(of="t"), node="n", phase="Running"),
        lambda: rig.cache.drop_pod(rig.uid("a")),
    ):
        change()
        seen.append(facts(rig))
        assert facts(rig) is seen[-1]
    assert [at for at in range(1, len(seen)) if seen[at] is seen[at - 1]] == []


def test_slots_with_claims_are_told() -> None:
    rig = Rig()
    rig.template("t", asks())
    rig.pod("a", shape=claiming(of="t"))
    assert facts(rig).reserved == ()
    assert rig.slot("n", shape=claiming(of="t"))
    assert [(each.uid, each.node) for each in facts(rig).reserved] == [("", "n")]


def test_terminating_pods_with_claims_are_told_foreign_ones_too() -> None:
    rig = Rig()
    users = frozenset({rig.uid("a"), rig.uid("x"), rig.uid("y")})
    rig.claims("c", of=asks(), allocation=on_node("d", node="n"), users=users)
    rig.pod("a", shape=claiming("c"), node="n", phase="Running", deleting=True)
    rig.pod("x", scheduler="default-scheduler", node="n", phase="Running", deleting=True)
    rig.pod("y", scheduler="default-scheduler", node="n", phase="Running")
    told = facts(rig)
    assert told.users["default/c"] == users
    assert told.leaving == {rig.uid("a"), rig.uid("x")}


# --- no device is used twice ---------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(st.sampled_from(["plan", "allocate", "end", "withdraw"]), st.integers(0, 5)),
    max_size=30,
)
DEVICES = ("x", "y", "z")


class World:
    """Two nodes with three devices each; six pods, two of which share a claim."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.rig.see(min_member=1)
        for node in ("n", "m"):
            self.rig.cache.set_node(make_node(node, cpu=64_000))
            self.rig.cache.device_claims.set_slice(pool(*DEVICES, node=node))
        self.rig.cache.device_claims.set_class(DeviceClass("gpu", frozenset()))
        self.rig.template("t", asks())
        self.rig.template("two", asks(2))
        self.rig.claims("c", of=asks(2))
        self.shapes = [claiming(of="t"), claiming(of="t"), claiming(of="two"), claiming(of="two")]
        self.shapes += [claiming("c"), claiming("c")]
        self.has: dict[str, tuple[str, list[str]]] = {}
        """By claim: the node and the devices that kube-scheduler chose there."""
        self.at: dict[int, str] = {}
        for number in range(len(self.shapes)):
            self.show(number)

    def show(self, number: int) -> None:
        self.rig.pod(f"p{number}", shape=self.shapes[number])

    def claim_of(self, number: int) -> str:
        return "c" if self.shapes[number].claims == claiming("c").claims else f"p{number}-own"

    def plan(self, number: int) -> None:
        """The planner gives the pod a place, if it finds one."""
        if number in self.at:
            return
        snapshot = Snapshotter(self.rig.cache).snapshot()
        [gang] = snapshot.pending
        task = next((t for t in gang.waiting if t.name == f"p{number}"), None)
        if task is None or task.after:
            return
        hooks, ledger = open_plugin("predicates", snapshot)
        [rule] = hooks.node_rules or ()
        rows = NodesNow(np.arange(2), ledger.idle.T)
        for row, allowed in enumerate(rule.allows(gang, task, rows).tolist()):
            if allowed:
                node = snapshot.table.nodes[row].name
                assert self.rig.place(**{f"p{number}": node})
                self.at[number] = node
                return

    def allocate(self, number: int) -> None:
        """kube-scheduler gives the claim the last devices of the node, not the first ones."""
        key = self.claim_of(number)
        if number not in self.at or key in self.has:
            return
        node, count = self.at[number], 1 if number < 2 else 2
        busy = {name for at, names in self.has.values() if at == node for name in names}
        free = [name for name in reversed(DEVICES) if name not in busy]
        assert len(free) >= count, "a pod was told a node without devices enough"
        self.has[key] = node, free[:count]
        own = {} if key == "c" else {"pod": self.rig.uid(f"p{number}"), "entry": "own"}
        self.rig.claims(key, of=asks(count), allocation=on_node(*free[:count], node=node), **own)

    def end(self, number: int) -> None:
        """The pod goes, and another one comes in its stead; devices go with the last user."""
        self.rig.cache.drop_pod(self.rig.uid(f"p{number}"))
        self.at.pop(number, None)
        self._release(number)
        self.show(number)

    def withdraw(self, number: int) -> None:
        if number in self.at:
            self.rig.cache.reservations.withdraw(self.rig.uid(f"p{number}"), now=self.rig.now)
            del self.at[number]
            self._release(number)

    def _release(self, number: int) -> None:
        key = self.claim_of(number)
        if any(self.claim_of(other) == key for other in self.at):
            return
        self.has.pop(key, None)
        if key == "c":
            self.rig.claims("c", of=asks(2))
        else:
            self.rig.cache.device_claims.drop_claim(f"default/{key}")

    def check(self) -> None:
        """Every pod with a place can have its devices there, and each claim is charged once."""
        held = 0
        for node in ("n", "m"):
            there = {self.claim_of(n): 1 if n < 2 else 2 for n, at in self.at.items() if at == node}
            assert sum(there.values()) <= len(DEVICES)
            held += sum(there.values())
        assert self.rig.held() == held
        assert len({at for n, at in self.at.items() if n > 3}) <= 1, "one claim on two nodes"


@examples(60)
@given(STEPS)
def test_no_device_is_given_twice_and_shared_claims_are_charged_once(
    steps: list[tuple[str, int]],
) -> None:
    world = World()
    for step, number in steps:
        getattr(world, step)(number)
        world.check()
