"""``pumice record`` and ``pumice replay``: a support case in one file, and what it tells."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from app.cli import output
from app.cli.asking import content_of, require
from app.cli.commands import ExtenderUrl, OutputForm
from app.cli.endings import Code, CommandFailed, failing_to
from app.wire import times

if TYPE_CHECKING:
    from app.cli.replaying import Replayed
    from app.model.recorded import Recording

CODES: Final = (
    "Exit codes: 0 all decisions are the same, 1 some are not, 2 bad usage or no file of pumice "
    "record."
)
_SHOWN: Final = 20


def record(
    *,
    file: Annotated[str, typer.Option("--file", "-f", help="The file to write.")] = "case.pumice",
    redact: Annotated[
        bool,
        typer.Option("--redact", help="Replace names; the decisions stay the same."),
    ] = False,
    extender_url: ExtenderUrl = "",
) -> None:
    """Write what the extender was asked to decide lately, and what it decided, to one file.

    The file is for `pumice replay`. It holds snapshots of the cluster and the configuration,
    without credentials of metrics. --redact replaces the names of namespaces, pods, groups, queues
    and nodes, the values of labels, and the URL of the plugin extender. Each decision is made anew
    under the new names, and has to be the same.
    """
    from app.cli import replaying

    with failing_to("record"):
        content = content_of(require(extender_url), "/record")
        recording = replaying.read(content, file)
        if redact:
            recording = replaying.redacted_case(recording)
            content = replaying.packed(recording)
        _write(file, content)
    typer.echo(_described(recording, file=file, size=len(content)))


def replay(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file of pumice record.")],
    *,
    conf: Annotated[
        str, typer.Option("--conf", help="File with another volcano-scheduler.conf.")
    ] = "",
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="A change of a queue: queue/a.weight=2."),
    ] = None,
    until: Annotated[
        int | None, typer.Option("--until", help="How many decisions, from the first on.", min=1)
    ] = None,
    form: OutputForm = "table",
) -> None:
    """Decide again what was recorded, and tell what another configuration would have decided.

    Without changes each decision has to be the same, to the last number. With --conf or --set each
    decision is made on the cluster as it was at that time; what would have followed from another
    decision is not told. No cluster is needed.
    """
    from app.cli import replaying

    with failing_to(f"replay {file}"):
        recording = replaying.read(_content(file), file)
        policies = replaying.policies_in(conf)
        said = dict(map(_change, changes or ()))
        entries = recording.entries[:until]
        found = [
            replaying.asked_again(number, entry, policies, said)
            for number, entry in enumerate(entries, 1)
        ]
    if form == "table":
        told = _page(recording, found, file=file)
        typer.echo("".join(f"{line}\n" for line in told), nl=False)
    else:
        typer.echo(output.document(_values(recording, found), form), nl=False)
    if not all(each.same for each in found):
        raise typer.Exit(1)


def _change(said: str) -> tuple[str, str]:
    path, equals, value = said.partition("=")
    if not (path and equals and value):
        raise CommandFailed(Code.USAGE, f"--set: {said!r}: write queue/NAME.weight=2")
    return path, value


def _content(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise CommandFailed(Code.USAGE, error.strerror or str(error)) from error


def _write(file: str, content: bytes) -> None:
    try:
        Path(file).write_bytes(content)
    except OSError as error:
        raise CommandFailed(Code.USAGE, f"{file}: {error.strerror or error}") from error


def _described(recording: "Recording", *, file: str, size: int) -> str:
    entries = recording.entries
    if not entries:
        return f"{file}: no decisions: the extender was asked for none, or does not lead"
    first, last = (times.seconds(each.now) for each in (entries[0], entries[-1]))
    count = f"{len(entries)} decision{'s' * (len(entries) != 1)}"
    older = f", {recording.forgotten} older ones had no room" if recording.forgotten else ""
    names = ", names are replaced" if recording.redacted else ""
    return f"{file}: {count} from {first} to {last}, {size} bytes{older}{names}"


def _page(recording: "Recording", found: "list[Replayed]", *, file: str) -> Iterator[str]:
    yield f"{file}: recorded by pumice {recording.version}"
    same = sum(each.same for each in found)
    yield f"{len(found)} decisions, {same} are the same"
    if any(each.evicts_unasked for each in found):
        yield "Warning: what would have been evicted is not told: then no configuration evicted"
    others = [each for each in found if not each.same]
    for each in others[:_SHOWN]:
        at, by = times.seconds(each.entry.now), each.entry.call.value
        yield f"{each.number} ({at}, {by}, snapshot {each.entry.snapshot.generation}):"
        if not each.differences:
            yield "  the same places and causes, with other numbers"
        for one in each.differences[:_SHOWN]:
            yield f"  {one.group or 'no group'}: {one.after}; before: {one.before}"
        yield from _more(len(each.differences) - _SHOWN, "groups", indent="  ")
    yield from _more(len(others) - _SHOWN, "decisions", indent="")


def _more(count: int, what: str, *, indent: str) -> Iterator[str]:
    if count > 0:
        yield f"{indent}... and {count} more {what} (-o json shows all)"


def _values(recording: "Recording", found: "list[Replayed]") -> dict[str, Any]:
    return {
        "version": recording.version,
        "redacted": recording.redacted,
        "forgotten": recording.forgotten,
        "decisions": [
            {
                "number": each.number,
                "at": each.entry.now,
                "call": each.entry.call.value,
                "group": each.entry.key,
                "generation": each.entry.snapshot.generation,
                "same": each.same,
                "differences": [
                    {"group": one.group, "before": one.before, "after": one.after}
                    for one in each.differences
                ],
            }
            for each in found
        ],
    }
