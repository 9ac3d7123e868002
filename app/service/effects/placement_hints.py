"""How a pod behind our gate is told its place.

As configured, unless kube-scheduler would refuse a pod that is told so: then nothing is said, and
Filter guides it. One that was pinned and refused before, as others take room that we have promised,
is not pinned again: it can follow when its place moves.
"""

from app.cache.gangs.groups import Group
from app.model.pod import Pod
from app.service.limits import PlacementHint

VCJOB = "batch.volcano.sh/v1alpha1"


def hint_for(pod: Pod, group: Group, *, configured: PlacementHint) -> PlacementHint:
    """The hint for a member of ``group``; never AUTO."""
    hint = configured
    if hint is PlacementHint.AUTO:
        hint = PlacementHint.PIN if _is_recreated(pod) else PlacementHint.NOMINATE
    if hint is PlacementHint.PIN and not pod.shape.bears_pin:
        return PlacementHint.GUIDE
    if hint is PlacementHint.PIN and pod.is_second_try:
        hint = PlacementHint.NOMINATE
    if hint is PlacementHint.NOMINATE and _must_spread(pod, group):
        return PlacementHint.GUIDE
    return hint


def _is_recreated(pod: Pod) -> bool:
    """Whether somebody makes it anew when its node turns out not to take it."""
    owner = pod.owner
    return owner is not None and owner.api_version == VCJOB and owner.kind == "Job"


def _must_spread(pod: Pod, group: Group) -> bool:
    """Whether members would refuse one another by nominations.

    kube-scheduler counts nominated pods on the one node that it looks at and on no other, so those
    that are on their way make every node look too full.
    """
    shapes = (pod.shape, *group.role_shapes.values())
    return any(shape.must_spread for shape in shapes)
