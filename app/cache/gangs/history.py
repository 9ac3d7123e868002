"""Finished pods whose PodGroup is not there: they do not count until it comes (back).

A job that is aborted loses its PodGroup and keeps its finished pods; once it is resumed it gets
another one of the same name, and these pods count for its minimum again (volcano.md §3.1).
"""

from app.model.ids import GroupKey, PodUid
from app.model.pod import Pod


class History:
    """Pods by the group they name; a pod is in it once."""

    def __init__(self) -> None:
        self._pods: dict[GroupKey, dict[PodUid, Pod]] = {}
        self._groups: dict[PodUid, GroupKey] = {}

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._groups

    def keep(self, pod: Pod) -> None:
        """Note a pod that is not here."""
        self._pods.setdefault(pod.group, {})[pod.uid] = pod
        self._groups[pod.uid] = pod.group

    def drop(self, uid: PodUid) -> None:
        """Forget a pod, if it is here."""
        key = self._groups.pop(uid, None)
        if key is None:
            return
        pods = self._pods[key]
        del pods[uid]
        if not pods:
            del self._pods[key]

    def take(self, key: GroupKey) -> list[Pod]:
        """Hand out the pods of a group, which are not here any more then."""
        pods = list(self._pods.pop(key, {}).values())
        for pod in pods:
            del self._groups[pod.uid]
        return pods
