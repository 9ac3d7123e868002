"""Life-cycle policies of a job or a task: what to do on which event (volcano.md §6.2)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.webhooks.durations import check_duration
from app.wire.findings import Findings, at, listed
from app.wire.reading import mappings, number_or_none, text, texts

ANY_EVENT = "*"

EVENTS = (
    ANY_EVENT,
    "PodFailed",
    "PodEvicted",
    "PodPending",
    "Unknown",
    "TaskCompleted",
    "TaskFailed",
    "JobUpdated",
)
ACTIONS = (
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
)

_VALID = f"valid events are {listed(EVENTS)}, valid actions are {listed(ACTIONS)}"


_OF_PODS: Final = frozenset({"RestartTask", "RestartPod", "RestartPartition"})
_OF_NO_TASK: Final = frozenset({"Unknown", "JobUpdated"})
_WITHOUT_TIMEOUT: Final = (
    "PodPending without a timeout has no effect, as every pod is pending at first; say how long a"
    " pod may be pending, as in timeout: 10m"
)
_RESUMING: Final = (
    "ResumeJob has no effect as a policy, as nothing happens to the pods of a suspended job; resume"
    " it by a Command"
)
_AT_ONCE: Final = (
    "a negative timeout puts nothing off, so the action follows at once; leave it out, or write for"
    " how long to wait, as in 10m"
)
_PENDING_AT_ONCE: Final = (
    "the action follows at once, as every pod is pending at first; say how long a pod may be"
    " pending, as in 10m"
)
_NO_PARTITIONS: Final = (
    "RestartPartition has no effect without a partitionPolicy; RestartTask and RestartPod have"
)


def check_policies(policies: object, path: str, findings: Findings, *, partitions: bool) -> None:
    """The policies at ``path``; ``partitions``: of tasks some of which are split into these."""
    checking = _Checking(path, findings, partitions=partitions)
    for index, policy in enumerate(mappings(policies)):
        checking.add(index, policy)
    checking.end()


class _Checking:
    """One list of policies: what has been seen of it."""

    def __init__(self, path: str, findings: Findings, *, partitions: bool) -> None:
        self._path = path
        self._findings = findings
        self._partitions = partitions
        self._events: set[str] = set()
        self._exit_codes: set[int] = set()

    def add(self, index: int, policy: Mapping[str, Any]) -> None:
        """The next policy."""
        path = at(self._path, index)
        events = _events_of(policy)
        code = policy.get("exitCode")
        timeout = check_duration(policy.get("timeout"), at(path, "timeout"), self._findings)
        if events and code is not None:
            self._refuse(path, "must not specify event and exitCode simultaneously")
            return
        if not events and code is None:
            self._refuse(path, "either event and exitCode should be specified")
            return
        action = text(policy.get("action"))
        self._check_action(at(path, "action"), action)
        for event in events:
            self._check_event(path, event)
        self._lint_action(at(path, "action"), action, events)
        if "PodPending" in events and not policy.get("timeout"):
            self._findings.warn(at(path, "event"), _WITHOUT_TIMEOUT)
        if timeout is not None:
            self._lint_timeout(at(path, "timeout"), timeout, events)
        if not events:
            self._check_code(at(path, "exitCode"), number_or_none(code))

    def end(self) -> None:
        """After the last one."""
        if ANY_EVENT in self._events and len(self._events) > 1:
            self._refuse(self._path, "if there's * here, no other policy should be here")

    def _check_action(self, path: str, action: str) -> None:
        if action not in ACTIONS:
            self._refuse(path, "invalid policy action")

    def _lint_action(self, path: str, action: str, events: Sequence[str]) -> None:
        """Whether the action can ever be carried out."""
        alone = [event for event in events if event in _OF_NO_TASK]
        if action == "ResumeJob":
            self._findings.warn(path, _RESUMING)
        elif action == "RestartPartition" and not self._partitions:
            self._findings.warn(path, _NO_PARTITIONS)
        elif action in _OF_PODS and alone:
            self._findings.warn(
                path,
                f"{action} on {' and '.join(alone)} has no effect, as that happens to no single"
                " task; write RestartJob",
            )

    def _lint_timeout(self, path: str, seconds: float, events: Sequence[str]) -> None:
        """Whether a timeout puts the action off."""
        if "PodPending" in events and seconds <= 0:
            self._findings.warn(path, _PENDING_AT_ONCE)
        elif seconds < 0:
            self._findings.warn(path, _AT_ONCE)

    def _check_event(self, path: str, event: str) -> None:
        if event not in EVENTS:
            self._refuse(at(path, "event"), "invalid policy event")
        elif event in self._events:
            self._refuse(path, f"duplicate event {event}  across different policy")
        self._events.add(event)

    def _check_code(self, path: str, code: int | None) -> None:
        if code == 0:
            self._refuse(path, "0 is not a valid error code")
        elif code in self._exit_codes:
            self._refuse(path, f"duplicate exitCode {code}")
        if code is not None:
            self._exit_codes.add(code)

    def _refuse(self, path: str, message: str) -> None:
        self._findings.refuse(path, f"{message}; {_VALID}")


def _events_of(policy: Mapping[str, Any]) -> list[str]:
    """``events`` and ``event`` together, each once."""
    single = text(policy.get("event"))
    return list(dict.fromkeys([*texts(policy.get("events")), *([single] if single else [])]))
