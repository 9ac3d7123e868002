"""Deciding again what was recorded; apart from the commands, as it takes a while to load."""

from dataclasses import dataclass, replace

from app.cli.documents import text_of
from app.cli.endings import Code, CommandFailed
from app.core.conf_error import ConfError
from app.core.policy import Policies
from app.core.replay import Difference, able, differences, replayed
from app.core.simulation import NO_CHANGE, ClusterChange
from app.model.recorded import Recorded, Recording
from app.service.configuration import policies_of
from app.wire.errors import DecodeError
from app.wire.queue_changes import UnknownQueue, changed_queues
from app.wire.redacted import decided, redacted
from app.wire.stored import digest, packed, unpacked

__all__ = ["Replayed", "asked_again", "packed", "policies_in", "read", "redacted_case"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """A decision that was made again; ``same``: to the last number."""

    number: int
    entry: Recorded
    same: bool
    differences: tuple[Difference, ...]
    evicts_unasked: bool
    """The other configuration evicts, and the snapshot does not tell what runs."""


def asked_again(
    number: int, entry: Recorded, policies: Policies | None, said: dict[str, str]
) -> Replayed:
    """The decision made anew: by other ``policies``, with the changes of queues that are said."""
    change = _changed(entry, said)
    by = None if policies is None else able(entry, policies)
    try:
        plan = replayed(entry, by, change=change)
    except ConfError as error:
        raise CommandFailed(Code.USAGE, f"the recorded configuration: {error}") from error
    same = digest(plan) == digest(entry.plan)
    told = () if same else differences(entry.plan, plan)
    return Replayed(number, entry, same, told, by is not policies)


def _changed(entry: Recorded, said: dict[str, str]) -> ClusterChange:
    if not said:
        return NO_CHANGE
    try:
        queues = changed_queues(said, entry.snapshot.queues.get)
    except (UnknownQueue, ValueError) as error:
        raise CommandFailed(Code.USAGE, str(error)) from error
    known = entry.snapshot.axis.index
    for queue in queues.values():
        for name, _ in (*queue.capability, *queue.deserved, *queue.guarantee):
            if name not in known:
                raise CommandFailed(Code.USAGE, f"no node has {name}")
    return ClusterChange(queues)


def policies_in(conf: str) -> Policies | None:
    """The policies of a file; None: no file is given."""
    try:
        return policies_of(text_of(conf)) if conf else None
    except ConfError as error:
        raise CommandFailed(Code.USAGE, f"{conf}: {error}") from error


def read(content: bytes, file: str) -> Recording:
    """What was recorded; CommandFailed where that cannot be told."""
    try:
        recording = unpacked(content)
    except DecodeError as error:
        raise CommandFailed(Code.USAGE, f"{file}: {error}") from error
    if not isinstance(recording, Recording):
        raise CommandFailed(Code.USAGE, f"{file}: not a file of pumice record")
    return recording


def redacted_case(recording: Recording) -> Recording:
    """The recording under other names, decided anew; CommandFailed where that is not the same.

    Nothing of before is left in it then: the plans are those that were made under these names.
    """
    renamed, names = redacted(recording)
    entries = []
    for number, (before, entry) in enumerate(
        zip(recording.entries, renamed.entries, strict=True), 1
    ):
        plan = replayed(entry)
        if decided(plan, {}) != decided(before.plan, names):
            why = (
                f"decision {number} would be another one under other names; record without --redact"
            )
            raise CommandFailed(Code.REFUSED, why)
        entries.append(replace(entry, plan=plan))
    return replace(renamed, entries=tuple(entries))
