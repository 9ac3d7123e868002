"""The conditions of a PodGroup: their types, and words in them that readers look for."""

from typing import Final

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULED: Final = "Scheduled"
RESERVED: Final = "Reserved"
PLACED: Final = "Placed"
"""The reason of a `Reserved` condition that nothing else is to be said of."""
BORROWS: Final = "borrows"
"""How the message begins that tells what a gang holds beyond the share of its queue."""
