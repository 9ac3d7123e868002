"""What is known about a job, a PodGroup or a pod that waits, and the one reason to name first.

Gathered by `app.cli.explain`; here it is only judged. What the extender says is the reason, for it
decides. Without it the objects speak: how the job ended, a queue that is missing or shut, the
group's conditions, what is said on the pods, the last warning.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from app.cli.claims import OF_VOLUMES, Claim, advice
from app.cli.job_rows import is_over, phase
from app.cli.next_steps import next_step
from app.cli.pod_rows import QUEUE_ANNOTATION
from app.core.texts import never_of
from app.model import conditions
from app.model.conditions import RESERVED, SCHEDULED, UNSCHEDULABLE
from app.model.pod import GATE, QUEUE_GATE
from app.model.reason import Cause
from app.webhooks.linting import waits_for_itself
from app.wire.objects.troubles import trouble_in
from app.wire.pod_columns import pod_status
from app.wire.unstructured import Key, Object, annotations, key_of, metadata, name, spec, status

Story = Mapping[str, Any]
"""An answer of the extender's ``/explain``."""

Verdict = tuple[str, str] | None
"""A reason in a word and in a sentence, if there is one."""

FINE = "nothing is missing"
_OF_COMMAND = "Command "
"""What a job says that a Command ended goes on with the Command's UID."""
BEHIND_GATES = "SchedulingGated"
UNANSWERED = "NoScheduler"
"""Why a pod waits of which the scheduler that it names says nothing."""
_MAY_LACK_MEMBERS = frozenset({"CoolingDown", "NotEnoughTasks", "NotEnoughPodsOfTask"})
"""Causes of groups whose members may not exist: one cools down when they were not created."""
_WITH_MINIMUM = frozenset({"Running", "Completed"})
"""Phases of a group whose minimum does not wait: conditions tell of what else does."""
_OF_WAITING = frozenset({"PodGroupPending", "FailedScheduling", UNSCHEDULABLE})
"""Events of a group, its job and its pods that wait; they stay when the wait is over."""
NOT_CREATED = "FailedCreate"
"""The event of a controller whose pods the API server refuses."""
EARLIER_PODS = "EarlierPods"
"""The reason in the status of a job whose pods wait for those of an earlier job of its name."""
PLACED = "pumice.sh/Placed"
"""The condition in which the extender says on pods behind the gate why they are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything about ``subject``; what does not exist is None or empty."""

    subject: str
    is_of_pod: bool = False
    """Whether the subject is a pod, the only one of ``pods``."""
    job: Object | None = None
    group: Object | None = None
    advice: Story | None = None
    """What the extender says of changes that would help; None: it was not asked."""
    queue: Object | None = None
    sees_queue: bool = True
    """Whether the user may see queues: only then is one that is not found missing."""
    hidden_group: Key | None = None
    """The PodGroup of the subject, where the user may not see it."""
    claims: Sequence[Claim] = ()
    """Claims of the subject's pods that have no node yet."""
    pods: Sequence[Object] = ()
    events: Sequence[Object] = ()
    story: Story | None = None

    @property
    def planned_as(self) -> Key | None:
        """The PodGroup or single pod that the extender is asked about; None: there is none."""
        item = self.group or next(iter(self.pods), None)
        return self.hidden_group or (None if item is None else key_of(item))

    @property
    def queue_name(self) -> str:
        """The queue that it is in, or is to be in."""
        for item in (self.group, self.job):
            if item is not None:
                return str(spec(item).get("queue") or "default")
        asked = [annotations(pod).get(QUEUE_ANNOTATION) for pod in self.pods]
        return next((queue for queue in asked if queue), "default")

    @property
    def phase(self) -> str:
        """The phase of the subject, where it is a pod; else the job's, else the group's."""
        if self.pods and (self.is_of_pod or not self.phase_of_all):
            return pod_status(self.pods[0])
        return self.phase_of_all

    @property
    def phase_of_all(self) -> str:
        """The job's, else the group's; empty without either."""
        if self.job is not None:
            return phase(self.job) or "Pending"
        return self.phase_of_group or "Pending" if self.group is not None else ""

    @property
    def phase_of_group(self) -> str:
        """Empty: it has none yet, or there is no group."""
        return str(status(self.group or {}).get("phase") or "")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The reason in a word and in a sentence, and what to do about it."""

    reason: str
    summary: str
    next_step: str = ""
    never: str = ""
    """Why no end of other pods helps, in a word; empty: it may."""
    numbers: Mapping[str, Any] = field(default_factory=dict)


def conclude(found: Findings) -> Conclusion:
    """The one reason to name first."""
    reason, summary = _ended(found) or _told(found) or _queue(found) or _objects(found)
    reason, summary = _not_created(found, reason) or (reason, summary)
    step = (
        _own_fault(found, reason)
        or _unclaimed(found, reason)
        or _suspended(found)
        or next_step(reason, summary, queue=found.queue_name)
    )
    numbers = (found.story or {}).get("reason") or {}
    return Conclusion(reason, summary, step, never_of(summary) or "", numbers)


def _not_created(found: Findings, reason: str) -> Verdict:
    """Where members are missing as the API server refuses them: the last event that says so.

    A group without any pod is not told to lack members: they are about to be created. So are those
    that wait for pods of an earlier job.
    """
    state = (status(found.job).get("state") or {}) if found.job is not None else {}
    if state.get("reason") == EARLIER_PODS:
        return EARLIER_PODS, str(state.get("message") or "")
    if reason not in _MAY_LACK_MEMBERS and (reason or found.pods):
        return None
    refused = [event for event in found.events if event.get("reason") == NOT_CREATED]
    return (NOT_CREATED, str(refused[-1].get("message") or "")) if refused else None


def _unclaimed(found: Findings, reason: str) -> str:
    """Where a volume may be what is missing."""
    return advice(found.claims) if reason in OF_VOLUMES else ""


def _own_fault(found: Findings, reason: str) -> str:
    """Where members are missing that nothing but a change of the job will bring."""
    if found.job is None or reason not in _MAY_LACK_MEMBERS:
        return ""
    why = waits_for_itself(found.job)
    return f"spec.minAvailable: {why}" if why else ""


def _suspended(found: Findings) -> str:
    """How a job goes on that waits for that."""
    if found.job is None or phase(found.job) != "Aborted":
        return ""
    key = key_of(found.job)
    return f"resume it: pumice job resume --namespace {key.namespace} --name {key.name}"


def counts(pods: Sequence[Object]) -> dict[str, int]:
    """Pods by the word that sums each up."""
    return dict(sorted(Counter(pod_status(pod) for pod in pods).items()))


def tells_of(story: Story, pod: Object) -> bool:
    """Whether the pod is in it: a PodGroup of other pods may have the name of the pod."""
    members = story.get("members") or ()
    return any(member["pod"] == str(key_of(pod)) for member in members)


def _ended(found: Findings) -> Verdict:
    if found.job is None or not is_over(found.job):
        return None
    state = status(found.job).get("state") or {}
    message = state.get("message") or f"the job has ended: {phase(found.job)}"
    if str(message).startswith(_OF_COMMAND):
        message = "a Command asked for it"
    return str(state.get("reason") or phase(found.job)), str(message)


def _told(found: Findings) -> Verdict:
    """What the extender says, unless it lacks nothing: then a pod may still have a complaint."""
    if found.story is None:
        return None
    cause = (found.story.get("reason") or {}).get("cause") or ""
    summary = str(found.story.get("summary") or FINE)
    if not cause and summary == FINE:
        return None
    return str(cause), summary


def _queue(found: Findings) -> Verdict:
    if found.group is None and found.job is None:
        return None
    if not found.sees_queue:
        return None
    if found.queue is None:
        return "QueueMissing", f"queue {found.queue_name} does not exist"
    state = status(found.queue).get("state") or "Open"
    waits = found.phase_of_all in {"Pending", "Unknown"}
    return (
        ("QueueNotOpen", f"queue {name(found.queue)} is {state}") if _shut(state, waits) else None
    )


def _shut(state: str, waits: bool) -> bool:
    return waits and state != "Open"


def _objects(found: Findings) -> tuple[str, str]:
    return (
        _conditions(found)
        or _gates(found)
        or _pods(found)
        or _warning(found)
        or _unseen(found)
        or ("", _quiet(found))
    )


def _conditions(found: Findings) -> Verdict:
    """The last of the group's conditions that speaks against it.

    `Scheduled` never does: where it is taken back, others say why. `Reserved` has the cause (also
    that of a group with all its places), and `Unschedulable` one word for many causes: the first
    goes before, whenever they were written.
    """
    conditions = status(found.group or {}).get("conditions") or ()
    against = [c for c in conditions if _speaks_against(c)]
    if not against:
        return None
    if any(c["type"] == RESERVED for c in against):
        against = [c for c in against if c["type"] != UNSCHEDULABLE]
    last = max(against, key=lambda each: str(each.get("lastTransitionTime") or ""))
    return str(last.get("reason") or last["type"]), str(last.get("message") or last["type"])


def _speaks_against(condition: Object) -> bool:
    met: bool = condition.get("status") == "True"
    if condition["type"] == RESERVED and met:
        return condition.get("reason") not in {None, "", conditions.PLACED}
    is_against: bool = met == (condition["type"] == UNSCHEDULABLE)
    return is_against and condition["type"] != SCHEDULED


def _gates(found: Findings) -> Verdict:
    """What the extender says on a pod behind the gate; ``PodScheduled`` knows only of the gate."""
    for pod in found.pods:
        unmet = _unmet(pod, PLACED)
        if unmet is not None and unmet.get("message"):
            return str(unmet.get("reason") or ""), str(unmet["message"])
    return None


def _pods(found: Findings) -> Verdict:
    for pod in found.pods:
        unmet = _unmet(pod, "PodScheduled")
        if unmet is not None and unmet.get("reason") == BEHIND_GATES:
            return (
                _behind_gates(pod) if spec(pod).get("schedulingGates") else _to_be_bound(found, pod)
            )
        if unmet is not None:
            said = unmet.get("message") or "is not scheduled"
            return str(unmet.get("reason") or ""), f"pod {key_of(pod)}: {said}"
        wrong = trouble_in(msgspec.json.encode(status(pod)))
        if wrong.reason:
            return wrong.reason, f"pod {key_of(pod)}: {wrong.text}"
    return None


def _unseen(found: Findings) -> Verdict:
    """That no scheduler has said anything of the pod asked about, which is to get a node."""
    pod = found.pods[0] if found.is_of_pod else {}
    waits = status(pod).get("phase") == "Pending" and not spec(pod).get("nodeName")
    if not waits or status(pod).get("conditions"):
        return None
    return UNANSWERED, f"pod {key_of(pod)}: {_scheduler(pod)} has not looked at it"


def _behind_gates(pod: Object) -> tuple[str, str]:
    """The gates of the pod and their owners; the sentence of the condition does not tell."""
    gates = [str(gate.get("name")) for gate in spec(pod).get("schedulingGates") or ()]
    others = [gate for gate in gates if gate not in {GATE, QUEUE_GATE}]
    if others:
        return Cause.GATED, f"pod {key_of(pod)} waits for its scheduling gates: {', '.join(others)}"
    placed = _condition(pod, PLACED)
    if placed is not None and placed.get("status") == "True":
        return BEHIND_GATES, f"pod {key_of(pod)} has its place, and its gate is to be opened"
    return BEHIND_GATES, f"pod {key_of(pod)} waits behind the gate {', '.join(gates)}"


def _to_be_bound(found: Findings, pod: Object) -> tuple[str, str]:
    """What a pod waits for whose gate has been opened."""
    least = int(spec(found.group or {}).get("minMember") or 1)
    if found.group is not None and not found.is_of_pod and len(found.pods) < least:
        asked = f"pods asked {least}, present {len(found.pods)}"
        return Cause.NOT_ENOUGH_TASKS, f"group {key_of(found.group)}: {asked}"
    others = f", together with others of its group ({least} at least)" if least > 1 else ""
    return UNANSWERED, (
        f"pod {key_of(pod)} has its place, and {_scheduler(pod)} is to bind it{others}"
    )


def _scheduler(pod: Object) -> str:
    return f"the scheduler that serves {spec(pod).get('schedulerName')}"


def _condition(pod: Object, kind: str) -> Object | None:
    conditions = status(pod).get("conditions") or ()
    return next((c for c in conditions if c.get("type") == kind), None)


def _unmet(pod: Object, kind: str) -> Object | None:
    """The pod's condition of that kind, if it is False."""
    found = _condition(pod, kind)
    return found if found is not None and found.get("status") == "False" else None


def _warning(found: Findings) -> Verdict:
    """The last event, when it is a warning; not one of a wait that is over."""
    events = found.events
    if found.phase_of_group in _WITH_MINIMUM:
        events = [event for event in events if event.get("reason") not in _OF_WAITING]
    if not events or events[-1].get("type") != "Warning":
        return None
    last = events[-1]
    return str(last.get("reason") or ""), str(last.get("message") or "")


def _quiet(found: Findings) -> str:
    if found.hidden_group is not None:
        return "what can be seen does not say why: its PodGroup is not to be seen"
    if found.job is not None and found.group is None:
        return "the job has no PodGroup yet; are the controllers running?"
    if found.group is not None and not status(found.group).get("phase"):
        return "the PodGroup has no phase yet; is the extender running?"
    if metadata(found.group or {}).get("deletionTimestamp"):
        return "the PodGroup is being deleted"
    return FINE
