"""What pods claim is what they ask for, and a claim that pods share counts once."""

from collections.abc import Mapping
from typing import Any

import pytest

from app.cache.snapshots.snapshotter import Snapshotter
from app.model.device_claims import ClaimSpec
from app.model.job import JobTemplate, Template
from app.model.shape import PodClaim, PodClaims
from tests.builders import make_queue, make_shape
from tests.cache.rig import Rig as Small
from tests.device_claims import asks, claim, claiming, on_node, template

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
