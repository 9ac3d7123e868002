"""Whether this replica decides: the one whose kube-scheduler holds the scheduler's Lease.

kube-scheduler calls the extender beside it, so two replicas must not both publish plans. The Lease
is kube-scheduler's own; its holder is ``<host name>_<uuid>`` and the sidecar has the same host
name. A Lease that was not renewed in time counts as held by nobody.
"""

from dataclasses import dataclass, field

from app.model.lease import Lease
from app.service.ports import Clock


@dataclass(slots=True, eq=False)
class Activity:
    """``elected`` False: there is nothing to elect, this process always decides."""

    clock: Clock
    elected: bool
    namespace: str
    name: str
    identity: str
    leases: dict[str, Lease] = field(default_factory=dict)

    def set_lease(self, lease: Lease) -> None:
        """A Lease was seen."""
        self.leases[f"{lease.namespace}/{lease.name}"] = lease

    def drop_lease(self, key: str) -> None:
        """A Lease is gone."""
        self.leases.pop(key, None)

    @property
    def active(self) -> bool:
        """Whether our kube-scheduler leads now."""
        if not self.elected:
            return True
        lease = self.leases.get(f"{self.namespace}/{self.name}")
        if lease is None or lease.renew + lease.duration < self.clock():
            return False
        return lease.holder == self.identity or lease.holder.startswith(f"{self.identity}_")
