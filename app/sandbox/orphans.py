"""Pods whose node is gone: Failed and deleted by force, as kube-controller-manager's podgc does.

Only this does it: their kubelet is gone with the node, and a controller that keeps a pod alive does
not make another while this one seems to run. A node may only be late (pods can be bound before it
registers), so it has to be missing for a while first.
"""

from __future__ import annotations

import logging

from app.sandbox.apiserver.deletion import DeleteOptions
from app.sandbox.apiserver.errors import ApiError
from app.sandbox.apiserver.patches import STRATEGIC_PATCH
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.clock import Clock, timestamp
from app.wire.documents import Document, ObjectName, is_terminal, name_of, section, uid_of

logger = logging.getLogger(__name__)

PERIOD_S = 20.0
QUARANTINE_S = 40.0
_PODS = "/pods"
_NODES = "/nodes"


class OrphanCollector:
    """Looks every 20 s for pods whose node was missing for 40 s."""

    def __init__(self, server: ApiServer, *, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._missing: dict[str, float] = {}
        """Nodes that pods are bound to and that do not exist, and since when that is known."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self._look()
            await self._clock.sleep(PERIOD_S)

    def _look(self) -> None:
        orphans = [pod for pod in self._server.store.ordered(_PODS) if self._is_orphan(pod)]
        now = self._clock.now()
        self._missing = {_node(pod): self._missing.get(_node(pod), now) for pod in orphans}
        for pod in orphans:
            if now - self._missing[_node(pod)] >= QUARANTINE_S:
                self._try_to_take_away(pod)

    def _is_orphan(self, pod: Document) -> bool:
        node = _node(pod)
        return bool(node) and self._server.store.get(_NODES, ObjectName("", node)) is None

    def _try_to_take_away(self, pod: Document) -> None:
        fields = {"pod": str(name_of(pod)), "node": _node(pod)}
        try:
            self._take_away(pod)
        except ApiError as error:  # it went with another one, or a finalizer keeps it
            logger.warning("pod not deleted", extra={**fields, "error": str(error)})
        else:
            logger.info("pod deleted, its node is gone", extra=fields)

    def _take_away(self, pod: Document) -> None:
        """Make the pod Failed, so that watchers learn how it ended, then delete it."""
        if not is_terminal(pod):
            target = self._server.target(_PODS, name_of(pod), subresource="status")
            patch = {"phase": "Failed", "conditions": [self._disruption()]}
            self._server.operations.patch(target, {"status": patch}, content_type=STRATEGIC_PATCH)
        self._server.delete(_PODS, name_of(pod), DeleteOptions(grace_seconds=0, uid=uid_of(pod)))

    def _disruption(self) -> Document:
        return {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "lastTransitionTime": timestamp(self._clock.now()),
        }


def _node(pod: Document) -> str:
    return section(pod, "spec").get("nodeName") or ""
