"""What a queue would give up: the decision of a cycle, asked for without making it."""

from dataclasses import dataclass, replace

from app.core.actions import begun
from app.core.ledger import Ledger
from app.core.policy import Policies
from app.core.tiers import open_policies
from app.core.victims.over_capability import Excess, GivenUp, excess_of, give_up
from app.model.amounts import Amounts
from app.model.ids import QueueName
from app.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class CapabilityPreview:
    """What a queue holds over a capability, and what it would give up for that.

    ``excess`` None: no plugin heeds the limits of queues. ``snapshot`` tells what runs.
    """

    snapshot: Snapshot
    excess: Excess | None
    given_up: GivenUp | None


def preview_capability(
    snapshot: Snapshot,
    policies: Policies,
    *,
    queue: QueueName,
    capability: Amounts | None,
    now: float,
) -> CapabilityPreview:
    """What ``queue`` would give up with that ``capability`` (None: its own).

    Whether it says that its pods may be evicted does not matter. ``now`` is seconds since the
    epoch. Raises ``KeyError`` for a queue that does not exist.
    """
    about = snapshot.queues[queue]
    if capability is not None:
        cut = replace(about, capability=capability)
        snapshot = replace(snapshot, queues={**snapshot.queues, queue: cut})
    ledger = Ledger(snapshot)
    begun.count_on(ledger)
    opened = open_policies(policies, ledger, now=now)
    excess = excess_of(ledger, opened, queue)
    if excess is None or not excess.over.any():
        return CapabilityPreview(snapshot, excess, None)
    return CapabilityPreview(snapshot, excess, give_up(excess, ledger, opened, now=now))
