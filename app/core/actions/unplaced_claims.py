"""Claims of admitted gangs that no place can be kept for, as nothing tells how large a member is.

The ``minResources`` of Spark are for a driver and its executors, and the minimum takes the driver
alone: as one pod they fit no node. Such a gang has no slots, so its claim as a sum is all that
keeps others from its room until its pods come. It counts for others as if the gang had places,
provided that the sum is free when it begins to count.
"""

from app.core.accounts import claimable
from app.core.actions.cycle import Cycle
from app.core.gangs import slots
from app.core.gangs.need import Need
from app.model.gang import Gang


def commit(cycle: Cycle, gang: Gang) -> None:
    """Let the claim of ``gang`` count for others too, if no place can be kept for its members."""
    if not cycle.in_play(gang) or gang.counts.tasks or gang.counts.slots:
        return
    if not gang.awaits_members or gang.min_request is None or not no_part_fits(cycle, gang):
        return
    if gang.unplaced_claim or (claimable(gang) <= cycle.free()).all():
        cycle.ledger.commit(gang)
        cycle.unplaced_claims.add(gang.key)


def no_part_fits(cycle: Cycle, gang: Gang) -> bool:
    """Whether members that do not exist would fit no node as equal parts of ``minResources``.

    They need not be that large: the ``minResources`` of Spark have the executors, of which the
    minimum takes none.
    """
    if gang.role_shapes or Need.of(gang, cycle.ledger.gang(gang)).met:
        return False
    parts = slots.least_slots(gang, cycle.snapshot, made=cycle.slot_shapes)
    return any(cycle.finder.never(part) is not None for part, _ in parts)
