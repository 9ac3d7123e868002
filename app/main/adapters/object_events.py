"""The controllers' events, met by the recorder; an event that cannot be written is let go."""

import logging

from app.controllers.ports import EventType
from app.kube.bodies import EventFact, ObjectRef
from app.kube.errors import KubeError
from app.kube.events import EventRecorder
from app.wire.unstructured import Object, name, namespace, uid

log = logging.getLogger(__name__)


class ObjectEvents:
    """Events about any object."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    async def record(self, about: Object, event_type: EventType, reason: str, message: str) -> None:
        """Tell what happened to ``about``."""
        ref = ObjectRef(
            kind=about["kind"],
            api_version=about["apiVersion"],
            namespace=namespace(about),
            name=name(about),
            uid=uid(about),
        )
        fact = EventFact(about=ref, kind=event_type, reason=reason, message=message)
        try:
            await self._recorder.record(fact)
        except KubeError as error:
            log.warning("event not written", extra={"reason": reason, "error": str(error)})
