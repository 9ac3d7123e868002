"""The times and counts of the protocol, in one frozen value."""

from dataclasses import dataclass
from enum import StrEnum


class PlacementHint(StrEnum):
    """How an ungated pod is told its place (design §4)."""

    PIN = "pin"
    """Required node affinity in the PATCH that opens the gate: one write, cannot change."""
    NOMINATE = "nominate"
    """``status.nominatedNodeName`` first: two writes, can change."""
    GUIDE = "guide"
    """Nothing is told; Filter and Prioritize steer."""
    AUTO = "auto"
    """PIN for pods of a vcjob (its controller recreates them), NOMINATE for all others."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, unless the name says otherwise.

    ``barrier_limit_s``, and the tries of the Binding after it, must stay below the scheduler's
    ``httpTimeout`` (a Bind that is answered after it would be bound behind the scheduler's back).
    """

    cycle_gap_s: float = 0.02
    cycle_idle_s: float = 1.0
    slice_s: float = 0.0005
    barrier_s: float = 20.0
    """A gang none of whose missing members came to Bind for this long is given back."""
    barrier_limit_s: float = 45.0
    """No Bind is held longer."""
    planned_s: float = 30.0
    """A planned pod for which no Filter or Bind came gives its room back."""
    prebind_s: float = 300.0
    """Not while kube-scheduler makes its volumes or devices ready: that may take so long, and the
    room of its gang is kept as well."""
    backlog_s: float = 5.0
    """While kube-scheduler asked for any pod this recently it works off a queue: that may take
    ten times as long."""
    slot_s: float = 60.0
    """How long room is kept for pods that are not created."""
    failed_s: float = 3.0
    """Room that a failed member left is given to others when its owner has done nothing by then."""
    observed_s: float = 30.0
    """A pod seen in a Filter call that the watch never shows is forgotten."""
    stuck_s: float = 3.0
    """A gang that has only part of its places and cannot get the others gives them back."""
    veto_s: float = 60.0
    hold_base_s: float = 1.0
    hold_max_s: float = 60.0
    protect_above: int = 36
    """More ungated pods than this waiting in the scheduler's queue: they are answered by Error."""
    bind_patience_s: float = 6.0
    """How long a Binding is tried again while the API server fails."""
    burst_s: float = 0.02
    """Between two bursts of Bindings."""
    evictions_per_s: float = 100.0
    """The pods of one plan go at once; many plans together no faster than this."""
    victim_s: float = 60.0
    """A victim that is still there so long after its grace period does not go: other pods are
    looked for, once. So long a PodDisruptionBudget may forbid an eviction."""
    intent_s: float = 30.0
    """A plan whose intent is not stored by then is given up: no pod was evicted."""
    wasted_base_s: float = 10.0
    """After evictions in vain none are decided on for the group for so long, twice as long each
    time."""
    wasted_max_s: float = 600.0
    bindings_in_flight: int = 64
    """How many Bindings are under way at most: as many as there are connections for them.

    A call that waits for a connection could not be told any more that its client is gone.
    """
    writes_in_flight: int = 32
    hides_other_namespaces: bool = False
    """Whether conditions and events name no object of another namespace."""
    hint: PlacementHint = PlacementHint.AUTO
    binds_foreign: bool = False
    """Whether pods of other schedulers are bound too, as form C needs it."""

    def in_prebind_s(self, told: float | None) -> float:
        """``prebind_s``, or what the configuration has ``told`` instead."""
        return self.prebind_s if told is None else told
