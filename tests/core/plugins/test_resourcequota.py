"""resourcequota: claims fit the namespace's quotas."""

from app.core.policy import Hooks, Vote
from app.model.gang import Gang
from app.model.reason import Cause, Shortfall
from app.model.resources import Amounts
from app.model.workload import Quota
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
