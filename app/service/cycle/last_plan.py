"""What planning came to last, for those that tell of it or act on it between cycles."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.cache.cluster import ClusterCache
from app.model.ids import GroupKey, PodUid
from app.model.plan import Loan, Plan
from app.model.reason import Refusal
from app.service.cycle.refused import Refused


@dataclass(slots=True, eq=False)
class LastPlan:
    """Why groups wait, which members lose their gates, and what gangs hold beyond a share."""

    cache: ClusterCache
    refused: Refused
    shown: frozenset[PodUid] = frozenset()
    """Members that only lacked nodes when all was planned last, and that lose their gates then."""
    loans: Mapping[GroupKey, Loan] = field(default_factory=dict)
    """What gangs held beyond the shares of their queues when all was planned last."""

    @property
    def refusals(self) -> Mapping[GroupKey, Refusal]:
        """Why each group that waits does so, as was decided last."""
        return self.refused.reasons

    def replace(self, plan: Plan) -> None:
        """All was planned, and ``plan`` is published already."""
        self.refused.replace(plan.refused, generation=plan.generation)
        self.shown = plan.shown
        self._note_loans(plan.loans)

    def clear(self) -> None:
        """No group waits for a place."""
        self.refused.replace({})
        self.shown = frozenset()
        self._note_loans({})

    def forget(self) -> None:
        """Another replica says why groups wait, and opens gates."""
        self.refused.clear()
        self.refused.note_causes()
        self.shown = frozenset()

    def _note_loans(self, loans: Mapping[GroupKey, Loan]) -> None:
        """Groups that borrow from now on, or not any more, are told of."""
        self.cache.signals.note_groups(self.loans.keys() ^ loans.keys())
        self.loans = loans
