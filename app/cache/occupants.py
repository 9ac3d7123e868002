"""What the holder of a charge needs of its node beside room.

A holder is a member of a group of ours, a slot, or another pod.
"""

from collections.abc import Callable, Mapping

from app.cache.gangs.members import Member
from app.cache.nodes.devices import DeviceOccupant
from app.cache.nodes.numa import Occupant
from app.cache.reserved.kept_slots import KeptSlots
from app.model.ids import PodUid
from app.model.numa import NUMA_DECISION
from app.model.pod import Pod, TaskStatus
from app.model.running import NO_GROUP
from app.model.shape import VolumeAsk
from app.wire.objects.numatopologies import read_decision


def _unknown(_uid: PodUid) -> Pod | None:
    return None


class Occupants:
    """Answers for holders of charges; ``others`` finds any pod with a place."""

    def __init__(self, members: Mapping[PodUid, Member], slots: KeptSlots) -> None:
        self._members = members
        self._slots = slots
        self.others: Callable[[PodUid], Pod | None] = _unknown

    def of_cpus(self, holder: str) -> Occupant | None:
        """The pod of ours, or slot, that needs cpus of its own."""
        member = self._members.get(PodUid(holder))
        if member is not None:
            pod, need = member.pod, member.pod.shape.numa
            said = pod.annotations.get(NUMA_DECISION) if pod.node else None
            decided = read_decision(said) if said is not None else None
            runs = pod.status is TaskStatus.RUNNING
            if need is None:
                return None
            return Occupant(need, f"{pod.namespace}/{pod.name}", runs, decided)
        kept = self._slots.find(holder)
        need = kept[1].shape.numa if kept else None
        return None if need is None else Occupant(need)

    def of_devices(self, holder: str) -> DeviceOccupant | None:
        """The pod or slot that asks for devices."""
        member = self._members.get(PodUid(holder))
        kept = None if member is not None else self._slots.find(holder)
        if kept is not None:
            group, slot = kept
            asked = slot.shape.devices
            return None if asked is None else DeviceOccupant(asked, group.key)
        pod = self.others(PodUid(holder))
        if pod is None or pod.shape.devices is None:
            return None
        group_key = NO_GROUP if member is None else member.group
        said = pod.annotations if pod.node else None
        return DeviceOccupant(pod.shape.devices, group_key, said, ours=member is not None)

    def volumes(self, holder: str) -> VolumeAsk | None:
        """The volumes that the pod or slot uses."""
        pod = self.others(PodUid(holder))
        if pod is not None:
            return pod.shape.volumes
        kept = self._slots.find(holder)
        return None if kept is None else kept[1].shape.volumes
