"""Amounts of resources by name, in integers.

Units: ``cpu`` in milli-cores, ``memory``, ``ephemeral-storage`` and ``hugepages-*`` in bytes, every
other resource in whole units. With integers Volcano's epsilon of 0.1 (volcano.md §3.1) can only
ever separate equal numbers, so its ``LessEqual`` is the plain integer comparison.
"""

from collections.abc import Mapping

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"

_NATIVE = frozenset({CPU, MEMORY, PODS, "ephemeral-storage"})
_NATIVE_FAMILIES = ("hugepages-", "attachable-volumes-")
LIMITS = "limits."
"""What a quota calls the limits of pods begins so: ``limits.cpu``."""
REQUESTS = "requests."
"""And their requests: ``requests.cpu`` beside ``cpu``, ``requests.nvidia.com/gpu``."""
COUNTED_PODS = "count/pods"
"""The number of pods in quotas, of those that have ended too."""
_OF_QUOTAS = ("count/", REQUESTS, LIMITS)

DEVICE_CLASS = "deviceclass/"
"""The number of devices of a class is called so: ``deviceclass/gpu.example.com``."""
OF_CLASS = ".deviceclass/"
"""And a capacity of such devices: ``memory.deviceclass/gpu.example.com``."""

Amounts = tuple[tuple[str, int], ...]
"""Sorted ``(resource, amount)`` pairs: hashable, independent of any axis."""

UNLIMITED = 1 << 60
"""A limit that nothing reaches; small enough that eight of them add up without overflow."""

LARGEST = 1 << 50
"""What one node has, or one group or queue asks for, at most: a pebibyte. Thousands add up."""

LARGEST_POD = 1 << 46
"""What one pod asks for at most: 64 TiB. Every pod of a cluster, and every slot, adds up."""


def amounts(values: Mapping[str, int]) -> Amounts:
    """The canonical form of ``values``: sorted by name, zeros kept (a zero limit is a limit)."""
    return tuple(sorted(values.items()))


def is_of_nodes(name: str) -> bool:
    """Whether a node can have such a resource.

    Other names only quotas know: ``count/pods``, ``requests.cpu``, ``limits.memory``, ``services``.
    They are no part of what a gang needs (Volcano's ``NewResource`` leaves them out too).
    """
    if name.startswith(_OF_QUOTAS):
        return False
    return "/" in name or name in _NATIVE or name.startswith(_NATIVE_FAMILIES)


def is_of_class(name: str) -> bool:
    """Whether a resource is a number of devices of a class, or a capacity of them."""
    return name.startswith(DEVICE_CLASS) or OF_CLASS in name


def is_best_effort(requests: Amounts) -> bool:
    """True when nothing but ``pods`` is requested."""
    return all(amount == 0 or name == PODS for name, amount in requests)
