"""What a restart takes away of what went wrong, told before it is gone.

With the pods go their exit codes and termination messages. Of every task the failure that was last
is told in an event of the job, which stays.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from app.controllers.job.members import Member
from app.wire import unstructured

REASON: Final = "LastFailure"
"""Of the events."""

_LINES: Final = 5
_LONGEST: Final = 700
"""Characters of a termination message; an event has room for a thousand."""

_Ended = tuple[str, Mapping[str, Any]]
"""The name of a container and how it ended."""


def last_of_tasks(members: Iterable[Member]) -> list[str]:
    """Of every task with failures among these pods the last one, as people are told."""
    found: dict[str, Member] = {}
    for member in members:
        before = found.get(member.task)
        if _has_failed(member) and (before is None or member.finished >= before.finished):
            found[member.task] = member
    return [_told(found[task]) for task in sorted(found)]


def _has_failed(member: Member) -> bool:
    """Whether the member has failed, or a container of it did and was started again."""
    return member.phase == "Failed" or _failure(member) is not None


def _told(member: Member) -> str:
    failure, status = _failure(member), unstructured.status(member.item)
    why = "it failed" if failure is None else _ending(*failure)
    of_pod = ": ".join(str(status[key]) for key in ("reason", "message") if status.get(key))
    told = f"{why}; {_tail(of_pod)}" if of_pod else why
    return f"task {member.task}, pod {member.name}: {told}"


def _ending(container: str, ended: Mapping[str, Any]) -> str:
    reason = f" ({ended['reason']})" if ended.get("reason") else ""
    said = _tail(str(ended.get("message") or ""))
    told = f"container {container} ended with exit code {ended.get('exitCode')}{reason}"
    return f"{told}, its last words: {said}" if said else told


def _tail(text: str) -> str:
    """The last lines of ``text``, in one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    tail = " | ".join(lines[-_LINES:])
    return tail if len(tail) <= _LONGEST else f"…{tail[-_LONGEST:]}"


def _failure(member: Member) -> _Ended | None:
    """How the pod's first container that failed ended; of one that was restarted the last time."""
    ends = [*_ends(member, "state"), *_ends(member, "lastState")]
    return next((end for end in ends if end[1].get("exitCode")), None)


def _ends(member: Member, which: str) -> Iterator[_Ended]:
    status = unstructured.status(member.item)
    for kind in ("containerStatuses", "initContainerStatuses"):
        entries: Sequence[Mapping[str, Any]] = status.get(kind) or ()
        for entry in entries:
            ended = (entry.get(which) or {}).get("terminated")
            if ended:
                yield str(entry.get("name") or ""), ended
