"""Pods without a PodGroup whose owners may want them to be a gang (volcano.md §5.3)."""

from app.model.ids import PodUid
from app.model.pod import Owner, Pod

_OWNERS_KEPT = 10_000


class OwnersToAsk:
    """The pods by the UIDs of their owners, until it is known what each owner wants."""

    def __init__(self) -> None:
        self.by_owner: dict[str, dict[PodUid, Pod]] = {}
        self._apart: dict[str, None] = {}
        """Owners that want no gang, the latest known last."""

    def may_gather(self, owner: Owner) -> bool:
        """Whether the owner may want a gang, as far as is known."""
        return owner.may_gather and owner.uid not in self._apart

    def file(self, pod: Pod, owner: str) -> None:
        """File a pod that waits for what ``owner`` wants."""
        self.by_owner.setdefault(owner, {})[pod.uid] = pod

    def take_out(self, uid: PodUid, owner: str) -> None:
        """Take out a pod that was filed under ``owner``, whatever owner it has by now."""
        pods = self.by_owner.get(owner, {})
        pods.pop(uid, None)
        if not pods:
            self.by_owner.pop(owner, None)

    def stand_alone(self, owner: str) -> list[PodUid]:
        """The owner wants no gang, nor for pods to come; returns those that waited."""
        self._apart[owner] = None
        if len(self._apart) > _OWNERS_KEPT:
            del self._apart[next(iter(self._apart))]
        return list(self.by_owner.pop(owner, {}))
