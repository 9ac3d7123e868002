"""The conditions of a PodGroup: their types, and what a reason says of itself."""

from typing import Final

UNSCHEDULABLE: Final = "Unschedulable"
SCHEDULED: Final = "Scheduled"
RESERVED: Final = "Reserved"
PLACED: Final = "Placed"
"""The reason of a `Reserved` condition that nothing else is to be said of."""
