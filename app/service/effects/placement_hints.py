"""How a pod is told its place, behind our gate or before kube-scheduler.

Behind the gate: as configured, unless kube-scheduler would refuse a pod that is told so: then
nothing is said, and Filter guides it. One that was pinned and refused before, as others take room
that we have reserved, is not pinned again: it can follow when its place moves.

kube-scheduler may not offer a pod without a gate its node: of many nodes it looks at a sample. Then
the pod takes the place of an equal one. A pod whose place is exchanged with no other is nominated,
so that kube-scheduler tries that node before all others. So it is behind the gate when nothing was
to be said of the place.
"""

from app.cache.gangs.groups import Group
from app.cache.gangs.members import Member
from app.model.exchange import NO_EXCHANGE
from app.model.pod import Pod
from app.service.limits import PlacementHint

VCJOB = "batch.volcano.sh/v1alpha1"


def hint_for(member: Member, group: Group, *, configured: PlacementHint) -> PlacementHint:
    """The hint for a member of ``group``; never AUTO."""
    pod, hint = member.pod, configured
    if hint is PlacementHint.GUIDE and member.exchange_class == NO_EXCHANGE:
        hint = PlacementHint.NOMINATE
    if hint is PlacementHint.AUTO:
        hint = PlacementHint.PIN if _is_recreated(pod) else PlacementHint.NOMINATE
    if hint is PlacementHint.PIN and not pod.shape.bears_pin:
        return PlacementHint.GUIDE
    if hint is PlacementHint.PIN and pod.is_second_try:
        hint = PlacementHint.NOMINATE
    if hint is PlacementHint.NOMINATE and _must_spread(pod, group):
        return PlacementHint.GUIDE
    return hint


def lacks_nomination(member: Member, group: Group) -> bool:
    """Whether a planned member without a gate has to be nominated.

    Not one that is pinned, and not one that was told its node already.
    """
    pod = member.pod
    is_settled = member.exchange_class == NO_EXCHANGE and not pod.pinned
    if not is_settled or pod.gates or member.told or pod.nominated == member.node:
        return False
    hint = hint_for(member, group, configured=PlacementHint.NOMINATE)
    return hint is PlacementHint.NOMINATE


def _is_recreated(pod: Pod) -> bool:
    """Whether a controller makes the pod anew when its node turns out not to take it."""
    owner = pod.owner
    return owner is not None and owner.api_version == VCJOB and owner.kind == "Job"


def _must_spread(pod: Pod, group: Group) -> bool:
    """Whether members would refuse one another by nominations.

    kube-scheduler counts nominated pods on the one node that it looks at and on no other, so those
    that are on their way make every node look too full.
    """
    shapes = (pod.shape, *group.role_shapes.values())
    return any(shape.must_spread for shape in shapes)
