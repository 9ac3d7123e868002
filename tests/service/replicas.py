"""A replica among several, and who of them leads."""

from app.model.lease import Lease
from app.service.activity import Activity
from app.service.limits import Limits
from tests.service.rig import Rig
from tests.service.virtual_time import clock


def lease(holder: str, *, renew: float = 1000.0, name: str = "scheduler") -> Lease:
    """The Lease of that holder's kube-scheduler, good for 15 s."""
    return Lease(namespace="pumice-system", name=name, holder=holder, renew=renew, duration=15)


def replica(limits: Limits | None = None) -> Rig:
    """A rig that decides only while ``host-a`` leads."""
    activity = Activity(
        clock=clock, elected=True, namespace="pumice-system", name="scheduler", identity="host-a"
    )
    rig = Rig(limits, activity=activity)
    rig.node("n1", "n2")
    return rig


def lead(rig: Rig, holder: str) -> None:
    """It leads from now on, for 15 s."""
    rig.see("leases", lease(f"{holder}_1", renew=clock()))
