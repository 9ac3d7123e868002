"""Evictions in queues that hold more than their capability, and whose annotation asks for that.

Volcano evicts no pod for a capability that was cut; nor does a queue here without the annotation
(:data:`~app.model.workload.EVICT_OVER_CAPABILITY`). No configured action is needed. Queues below
come before those above them, as what they give up counts for these too.
"""

from app.core.actions.cycle import Cycle, Steps
from app.core.victims.over_capability import excess_of, give_up, plan_of
from app.core.victims.units import pods_of


def evict_over_capability(cycle: Cycle) -> Steps:
    """Let each such queue give up the pods that cost least."""
    ledger, queues = cycle.ledger, cycle.snapshot.queues
    asking = [name for name, queue in queues.items() if queue.evicts_over_capability]
    for name in sorted(asking, key=lambda each: (-len(ledger.path(each)), each)):
        excess = excess_of(ledger, cycle.opened, name)
        if excess is not None and excess.over.any():
            given_up = give_up(excess, ledger, cycle.opened, now=cycle.now)
            if given_up.units:
                plan = plan_of(given_up, ledger)
                for at in pods_of(given_up.units):
                    ledger.evict(at)
                cycle.evict(plan, None, None)
        yield
