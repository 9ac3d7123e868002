"""Members beyond a minimum that may be created where a ResourceQuota counts those that wait."""

from collections.abc import Iterable, Mapping

from app.cache.cluster import ClusterCache
from app.cache.gangs.groups import Group
from app.model.amounts import LIMITS, PODS, Amounts
from app.model.workload import Quota
from app.service.cycle.queries import Queries

_COUNT, _REQUESTS = "count/", "requests."


def bearable_beyond(
    cache: ClusterCache, queries: Queries, group: Group
) -> Mapping[str, int] | None:
    """How many more members of each role its queue could hold now; None: as many as there are.

    The latter where no ResourceQuota of the namespace counts a pod that only waits.
    """
    quotas = [quota for quota in cache.quotas.values() if quota.namespace == group.namespace]
    view = cache.registry.view(group.key) if quotas else None
    if view is None or view.queue not in cache.queues:
        return None
    if not any(_counts(quotas, shape.requests) for shape in view.role_shapes.values()):
        return None
    return queries.bearable(view)


def _counts(quotas: Iterable[Quota], requests: Amounts) -> bool:
    """Whether any of the quotas counts a pod with these requests; scoped quotas are left out."""
    asked = {PODS, *(name for name, amount in requests if amount)}
    return any(
        name.startswith(LIMITS) or name.removeprefix(_COUNT).removeprefix(_REQUESTS) in asked
        for quota in quotas
        if not quota.scoped
        for name, _ in quota.hard
    )
