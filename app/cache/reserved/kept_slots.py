"""Room kept for members that do not exist yet: how it is made, found again and given back.

A slot holds room like a pod: it has a charge on its node and its shape's rules about other pods.
That one is given back is told to the registry. When slots are made, or one is taken for a member
that came, more of the group changes at the same time, and the caller tells it.
"""

from app.cache.gangs.groups import Group
from app.cache.gangs.members import Slot
from app.cache.gangs.missing import excess, surplus
from app.cache.gangs.registry import Registry
from app.cache.neighbours.rules import Rules
from app.cache.nodes.usage import NodeUsage
from app.model.ids import GroupKey
from app.model.parts import part_of
from app.model.plan import Placement
from app.model.pod import Pod


class KeptSlots:
    """The slots of all groups by holder, which names the group."""

    def __init__(self, node_usage: NodeUsage, registry: Registry, rules: Rules) -> None:
        self._node_usage = node_usage
        self._registry = registry
        self._rules = rules

    def add(self, group: Group, placement: Placement, *, now: float) -> None:
        """Keep room where ``placement`` says, where there is some, for a member like its task."""
        task, node = placement.task, placement.node
        group.serial += 1
        holder = f"{group.key}#{group.serial}"
        self._node_usage.charge(holder, node, task.shape.requests, reserved=True, releasing=False)
        self._rules.note(holder, task.shape, ours=True)
        slot = Slot(
            holder=holder,
            role=task.role,
            node=node,
            shape=task.shape,
            since=now,
            serial=group.serial,
            exchange=placement.exchange,
            sub_group=placement.sub_group,
        )
        group.add_slot(slot)

    def find(self, holder: str) -> tuple[Group, Slot] | None:
        """The slot of that name, and whose it is."""
        group = self._registry.groups.get(GroupKey(holder.rpartition("#")[0]))
        slot = group.slots.get(holder) if group else None
        return (group, slot) if group and slot else None

    def drop(self, holder: str) -> bool:
        """Give the room back; returns whether there was such a slot."""
        kept = self.find(holder)
        if kept is None:
            return False
        group, _ = kept
        self._vacate(group, holder)
        self._registry.changed(group)
        return True

    def drop_surplus(self, group: Group) -> None:
        """Give back the slots that its minimum does not need, the latest of them."""
        for slot in surplus(group)[-excess(group) :]:
            self.drop(slot.holder)

    def take(self, group: Group, pod: Pod, *, now: float) -> Slot | None:
        """Take out the slot that is not needed any more now that ``pod`` has come.

        That is one of its role, for its sub-group, else one of a role of which more are kept than
        are missing; one that serves it if there is such a one.
        """
        slot = _best(group, pod)
        if slot is not None:
            self._vacate(group, slot.holder)
            group.filled_at = now
        return slot

    def _vacate(self, group: Group, holder: str) -> None:
        group.remove_slot(holder)
        self._node_usage.discharge(holder)
        self._rules.drop(holder)


def _best(group: Group, pod: Pod) -> Slot | None:
    sub_group = part_of(pod.role, pod.labels, group.sub_groups).sub_group
    slots = group.open_slots
    slot = slots.best_for(pod, sub_group) or slots.first_of(pod.role, sub_group)
    if slot is not None:
        return slot
    beyond = surplus(group)
    return next((slot for slot in beyond if slot.serves(pod)), next(iter(beyond), None))
