"""Pods of ours that are gone: a call of kube-scheduler does not bring them back.

Its watch may be some milliseconds behind ours, so it asks for pods that we saw go. Such a pod looks
like one that our watch has not shown yet; taken in, it would keep room and count as a member that
came. A UID never comes back, so it is enough to remember those that went; late calls come soon, so
the latest are enough.
"""

from app.model.ids import PodUid

_KEPT = 10_000


class Departed:
    """At most ``limit`` UIDs; those that are gone longest are forgotten first."""

    def __init__(self, *, limit: int = _KEPT) -> None:
        self._limit = limit
        self._uids: dict[PodUid, None] = {}

    def __contains__(self, uid: PodUid) -> bool:
        return uid in self._uids

    def add(self, uid: PodUid) -> None:
        """Note that the pod is gone."""
        self._uids.pop(uid, None)
        self._uids[uid] = None
        if len(self._uids) > self._limit:
            del self._uids[next(iter(self._uids))]

    def discard(self, uid: PodUid) -> None:
        """Note that the pod exists after all."""
        self._uids.pop(uid, None)
