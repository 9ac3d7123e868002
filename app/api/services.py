"""What the HTTP edge needs, handed to it by the composition root."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from app.api.access import Access
from app.api.body import BadRequest
from app.api.questions import Questions
from app.cache.audit import Audit
from app.cache.cluster import ClusterCache
from app.service.calls.barrier import Barrier
from app.service.calls.binding import Binding
from app.service.calls.filtering import Filtering
from app.service.calls.preemption import Preemption
from app.service.cycle.parts import PlanningParts
from app.service.intake.feed import Feed
from app.service.ports import AuditTrail
from app.service.telling.reasons import Reasons
from app.service.telling.view.history import HistoryKeeper
from app.service.telling.view.views import Views


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderServices:
    """The use cases of one extender process.

    ``unready`` lists what readiness waits for (empty: ready); ``audit`` compares the ledger with a
    fresh listing; ``trail`` has the decisions that are kept, ``views`` what readers of the whole
    state are told, ``history`` the last hour.
    """

    cache: ClusterCache
    planning: PlanningParts
    reasons: Reasons
    filtering: Filtering
    barrier: Barrier
    binding: Binding
    preemption: Preemption
    feed: Feed
    audit: Callable[[], Awaitable[Audit]]
    trail: AuditTrail
    views: Views
    history: HistoryKeeper
    unready: Callable[[], Sequence[str]]
    notices: Callable[[], Sequence[str]]
    """What an operator should know though it stops nothing (a refused configuration)."""
    metrics: CollectorRegistry
    access: Access
    """The rights of readers."""
    questions: Questions = field(default_factory=Questions)

    def require_lead(self) -> None:
        """Raise BadRequest 503 where another replica leads: one that stands by plans nothing."""
        activity = self.planning.leadership.activity
        if not activity.active:
            raise BadRequest("; ".join(activity.notices), status=503)
