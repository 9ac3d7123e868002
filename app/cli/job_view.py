"""One job in full, as ``job view`` writes it: name, spec, status, events.

A line is its depth, a label and a value; labels of a block are padded to the same width and
followed by a tab. Volcano shows three annotations of one vendor's templates here; instead, all
annotations of a template are shown.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from app.cli.moments import moment
from app.cli.tables import NONE
from app.wire.ages import age
from app.wire.unstructured import (
    Object,
    annotations,
    labels,
    metadata,
    name,
    namespace,
    spec,
    status,
    uid,
)

_COUNTS = (
    ("Succeeded", "succeeded"),
    ("Pending", "pending"),
    ("Running", "running"),
    ("Failed", "failed"),
    ("Terminating", "terminating"),
    ("Unknown", "unknown"),
    ("RetryCount", "retryCount"),
    ("Min Available", "minAvailable"),
    ("Version", "version"),
)
_EVENT_WIDTHS = (15, 40, 30, 40)

Block = Sequence[tuple[str, Any]]


def view(
    job: Object, events: Sequence[Object] | None, *, now: float, conditions: bool = True
) -> str:
    """The whole text; no ``events``: they are not to be seen."""
    lines = [*_head(job), *_metadata(job), *_spec(job), *_status(job)]
    if conditions:
        lines += _conditions(job)
    return "\n".join([*lines, *_events(events, now=now)]) + "\n"


def events_of(job: Object, events: Iterable[Object]) -> list[Object]:
    """The events about the job, the oldest first."""
    about = (
        event
        for event in events
        if name(event).startswith(f"{name(job)}.")
        or (event.get("involvedObject") or {}).get("uid") == uid(job)
    )
    return sorted(about, key=last_seen)


def _head(job: Object) -> Iterator[str]:
    yield from _block(
        0,
        (
            ("Name", name(job)),
            ("Namespace", namespace(job)),
            ("Labels", _pairs(labels(job))),
            ("Annotations", _pairs(annotations(job))),
            ("API Version", job.get("apiVersion")),
            ("Kind", job.get("kind")),
        ),
    )


def _metadata(job: Object) -> Iterator[str]:
    about = metadata(job)
    yield "Metadata:"
    yield from _block(
        1,
        (
            ("Creation Timestamp", moment(about.get("creationTimestamp"))),
            ("Generate Name", about.get("generateName")),
            ("Generation", about.get("generation") or 0),
            ("Resource Version", about.get("resourceVersion")),
            ("Self Link", ""),
            ("UID", uid(job)),
        ),
    )


def _spec(job: Object) -> Iterator[str]:
    wanted = spec(job)
    plugins = {"env": (), "ssh": (), **(wanted.get("plugins") or {})}
    width = len("Creation Timestamp:")
    yield "Spec:"
    yield from _block(1, (("Min Available", wanted.get("minAvailable") or 0),), width=width)
    yield "  Plugins:"
    for plugin, arguments in plugins.items():
        yield f"    {plugin.capitalize()}:\t[{' '.join(arguments or ())}]"
    of_job = (
        ("Queue", wanted.get("queue") or "default"),
        ("Scheduler Name", wanted.get("schedulerName")),
    )
    yield from _block(1, of_job, width=width)
    yield "  Tasks:"
    for task in wanted.get("tasks") or ():
        yield from _task(task)


def _task(task: Mapping[str, Any]) -> Iterator[str]:
    template = task.get("template") or {}
    pod = spec(template)
    yield from _block(2, (("Name", task.get("name")),))
    yield from _block(2, (("Replicas", task.get("replicas") or 0),))
    yield "    Template:"
    yield "      Metadata:"
    yield "        Annotations:"
    yield from _block(5, tuple(sorted(annotations(template).items())))
    yield "      Spec:"
    yield "        Containers:"
    for container in pod.get("containers") or ():
        yield from _container(container)
    yield "        Image Pull Secrets:"
    for secret in pod.get("imagePullSecrets") or ():
        yield from _block(5, (("Name", secret.get("name")),))
    yield from _block(4, (("Restart Policy", pod.get("restartPolicy")),))


def _container(container: Mapping[str, Any]) -> Iterator[str]:
    yield "          Command:"
    for word in container.get("command") or ():
        yield f"            {word}"
    yield from _block(5, (("Image", container.get("image")), ("Name", container.get("name"))))
    yield "          Ports:"
    for port in container.get("ports") or ():
        named = (("Container Port", port.get("containerPort")), ("Name", port.get("name")))
        yield from _block(6, named)
    yield "          Resources:"
    resources = container.get("resources") or {}
    for kind in ("limits", "requests"):
        amounts = resources.get(kind) or {}
        rest = {key: value for key, value in amounts.items() if key not in {"cpu", "memory"}}
        first = {"Cpu": amounts.get("cpu", 0), "Memory": amounts.get("memory", 0)}
        yield f"            {kind.capitalize()}:"
        yield from _block(7, tuple({**first, **rest}.items()))
    yield from _block(6, (("Working Dir", container.get("workingDir")),))


def _status(job: Object) -> Iterator[str]:
    found = status(job)
    state = found.get("state") or {}
    counts = tuple((label, found[field]) for label, field in _COUNTS if found.get(field))
    yield "Status:"
    yield from _block(1, counts, width=len("Min Available:"))
    yield "  State:"
    yield f"    Phase:\t{state.get('phase') or ''}"
    for label in ("Reason", "Message"):
        if state.get(label.lower()):
            yield f"    {label}:\t{state[label.lower()]}"
    if found.get("controlledResources"):
        yield "  Controlled Resources:"
        for key, value in sorted(found["controlledResources"].items()):
            yield f"    {key}: \t{value}"


def _conditions(job: Object) -> Iterator[str]:
    conditions = status(job).get("conditions") or ()
    if conditions:
        yield "  Conditions:"
        yield "    Status\tTransitionTime"
        for condition in conditions:
            at = moment(condition.get("lastTransitionTime"))
            yield f"    {condition.get('status')} \t{at} "


def _events(events: Sequence[Object] | None, *, now: float) -> Iterator[str]:
    if not events:
        yield f"Events: \t{NONE if events is not None else '<not to be seen>'}"
        return
    yield "Events:"
    yield _event_line("Type", "Reason", "Age", "Form", "Message")
    yield _event_line(*["-------"] * 5)
    for event in events:
        source = event.get("source") or {}
        by = [source.get("component") or event.get("reportingComponent") or "", source.get("host")]
        yield _event_line(
            str(event.get("type") or ""),
            str(event.get("reason") or ""),
            event_age(event, now=now),
            ", ".join(part for part in by if part),
            str(event.get("message") or "").strip(),
        )


def event_age(event: Object, *, now: float) -> str:
    """How long ago, and how often since when."""
    first = event.get("firstTimestamp") or event.get("eventTime")
    if int(event.get("count") or 1) <= 1:
        return age(first, now)
    return f"{age(last_seen(event), now)} (x{event['count']} over {age(first, now)})"


def _event_line(*cells: str) -> str:
    *padded, last = cells
    widths = zip(padded, _EVENT_WIDTHS, strict=True)
    return "\t".join([*(cell.ljust(width) for cell, width in widths), last])


def last_seen(event: Object) -> str:
    """When the event happened last."""
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")


def _pairs(pairs: Mapping[str, str]) -> str:
    if not pairs:
        return NONE
    return json.dumps(dict(pairs), ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _block(depth: int, lines: Block, *, width: int = 0) -> Iterator[str]:
    padded = max([width, *(len(label) + 1 for label, _ in lines)])
    for label, value in lines:
        shown = "" if value is None else value
        yield f"{'  ' * depth}{(label + ':').ljust(padded)}\t{shown}"
