"""What the scheduler writes about a pod: condition, nomination and events.

The condition is patched only when it changes, as the stock scheduler does, so that a constant text
costs one write. Repeated events are counted in a series.
"""

from __future__ import annotations

from hashlib import sha256

from app.sandbox.apiserver.errors import ApiError
from app.sandbox.apiserver.patches import STRATEGIC_PATCH
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.clock import Clock, micro_timestamp, timestamp
from app.wire.copying import copied
from app.wire.documents import (
    Document,
    ObjectName,
    condition,
    name_of,
    section,
    uid_of,
)

_EVENTS = "/events"
_NOTE_LIMIT = 1024


class Reporter:
    """Writes on behalf of one scheduler."""

    def __init__(self, server: ApiServer, *, clock: Clock, name: str) -> None:
        self._server = server
        self._clock = clock
        self._name = name

    def not_scheduled(
        self, pod: Document, *, reason: str, message: str, nominated: str | None
    ) -> None:
        """Condition, nomination (an empty one clears, None leaves it) and event."""
        self.event(pod, kind="Warning", reason="FailedScheduling", note=message)
        current = self._server.store.get("/pods", name_of(pod))
        if current is None or uid_of(current) != uid_of(pod):
            return
        status: Document = {}
        before = condition(current, "PodScheduled") or {}
        told = (before.get("status"), before.get("reason"), before.get("message"))
        if told != ("False", reason, message):
            status["conditions"] = [self._condition(before, reason=reason, message=message)]
        held = section(current, "status").get("nominatedNodeName") or ""
        if nominated is not None and nominated != held:
            status["nominatedNodeName"] = nominated or None
        if status:
            self._patch_status(pod, status)

    def nominate(self, pod: Document, node: str) -> None:
        """Tell where the pod is about to be bound, once what it needs there is prepared."""
        self._patch_status(pod, {"nominatedNodeName": node})

    def disruption(self, victim: Document, *, by: Document) -> None:
        """Why a victim goes, before it goes."""
        found = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{self._name}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": timestamp(self._clock.now()),
        }
        self._patch_status(victim, {"conditions": [found]})
        node = section(victim, "spec").get("nodeName")
        note = f"Preempted by pod {uid_of(by)} on node {node}"
        self.event(victim, kind="Normal", reason="Preempted", note=note)

    def event(self, pod: Document, *, kind: str, reason: str, note: str) -> None:
        """Write an event, or count an equal one up; ``kind`` is ``Normal`` or ``Warning``."""
        subject, namespace = name_of(pod).name, name_of(pod).namespace
        now = micro_timestamp(self._clock.now())
        note = note[:_NOTE_LIMIT]
        key = f"{subject}.{uid_of(pod)[:8]}.{reason.lower()}.{_digest(note)}"
        known = self._server.store.get(_EVENTS, ObjectName(namespace, key))
        if known is not None:
            counted = copied(known)
            series = section(counted, "series").get("count") or 1
            counted["series"] = {"count": series + 1, "lastObservedTime": now}
            self._server.store.put(_EVENTS, counted)
            return
        event: Document = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": key, "namespace": namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": subject,
                "namespace": namespace,
                "uid": uid_of(pod),
            },
            "reason": reason,
            "message": note,
            "type": kind,
            "action": "Binding" if reason == "Scheduled" else "Scheduling",
            "eventTime": now,
            "reportingComponent": self._name,
            "reportingInstance": f"{self._name}-sandbox",
            "source": {},
        }
        try:
            self._server.create(event)
        except ApiError:
            # The namespace is going: the event has no reader left.
            return

    def _condition(self, before: Document, *, reason: str, message: str) -> Document:
        same = before.get("status") == "False"
        since = before.get("lastTransitionTime") if same else None
        return {
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": since or timestamp(self._clock.now()),
            "reason": reason,
            "message": message,
        }

    def _patch_status(self, pod: Document, status: Document) -> None:
        target = self._server.target("/pods", name_of(pod), subresource="status")
        patch = {"metadata": {"uid": uid_of(pod)}, "status": status}
        try:
            self._server.operations.patch(target, patch, content_type=STRATEGIC_PATCH)
        except ApiError:
            # The pod is gone or bound meanwhile: there is nothing left to say about it.
            return


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
