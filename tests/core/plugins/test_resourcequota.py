"""resourcequota: claims fit the namespace's quotas."""

from dataclasses import replace
from typing import Any

import pytest

from app.core.policy import Hooks, Vote
from app.model.amounts import Amounts
from app.model.gang import Counts, Gang
from app.model.reason import Cause, Shortfall
from app.model.workload import GroupPhase, Quota
from tests.builders import AXIS, GIB, make_amounts, make_gang, make_snapshot
from tests.core.plugins.sessions import claiming, holding, open_plugin, room

GPU = "nvidia.com/gpu"
WIDE = AXIS.covering([GPU])


def quota(hard: Amounts, used: Amounts = (), *, scoped: bool = False) -> Quota:
    return Quota(namespace="default", name="q", hard=hard, used=used, scoped=scoped)


def opened(*quotas: Quota) -> Hooks:
    hooks, _ = open_plugin("resourcequota", make_snapshot(quotas=quotas, axis=WIDE))
    return hooks


def vote(hooks: Hooks, gang: Gang) -> Vote:
    assert hooks.enqueueable
    return hooks.enqueueable(gang).vote


def claim(name: str = "g", *, cpu: float = 1, gib: float = 0, namespace: str = "default") -> Gang:
    return claiming(name, cpu=cpu, gib=gib, axis=WIDE, namespace=namespace)


def test_used_and_claimed_stay_within_hard() -> None:
    hooks = opened(quota(make_amounts(cpu=4000), make_amounts(cpu=2000)))

    assert vote(hooks, claim(cpu=2)) is Vote.PERMIT
    assert vote(hooks, claim(cpu=2.001)) is Vote.REJECT
    assert vote(hooks, claim(cpu=9, namespace="other")) is Vote.PERMIT
    assert vote(hooks, make_gang(axis=WIDE)) is Vote.PERMIT


def test_what_the_cycle_admitted_counts() -> None:
    hooks = opened(quota(make_amounts(cpu=4000)))
    assert hooks.enqueued
    hooks.enqueued(claim("one", cpu=1))
    hooks.enqueued(claim("two", cpu=1))
    hooks.enqueued(make_gang("free", axis=WIDE))
    hooks.enqueued(claim("elsewhere", cpu=9, namespace="other"))

    assert vote(hooks, claim(cpu=2)) is Vote.PERMIT
    assert vote(hooks, claim(cpu=3)) is Vote.REJECT


def test_what_the_group_holds_is_in_used_already() -> None:
    hooks, _ = open_plugin(
        "resourcequota", make_snapshot(quotas=(quota((("cpu", 4000),), (("cpu", 3000),)),))
    )
    gang = holding("back", cpu=3, min_request=room(cpu=4))
    assert vote(hooks, gang) is Vote.PERMIT


def test_requests_names_cover_their_resource() -> None:
    hooks = opened(quota((("requests.cpu", 1000), (f"requests.{GPU}", 1))))
    assert vote(hooks, claim(cpu=1)) is Vote.PERMIT
    assert vote(hooks, claim(cpu=2)) is Vote.REJECT


def test_names_that_no_claim_has_are_no_obstacle() -> None:
    hooks = opened(quota((("count/jobs.batch", 0), ("limits.cpu", 0), ("services", 0))))
    assert vote(hooks, claim(cpu=1)) is Vote.PERMIT


def limited(name: str = "g", *, cpu: int, least: int = 4, **fields: Any) -> Gang:
    """A gang whose minimum asks for nothing but has limits of so many cores."""
    limits = (("limits.cpu", cpu * 1000), ("limits.memory", 9))
    return claiming(name, cpu=0, axis=WIDE, min_member=least, min_limits=limits, **fields)


def limit_of(cpu: int, *, used: int = 0) -> Quota:
    return quota((("limits.cpu", cpu * 1000),), (("limits.cpu", used * 1000),))


def among(gangs: list[Gang], *quotas: Quota) -> Hooks:
    snapshot = make_snapshot(quotas=quotas, axis=WIDE, gangs=tuple(gangs))
    return open_plugin("resourcequota", snapshot)[0]


def test_limits_count_where_a_quota_limits_them() -> None:
    hooks = opened(limit_of(4, used=1))
    assert vote(hooks, limited(cpu=3)) is Vote.PERMIT
    assert vote(hooks, limited(cpu=4)) is Vote.REJECT
    assert vote(opened(quota(make_amounts(cpu=1000))), limited(cpu=9)) is Vote.PERMIT

    assert hooks.enqueueable
    refusal = hooks.enqueueable(limited(cpu=4)).refusal
    assert refusal is not None
    assert refusal.shortfalls == (Shortfall("limits.cpu", asked=4000, free=3000, limit=4000),)


def test_limits_of_groups_that_the_cycle_admitted_count() -> None:
    hooks = opened(limit_of(4))
    assert hooks.enqueued
    hooks.enqueued(limited("one", cpu=3))
    assert vote(hooks, limited(cpu=1)) is Vote.PERMIT
    assert vote(hooks, limited(cpu=2)) is Vote.REJECT


@pytest.mark.parametrize("created", [0, 1, 3, 4, 6])
def test_pods_and_reservations_of_one_group_take_its_limits_once(created: int) -> None:
    """Whether the quota's status knows its pods by now or not."""
    first = limited("first", cpu=4, counts=Counts(running=created))
    for counted in (0, min(created, 4)):
        hooks = among([first], limit_of(6, used=counted))
        assert vote(hooks, limited(cpu=2)) is Vote.PERMIT
        assert vote(hooks, limited(cpu=3)) is Vote.REJECT


def test_nothing_is_kept_for_members_that_nobody_creates() -> None:
    left = limited("left", cpu=4)
    assert vote(among([left], limit_of(4)), limited(cpu=4)) is Vote.REJECT
    assert vote(among([replace(left, given_up=True)], limit_of(4)), limited(cpu=4)) is Vote.PERMIT


def test_pods_that_ended_take_no_limits() -> None:
    ended = limited("ended", cpu=4, counts=Counts(running=1, succeeded=2, failed=1))
    assert vote(among([ended], limit_of(4)), limited(cpu=3)) is Vote.PERMIT
    assert vote(among([ended], limit_of(4)), limited(cpu=4)) is Vote.REJECT


def test_the_limits_of_its_own_pods_are_not_asked_for_again() -> None:
    half = limited("half", cpu=4, phase=GroupPhase.PENDING, counts=Counts(pending=2))
    assert vote(among([half], limit_of(4, used=2)), half) is Vote.PERMIT
    assert vote(among([half], limit_of(3, used=2)), half) is Vote.REJECT


def test_scoped_quotas_are_not_looked_at() -> None:
    hooks = opened(quota(make_amounts(cpu=1), scoped=True))
    assert vote(hooks, claim(cpu=8)) is Vote.PERMIT


def test_every_quota_of_the_namespace_counts() -> None:
    hooks = opened(quota(make_amounts(cpu=9000)), quota(make_amounts(memory=GIB)))
    assert vote(hooks, claim(cpu=1, gib=2)) is Vote.REJECT


def test_a_rejection_has_the_numbers_and_volcanos_text() -> None:
    used = make_amounts(cpu=500, memory=GIB)
    hooks = opened(quota(make_amounts(cpu=2000, memory=2 * GIB, pods=9), used))
    assert hooks.enqueueable
    refusal = hooks.enqueueable(claim(cpu=2, gib=1.5)).refusal

    assert refusal is not None
    assert refusal.cause is Cause.NAMESPACE_QUOTA
    assert refusal.where == "default"
    assert refusal.shortfalls == (
        Shortfall("cpu", asked=2000, free=1500, limit=2000),
        Shortfall("memory", asked=3 * GIB // 2, free=GIB, limit=2 * GIB),
    )
    assert refusal.detail == (
        "resource quota insufficient, requested: cpu 2, memory 1536Mi, "
        "used: cpu 500m, memory 1Gi, limited: cpu 2, memory 2Gi"
    )


def test_of_two_quotas_that_refuse_the_one_is_named_that_never_has_room() -> None:
    used_up = quota(make_amounts(cpu=2000), make_amounts(cpu=2000))
    too_small = replace(quota(make_amounts(cpu=1000)), name="small")
    hooks = opened(used_up, too_small)
    assert hooks.enqueueable
    refusal = hooks.enqueueable(claim(cpu=2)).refusal
    assert refusal is not None
    assert refusal.shortfalls == (Shortfall("cpu", asked=2000, free=1000, limit=1000),)
