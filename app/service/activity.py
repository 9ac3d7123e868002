"""Whether this replica decides: the one whose kube-scheduler holds the scheduler's Lease.

kube-scheduler calls the extender beside it, so two replicas must not both publish plans. The Lease
is kube-scheduler's own; its holder is ``<host name>_<uuid>`` and the sidecar has the same host
name. A Lease that was not renewed in time counts as free. As in client-go, "in time" is measured
from when *we* saw the last renewal: the time written in it is another clock's.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from app.model.lease import Lease

OTHER_LEADS = "another replica leads"
"""What held calls of a replica that stands by are answered with."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A Lease, and when we saw it renewed."""

    lease: Lease
    at: float


@dataclass(slots=True, eq=False)
class Activity:
    """``elected`` False: there is nothing to elect, this process always decides."""

    clock: Callable[[], float]
    elected: bool
    namespace: str
    name: str
    identity: str
    leases: dict[str, Seen] = field(default_factory=dict)

    def set_lease(self, lease: Lease) -> None:
        """A Lease was seen; being listed again renews nothing."""
        key = f"{lease.namespace}/{lease.name}"
        before = self.leases.get(key)
        if before is None or before.lease != lease:
            self.leases[key] = Seen(lease, self.clock())

    def drop_lease(self, key: str) -> None:
        """A Lease is gone."""
        self.leases.pop(key, None)

    @property
    def active(self) -> bool:
        """Whether our kube-scheduler leads now."""
        if not self.elected:
            return True
        holder = self._holder
        ours = holder == self.identity or holder.startswith(f"{self.identity}_")
        return bool(holder) and ours

    @property
    def notices(self) -> tuple[str, ...]:
        """Why this replica does not decide, for its users."""
        if self.active:
            return ()
        lease, holder = f"Lease {self.namespace}/{self.name}", self._holder
        if holder:
            return (f"stands by: {lease} is held by {holder}, not by {self.identity}",)
        told = "the kube-scheduler beside must elect (leaderElection), or this must not"
        return (f"stands by: no process holds {lease}; {told} (--leader-elect=false)",)

    @property
    def _holder(self) -> str:
        """The holder of the Lease; empty: there is none."""
        seen = self.leases.get(f"{self.namespace}/{self.name}")
        if seen is None or seen.at + seen.lease.duration < self.clock():
            return ""
        return seen.lease.holder
