"""Which pods that are gone are remembered, and for how long."""

from app.cache.cluster import ClusterCache
from app.cache.gangs.departed import Departed
from app.model.ids import PodUid
from tests.builders import make_pod

OURS = "volcano"


def cache_without(*gone: str, scheduler: str = OURS) -> ClusterCache:
    """A cache that saw these pods come and go."""
    cache = ClusterCache(schedulers=frozenset({OURS}))
    for name in gone:
        pod = make_pod(name, scheduler=scheduler)
        cache.set_pod(pod, now=0.0)
        cache.drop_pod(pod.uid)
    return cache


def test_a_call_does_not_bring_a_pod_back_but_the_watch_does() -> None:
    cache, pod = cache_without("p"), make_pod("p")
    cache.set_pod(pod, now=0.0, observed=True)
    assert pod.uid not in cache.members
    cache.set_pod(pod, now=0.0)
    assert pod.uid in cache.members


def test_a_pod_that_the_watch_brought_back_is_not_gone_any_more() -> None:
    cache, pod = cache_without("p"), make_pod("p")
    cache.set_pod(pod, now=0.0)
    cache.set_pod(pod, now=0.0, observed=True)
    assert not cache.members[pod.uid].observed


def test_the_longest_gone_is_forgotten_first() -> None:
    departed = Departed(limit=2)
    for uid in ("a", "b", "a", "c"):
        departed.add(PodUid(uid))
    assert [uid for uid in "abc" if PodUid(uid) in departed] == ["a", "c"]


def test_taking_out_what_is_not_there_does_nothing() -> None:
    departed = Departed(limit=2)
    departed.discard(PodUid("a"))
    assert PodUid("a") not in departed
