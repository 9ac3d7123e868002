"""The lock of a node: one pod at a time is bound to it that has devices there.

A device plugin is not told which pod it serves: it takes the one with the oldest time. So the
annotation of the node is set before the Binding leaves, and the device plugin removes it when it
has served the pod. When the Binding fails it is removed here. A lock that nothing removed, after a
crash say, counts for :data:`LOCKED_S`.
"""

from app.model.ids import NodeName, PodUid
from app.service.ports import Clock, NodeAnnotator, Reaction, WriteError
from app.wire import times
from app.wire.errors import DecodeError

LOCKED_S = 300.0
"""As long as in Volcano."""


class NodeLocks:
    """The locks that were taken for pods whose Bindings are not answered yet."""

    def __init__(self, api: NodeAnnotator, *, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._taken: dict[tuple[PodUid, NodeName, str], str] = {}

    async def take(self, uid: PodUid, node: NodeName, keys: tuple[str, ...]) -> None:
        """Set these annotations for a pod.

        Raises WriteError, to be tried again, while another pod has the lock.
        """
        for key in keys:
            version, text = await self._api.read_node_annotation(node, key)
            mine = self._taken.get((uid, node, key))
            if mine is not None and text == mine:
                continue
            if text is not None and self._counts(text):
                raise WriteError(
                    Reaction.RETRY, f"node {node} is locked while another pod gets its devices"
                )
            now = times.seconds(self._clock())
            await self._set(node, key, now, version=version)
            self._taken[uid, node, key] = now

    async def give_back(self, uid: PodUid, node: NodeName, keys: tuple[str, ...]) -> None:
        """Remove what was set for a pod that is not bound; what fails ends by its time."""
        for key in keys:
            mine = self._taken.pop((uid, node, key), None)
            if mine is None:
                continue
            try:
                version, text = await self._api.read_node_annotation(node, key)
                if text == mine:
                    await self._set(node, key, None, version=version)
            except WriteError:
                continue

    def forget(self, uid: PodUid, node: NodeName, keys: tuple[str, ...]) -> None:
        """Leave the locks to the device plugin: the pod is bound."""
        for key in keys:
            self._taken.pop((uid, node, key), None)

    async def _set(self, node: NodeName, key: str, text: str | None, *, version: str) -> None:
        try:
            await self._api.annotate_node(node, {key: text}, version=version)
        except WriteError as error:
            if error.reaction is Reaction.CONFLICT:  # the node was written to meanwhile
                raise WriteError(Reaction.RETRY, str(error)) from error
            raise

    def _counts(self, text: str) -> bool:
        """Whether the lock is not too old; one without a time is of no account."""
        try:
            return self._clock() - times.parse(text) < LOCKED_S
        except DecodeError:
            return False
