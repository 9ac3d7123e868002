"""What pods and slots have to say of others on their nodes: rules about pods, and host ports."""

from app.cache.neighbours.pods_with_rules import PodsWithRules
from app.model.shape import HostPort, PodShape


class Rules:
    """Snapshots tell of holders while ``pods_with_rules`` or ``repelling`` has any."""

    def __init__(self) -> None:
        self.pods_with_rules = PodsWithRules()
        """Pods of ours and slots with a rule about other pods."""
        self.repelling = PodsWithRules()
        """Foreign pods that keep ours off."""
        self.ports: dict[str, frozenset[HostPort]] = {}
        """Host ports of those that ask for some."""

    @property
    def are_between_pods(self) -> bool:
        """Whether a rule makes it matter which pod is where."""
        return bool(self.pods_with_rules or self.repelling)

    def note(self, holder: str, shape: PodShape, *, ours: bool) -> None:
        """Take in what ``holder`` says; ``ours``: a pod that we place, or a slot for one.

        Most reports of a pod say the same again, which costs nothing where it is set anew.
        """
        looks = ours and shape.looks_at_pods
        self.pods_with_rules.put(holder, shape if looks else None)
        self.repelling.put(holder, shape if shape.pod_anti_affinity and not looks else None)
        if shape.host_ports:
            self.ports[holder] = frozenset(shape.host_ports)
        else:
            self.ports.pop(holder, None)

    def drop(self, holder: str) -> None:
        """Drop a holder that has no rules, or is gone."""
        self.pods_with_rules.drop(holder)
        self.repelling.drop(holder)
        self.ports.pop(holder, None)
