"""What the use cases need of the outside, as small protocols.

Times are seconds of one steady clock: the wall time at the start plus what has passed since, so a
jump of the machine's clock moves no deadline.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, Protocol

from app.model.decision import AuditAnswer, AuditQuestion
from app.model.ids import NodeName
from app.model.load import MetricsConf, NodeLoad
from app.model.pod import Owner, Pod

Clock = Callable[[], float]
EventType = Literal["Normal", "Warning"]


class Reaction(Enum):
    """What a failed write asks of the caller."""

    GONE = "gone"
    """The object does not exist (any more), or its name is another one's by now."""
    CONFLICT = "conflict"
    """The object is not as expected: look at it before doing anything."""
    REFUSED = "refused"
    """Invalid or forbidden: trying again does not help."""
    RETRY = "retry"
    """The API server is overloaded, failing or away."""
    BUDGET = "budget"
    """A PodDisruptionBudget forbids the eviction for now; the message has its words."""


class WriteError(Exception):
    """A write that did not happen. ``retry_after_s`` is what the server asked for, if anything."""

    def __init__(
        self, reaction: Reaction, message: str, *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.reaction = reaction
        self.retry_after_s = retry_after_s


class Binder(Protocol):
    """Binds pods, and looks at one when a binding conflicted."""

    async def bind(
        self, namespace: str, name: str, *, uid: str, node: str, annotations: Mapping[str, str]
    ) -> None:
        """Bind the pod with that UID to ``node``, with these annotations; raises WriteError."""

    async def read_pod(self, namespace: str, name: str) -> Pod | None:
        """The pod as stored now, None when there is none; raises WriteError."""


class NodeAnnotator(Protocol):
    """Reads and writes annotations of nodes."""

    async def read_node_annotation(self, node: str, key: str) -> tuple[str, str | None]:
        """The version of the node, and the annotation if it has it; raises WriteError."""

    async def annotate_node(
        self, node: str, annotations: Mapping[str, str | None], *, version: str
    ) -> None:
        """Set annotations, or remove those that are None, on the node of that version.

        Raises WriteError: CONFLICT where it has another one.
        """


class OwnerReader(Protocol):
    """Looks at the controllers of pods."""

    async def read_least_members(self, owner: Owner, *, namespace: str) -> int:
        """How many of the owner's pods belong together; 1 if it is gone. Raises WriteError."""


class PodWriter(Protocol):
    """Opens gates and wakes pods.

    Every write is for the pod with one UID (a JSON patch tests it itself); when the name is another
    pod's by now, the one that was meant is GONE.
    """

    async def patch_pod(
        self, namespace: str, name: str, json_patch: Sequence[Mapping[str, object]]
    ) -> None:
        """Apply a JSON patch; raises WriteError."""

    async def patch_pod_status(
        self, namespace: str, name: str, merge: Mapping[str, object], *, uid: str
    ) -> None:
        """Merge into the status; raises WriteError."""

    async def wake_pod(
        self, namespace: str, name: str, *, uid: str, token: str, by_label: bool = False
    ) -> None:
        """Set our annotation to ``token``, so that kube-scheduler tries the pod again.

        ``by_label``: a label too, for a pod that its rule about other pods' labels refused.
        """

    async def mark_evicted(self, namespace: str, name: str, *, uid: str, text: str) -> None:
        """Tell the pod that we are about to evict it: ``text`` names the action and the preemptor.

        The job controller counts such an eviction as no failure of the pod. Raises WriteError.
        """


class GroupWriter(Protocol):
    """Writes PodGroups and queues."""

    async def patch_pod_group(self, namespace: str, name: str, merge: Mapping[str, object]) -> None:
        """Merge into the PodGroup, its status included; raises WriteError."""

    async def create_queue(self, body: Mapping[str, object]) -> None:
        """Create a queue; raises WriteError (CONFLICT when it exists)."""

    async def patch_queue_status(self, name: str, merge: Mapping[str, object]) -> None:
        """Merge into the queue's status; raises WriteError."""


class EventSink(Protocol):
    """Tells users what happened."""

    async def record_event(
        self,
        *,
        kind: str,
        api_version: str,
        namespace: str,
        name: str,
        uid: str,
        event_type: EventType,
        reason: str,
        message: str,
    ) -> None:
        """Record an event about an object; raises WriteError."""


class Evictor(Protocol):
    """Evicts pods by the Eviction API."""

    async def evict(self, namespace: str, name: str, *, uid: str) -> None:
        """Evict the pod with that UID, with the grace period that it asks for.

        Raises WriteError: GONE when there is no such pod (any more), BUDGET when budgets forbid it.
        A pod of a namespace that is being deleted goes with that: nothing is raised.
        """


class IntentStore(Protocol):
    """Keeps the texts of intents of evictions (:mod:`app.wire.intents`), which outlive a process.

    They are ConfigMaps of the namespace of the installation, with a label that names the scheduler;
    no tenant can write there.
    """

    async def create_intent(self, name: str, text: str) -> None:
        """Store one; raises WriteError (CONFLICT when there is one of that name)."""

    async def delete_intent(self, name: str) -> None:
        """Delete one; raises WriteError (GONE when there is none of that name)."""

    async def list_intents(self) -> Mapping[str, str]:
        """The text of each by name, as stored now; raises WriteError."""


class PodLister(Protocol):
    """Lists all pods afresh (for the ledger's audit)."""

    async def list_pods(self) -> Sequence[Pod]:
        """Every pod as stored now; raises WriteError."""


class LoadError(Exception):
    """Loads of nodes could not be read; the text says why."""


class LoadReader(Protocol):
    """Something that measures nodes."""

    async def read_loads(self, conf: MetricsConf) -> Mapping[NodeName, NodeLoad]:
        """The loads of nodes by name, of all that is known; raises LoadError."""


class TakesTooLong(RuntimeError):
    """To read the answer takes longer than a question may."""


class AuditTrail(Protocol):
    """Tells which decisions are kept; its methods raise `TooMany` and `TakesTooLong`."""

    async def ask(self, question: AuditQuestion) -> AuditAnswer:
        """The decisions asked for, and what the kept ones are of."""

    async def certificate(self, plan: str) -> Any:
        """The certificate of an eviction plan as a JSON value; None: none is kept."""


class HttpExtenderError(Exception):
    """The HTTP extender did not answer as it should; the text says why."""


class HttpExtender(Protocol):
    """The server that the plugin ``extender`` asks (:mod:`app.model.http_extender`)."""

    async def ask(self, url: str, body: bytes, *, timeout_s: float) -> bytes:
        """The body of the answer to a POST of ``body``; raises HttpExtenderError."""

    async def read_manifest(self, namespace: str, name: str) -> bytes | None:
        """The pod as stored, JSON; None when there is none, or it cannot be read now."""
