"""Why a pod that has a node does not do its work, from what its kubelet reports of containers."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import Raw, Struct

from app.wire.errors import Bytes, Reader
from app.wire.objects.pod_status import ContainerStatusJson, StatusJson

_ON_ITS_WAY: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons of containers that wait as they should."""
_RESTARTS: Final = "CrashLoopBackOff"
"""Its message tells how long the kubelet waits and nothing of why the container ended."""
_FAILED: Final = "Failed"
_ERROR: Final = "Error"
_LONGEST: Final = 200
"""Characters of a kubelet's message that are told."""


class Trouble(NamedTuple):
    """The kubelet's word for it, and the line that tells all; both empty: nothing is wrong."""

    reason: str
    text: str


NONE: Final = Trouble("", "")


class _WaitingJson(Struct, gc=False):
    reason: str | None = None
    message: str | None = None


class _TerminatedJson(Struct, rename="camel", gc=False):
    exit_code: int = 0
    reason: str | None = None


class _StateJson(Struct, gc=False):
    """``state`` or ``lastState`` of a container; what is in ``running`` is not told."""

    waiting: _WaitingJson | None = None
    terminated: _TerminatedJson | None = None


_read_state: Reader[_StateJson] = Reader(_StateJson)
_read_status: Reader[StatusJson] = Reader(StatusJson)


def trouble(status: StatusJson) -> Trouble:
    """What keeps the pod from its work: the first that is wrong.

    A container waits for another reason than that it is made, or has ended with an error. Raises
    `DecodeError`.
    """
    if status.phase == _FAILED and status.reason:
        return Trouble(status.reason, _with_message(status.reason, status.message))
    return next(_troubles(status), NONE)


def trouble_in(text: Bytes) -> Trouble:
    """`trouble` of a ``status`` as JSON."""
    return trouble(_read_status(text))


def _troubles(status: StatusJson) -> Iterator[Trouble]:
    containers = (*(status.init_container_statuses or ()), *(status.container_statuses or ()))
    for each in containers:
        if b'"waiting"' not in bytes(each.state) and b'"terminated"' not in bytes(each.state):
            continue
        reason, said = _of_container(each)
        if reason:
            yield Trouble(reason, f"container {each.name}: {said}")


def _of_container(container: ContainerStatusJson) -> Trouble:
    state = _state(container.state)
    if state.terminated is not None:
        how = state.terminated
        return Trouble(how.reason or _ERROR, _ended(how)) if how.exit_code else NONE
    reason = (state.waiting and state.waiting.reason) or ""
    if state.waiting is None or reason in _ON_ITS_WAY:
        return NONE
    if reason == _RESTARTS:
        return Trouble(reason, _restarts(container))
    return Trouble(reason, _with_message(reason, state.waiting.message))


def _restarts(container: ContainerStatusJson) -> str:
    last = _state(container.last_state).terminated
    count = container.restart_count
    restarts = f"{_RESTARTS}, {count} {'restart' if count == 1 else 'restarts'}"
    return restarts if last is None else f"{restarts}, last {_ended(last)}"


def _state(text: Raw) -> _StateJson:
    return _read_state(text, "status.containerStatuses[].state") if text else _StateJson()


def _ended(how: _TerminatedJson) -> str:
    """How a container ended; ``Error`` says no more than its code."""
    reason = f" ({how.reason})" if how.reason not in (None, "", _ERROR) else ""
    return f"ended with exit code {how.exit_code}{reason}"


def _with_message(reason: str, message: str | None) -> str:
    """A reason and what the kubelet says of it, in one line of letters that can be printed."""
    letters = (each if each.isprintable() else " " for each in message or "")
    line = " ".join("".join(letters).split()).rstrip(".")
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST - 1]}…"
    return f"{reason}: {line}" if line else reason
