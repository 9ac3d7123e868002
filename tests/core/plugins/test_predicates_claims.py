"""predicates: pods that claim devices go where these are free, whole gangs or none of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.core.policy import NodesNow
from app.model.conf import PluginConf
from app.model.device_claims import ClaimSpec, DeviceClaim
from app.model.device_slices import Capacity, ClaimedDevices, PodWithClaims, Reach
from app.model.exchange import ANY_EQUAL, NO_EXCHANGE, Exchange
from app.model.gang import Gang
from app.model.ids import NodeName, PodUid
from app.model.reason import Cause
from app.model.shape import NodeTerm, Operator, PodShape, Requirement
from tests.builders import make_gang, make_pod, make_shape, make_snapshot
from tests.core.actions.rigs import Outcome, cores, cycle, members, policies
from tests.core.plugins.sessions import open_plugin
from tests.device_claims import asks, claim, claimed, claiming, on_node, pool, template
from tests.running import Runs, make_running

BIG = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("80")) >= 0'
OWN = claiming(of="t")
EVERYWHERE = Reach(everywhere=True)


def gang(name: str, count: int, shape: PodShape = OWN, **fields: Any) -> Gang:
    return make_gang(name, waiting=members(name, count, shape=shape), **fields)


def plan(
    *gangs: Gang, facts: ClaimedDevices | None, nodes: tuple[int, ...] = (8, 8), **more: Any
) -> Outcome:
    return cycle(*gangs, nodes=cores(*nodes), claimed_devices=facts, **more)


def two_nodes(spec: ClaimSpec, **fields: Any) -> ClaimedDevices:
    """n0 has two devices, n1 four; pods claim by the template ``t``."""
    pools = pool("a", "b", node="n0"), pool("a", "b", "c", "d", node="n1")
    return claimed(*pools, templates=[template("t", spec)], **fields)


def test_a_pod_goes_to_the_node_with_devices_enough() -> None:
    outcome = plan(gang("g", 1), facts=two_nodes(asks(3)))
    assert outcome.nodes("g") == {"g-0": "n1"}


def test_a_gang_gets_devices_for_all_of_its_pods() -> None:
    outcome = plan(gang("g", 3), facts=two_nodes(asks(2)))
    assert sorted(outcome.nodes("g").values()) == ["n0", "n1", "n1"]


def test_a_gang_gets_devices_whole_or_not_at_all() -> None:
    outcome = plan(gang("g", 4), facts=two_nodes(asks(2)))
    assert not outcome.nodes("g")
    assert outcome.refusal("g").cause is Cause.DEVICE_CLAIMS


def test_two_gangs_never_get_the_same_devices() -> None:
    outcome = plan(gang("a", 2), gang("b", 2), facts=two_nodes(asks(2)))
    assert [len(outcome.nodes(name)) for name in ("a", "b")] == [2, 0]


def test_a_gang_without_devices_is_told_what_the_best_node_has() -> None:
    outcome = plan(gang("g", 1), facts=two_nodes(asks(5)))
    assert "node n1: 4 devices of class gpu free; 5 asked" in outcome.text("g")


def test_devices_of_claims_are_taken() -> None:
    has = claim("c", asks(3), allocation=on_node("a", "b", "c", node="n1"))
    facts = claimed(
        pool("a", "b", node="n0"),
        pool("a", "b", "c", "d", node="n1"),
        templates=[template("t", asks(3))],
        claims=[has],
    )
    outcome = plan(gang("g", 1), facts=facts)
    assert "node n0: 2 devices of class gpu free; 3 asked" in outcome.text("g")


def test_devices_that_a_pod_with_a_place_may_get_are_taken() -> None:
    assert OWN.claims is not None
    waits = PodWithClaims(PodUid("u"), NodeName("n1"), OWN.claims)
    outcome = plan(gang("g", 1), facts=two_nodes(asks(3), reserved=(waits,)))
    assert "node n0: 2 devices of class gpu free; 3 asked" in outcome.text("g")


def test_a_class_has_the_devices_that_satisfy_its_expressions() -> None:
    small = pool("a", "b", node="n0", capacity=(("memory", Capacity(40)),))
    big = pool("a", node="n1", capacity=(("memory", Capacity(80)),))
    facts = claimed(small, big, classes={"gpu": [BIG]}, templates=[template("t", asks())])
    assert plan(gang("g", 1), facts=facts).nodes("g") == {"g-0": "n1"}


def test_a_request_has_expressions_of_its_own() -> None:
    small = pool("a", "b", node="n0", capacity=(("memory", Capacity(40)),))
    facts = claimed(small, templates=[template("t", asks(selectors=(BIG,)))])
    outcome = plan(gang("g", 1), facts=facts)
    assert "node n0: 0 devices of class gpu free; 1 asked" in outcome.text("g")


def test_an_expression_that_only_kube_scheduler_knows_is_left_to_it() -> None:
    facts = claimed(
        pool("a", node="n0"), templates=[template("t", asks(selectors=("new.magic(device)",)))]
    )
    assert plan(gang("g", 1), facts=facts).nodes("g") == {"g-0": "n0"}


def test_parts_of_a_device_are_shared() -> None:
    vgpu = pool("a", node="n0", shared=True, capacity=(("memory", Capacity(80)),))
    spec = asks(capacity=(("memory", 30),))
    facts = claimed(vgpu, templates=[template("t", spec)])
    assert len(plan(gang("g", 2), facts=facts).nodes("g")) == 2
    outcome = plan(gang("g", 3), facts=facts)
    assert not outcome.nodes("g")
    assert "0 devices of class gpu with memory 30 free; 1 asked" in outcome.text("g")


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (claimed(pool("a", node="n0")), "ResourceClaimTemplate default/t does not exist"),
        (
            claimed(classes={"other": ()}, templates=[template("t", asks())]),
            "DeviceClass gpu does not exist",
        ),
    ],
)
def test_a_pod_waits_for_what_is_not_there(facts: ClaimedDevices, said: str) -> None:
    assert said in plan(gang("g", 1), facts=facts).text("g")


def test_without_facts_claims_are_left_to_kube_scheduler() -> None:
    assert len(plan(gang("g", 1), facts=None).nodes("g")) == 1


def test_the_rule_can_be_turned_off() -> None:
    off = PluginConf("predicates", arguments={"predicate.DynamicResourceAllocationEnable": False})
    by = policies((("priority", "gang"), (off,)))
    assert len(plan(gang("g", 1), facts=two_nodes(asks(5)), by=by).nodes("g")) == 1


# --- devices that several nodes reach ------------------------------------------------------------


def test_devices_that_all_nodes_reach_are_given_once() -> None:
    wide = pool("a", "b", node="", reach=EVERYWHERE)
    facts = claimed(wide, templates=[template("t", asks())])
    assert len(plan(gang("g", 2), facts=facts).nodes("g")) == 2
    assert not plan(gang("g", 3), facts=facts).nodes("g")


def test_devices_are_for_the_nodes_that_a_selector_names() -> None:
    here = Requirement("kubernetes.io/hostname", Operator.IN, ("n1",))
    wide = pool("a", node="", reach=Reach(terms=(NodeTerm((here,)),)))
    facts = claimed(wide, templates=[template("t", asks())])
    assert plan(gang("g", 1), facts=facts).nodes("g") == {"g-0": "n1"}


# --- claims that pods share ----------------------------------------------------------------------


def sharing(count: int, *, cpu: int = 1, **fields: Any) -> Gang:
    """The first member is charged for the claim ``c``, and goes before the others."""
    shape = claiming("c", cpu=cpu * 1000)
    first, *others = members("g", count, shape=shape)
    after = tuple(replace(each, after=(first.uid,)) for each in others)
    return make_gang("g", waiting=(first, *after), **fields)


def test_pods_that_share_a_claim_go_to_its_devices() -> None:
    has = claim("c", asks(2), allocation=on_node("a", "b", node="n0"))
    facts = claimed(pool("a", "b", node="n0"), claims=[has])
    assert set(plan(sharing(3), facts=facts).nodes("g").values()) == {"n0"}


def test_pods_that_share_a_claim_without_devices_go_to_one_node() -> None:
    facts = claimed(
        pool("a", "b", node="n0"), pool("a", "b", node="n1"), claims=[claim("c", asks(2))]
    )
    assert len(set(plan(sharing(3), facts=facts).nodes("g").values())) == 1


def test_the_first_of_them_goes_where_all_have_room() -> None:
    facts = claimed(
        pool("a", "b", node="n0"), pool("a", "b", node="n1"), claims=[claim("c", asks(2))]
    )
    outcome = plan(sharing(3, cpu=2), facts=facts, nodes=(4, 6))
    assert set(outcome.nodes("g").values()) == {"n1"}


def test_they_wait_where_no_node_has_room_for_all() -> None:
    facts = claimed(pool("a", node="n0"), pool("a", node="n1"), claims=[claim("c", asks())])
    outcome = plan(sharing(3, cpu=2), facts=facts, nodes=(4, 4))
    assert not outcome.nodes("g")
    assert "has room for all pods that share a claim" in outcome.text("g")


def test_pods_that_share_a_claim_of_wide_devices_may_be_anywhere() -> None:
    facts = claimed(pool("a", node="", reach=EVERYWHERE), claims=[claim("c", asks())])
    outcome = plan(sharing(3, cpu=2), facts=facts, nodes=(4, 4))
    assert len(outcome.nodes("g")) == 3


def test_a_pod_does_not_go_where_its_claim_is_not() -> None:
    has = claim("c", asks(), allocation=on_node("a", node="n0"))
    facts = claimed(pool("a", node="n0"), pool("a", node="n1"), claims=[has])
    outcome = plan(sharing(1, cpu=4), facts=facts, nodes=(2, 8))
    assert not outcome.nodes("g")
    assert "ResourceClaim default/c has its devices on other nodes" in outcome.text("g")


def test_a_claim_that_is_being_deleted_is_not_waited_on() -> None:
    facts = claimed(pool("a", node="n0"), claims=[claim("c", asks(), deleting=True)])
    assert "ResourceClaim default/c is being deleted" in plan(sharing(1), facts=facts).text("g")


def test_the_claim_of_a_pod_that_was_made_of_a_template_has_its_devices() -> None:
    made: DeviceClaim = claim("g-0-own", asks(), allocation=on_node("a", node="n1"))
    facts = claimed(
        pool("a", node="n0"),
        pool("a", node="n1"),
        claims=[made],
        templates=[template("t", asks())],
        made={(members("g", 1)[0].uid, "own"): made.key},
    )
    assert plan(gang("g", 1), facts=facts).nodes("g") == {"g-0": "n1"}


@pytest.mark.parametrize(
    ("shape", "inside"),
    [
        (OWN, ANY_EQUAL.within("claims")),
        (claiming("c"), NO_EXCHANGE),
        (make_shape(), ANY_EQUAL),
    ],
)
def test_with_which_others_a_place_may_be_exchanged(shape: PodShape, inside: Exchange) -> None:
    facts = two_nodes(asks(), claims=[claim("c", asks())])
    outcome = plan(gang("g", 1, shape), facts=facts)
    assert [p.exchange for d in outcome.decisions("g") for p in d.placements] == [inside]


# --- evictions -----------------------------------------------------------------------------------


class OnLedger:
    """One node, and whether a pod with a claim of its own may go there as the ledger moves."""

    def __init__(self, facts: ClaimedDevices, running: Sequence[str] = ()) -> None:
        nodes, old = cores(64), make_gang("old")
        shape = claiming("c")
        self.pods = [make_pod(name, node="n0", phase="Running", shape=shape) for name in running]
        self.snapshot = make_snapshot(
            nodes=nodes,
            gangs=(old,),
            claimed_devices=facts,
            running=make_running([Runs(pod, 0, old.key) for pod in self.pods]),
        )
        hooks, self.ledger = open_plugin("predicates", self.snapshot)
        [self._rule] = hooks.node_rules or ()
        self.gang = gang("g", 1)

    def allowed(self, *, ahead: bool) -> bool:
        task, free = self.gang.waiting[0], self.snapshot.table.allocatable.T
        assert self._rule.key(self.gang, task) is not None
        now = NodesNow(np.arange(1), free, ahead)
        return bool(self._rule.allows(self.gang, task, now)[0])


def test_terminating_pods_give_their_devices_back_once_they_are_gone() -> None:
    has = claim("c", asks(2), allocation=on_node("a", "b", node="n0"))
    users = {has.key: frozenset({PodUid("u")})}
    fields: dict[str, Any] = {
        "claims": [has],
        "templates": [template("t", asks(2))],
        "users": users,
    }
    here = pool("a", "b", node="n0")
    stays = claimed(here, **fields)
    goes = claimed(here, leaving=frozenset({PodUid("u")}), **fields)
    assert OnLedger(stays).allowed(ahead=True) is False
    assert OnLedger(goes).allowed(ahead=True) is True
    assert OnLedger(goes).allowed(ahead=False) is False


def test_evicted_pods_give_their_devices_back_as_the_last_user_goes() -> None:
    has = claim("c", asks(2), allocation=on_node("a", "b", node="n0"))
    facts = claimed(
        pool("a", "b", node="n0"),
        claims=[has],
        templates=[template("t", asks(2))],
        users={has.key: frozenset({PodUid("uid-p"), PodUid("uid-q")})},
    )
    rig = OnLedger(facts, running=("p", "q"))
    with rig.ledger.trial():
        rig.ledger.evict(0)
        assert rig.allowed(ahead=True) is False
        rig.ledger.evict(1)
        assert rig.allowed(ahead=True) is True
        assert rig.allowed(ahead=False) is False
    assert rig.allowed(ahead=True) is False
