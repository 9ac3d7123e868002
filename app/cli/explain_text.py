"""Findings as a page for people and as a value for programs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.cli.findings import Findings, conclude, counts
from app.cli.job_rows import replicas
from app.cli.job_view import event_age
from app.cli.queue_rows import held
from app.cli.tables import NONE, fitted, resources, table
from app.core.texts import available_word
from app.kit.quantities import amount_text
from app.model.amounts import COUNTED_PODS, PODS, REQUESTS
from app.model.topology import ALLOCATED
from app.wire.unstructured import Object, annotations, key_of, metadata, name, spec, status

_LABEL = 12
_GAP = 3
_MEMBERS = 20
_EVENTS = 10


def page(found: Findings, *, source: str, now: float) -> str:
    """The whole page; the first line is the answer."""
    conclusion = conclude(found)
    lines = [f"{found.subject} is {found.phase or 'unknown'}: {conclusion.summary}", ""]
    if conclusion.reason:
        lines.append(_fact("Reason", conclusion.reason))
    lines += (_fact("", text) for text in _numbers(conclusion.numbers))
    if conclusion.numbers:
        lines.append(_fact("Outlook", _outlook(conclusion.never)))
    funnels = (found.story or {}).get("funnels") or ()
    lines += _listed("Nodes", [_funnel(each) for each in funnels])
    lines += _listed("Runs now", [f"if you {each['text']}" for each in _changes(found)])
    if found.advice is not None and not _changes(found):
        lines.append(_fact("Runs now", f"with none of the {found.advice['tried']} changes tried"))
    if conclusion.next_step:
        lines.append(_fact("Next step", conclusion.next_step))
    lines += (_fact(label, text) for label, text in _around(found))
    lines += _listed("Note", [str(each) for each in (found.story or {}).get("notes") or ()])
    lines.append(_fact("Source", source))
    return "\n".join(lines) + "\n" + _members(found) + _events(found.events, now=now)


def value(found: Findings, *, source: str) -> Object:
    """The findings for programs."""
    conclusion = conclude(found)
    return {
        "subject": found.subject,
        "phase": found.phase,
        "reason": conclusion.reason,
        "summary": conclusion.summary,
        "nextStep": conclusion.next_step,
        "never": conclusion.never,
        "numbers": dict(conclusion.numbers),
        "queue": found.queue_name,
        "queueState": status(found.queue or {}).get("state") or "",
        "podGroup": str(key_of(found.group)) if found.group else "",
        "conditions": list(status(found.group or {}).get("conditions") or ()),
        "pods": counts(found.pods),
        "network": str((found.story or {}).get("network") or ""),
        "notes": list((found.story or {}).get("notes") or ()),
        "slots": dict((found.story or {}).get("slots") or {}),
        "story": list((found.story or {}).get("story") or ()),
        "members": list((found.story or {}).get("members") or ()),
        "funnels": list((found.story or {}).get("funnels") or ()),
        "advice": dict(found.advice or {}),
        "events": [_event(event) for event in found.events],
        "source": source,
    }


def _outlook(never: str) -> str:
    if never:
        return f"never as it is ({never}): no end of other pods helps"
    return "not yet: it can run once that has changed"


def _funnel(told: Mapping[str, Any]) -> str:
    """``worker: 8 nodes -> 8 ready -> 2 with room for one now; 4 needed, room for 3``."""
    steps = " -> ".join(f"{step['nodes']} {step['text']}" for step in told["steps"])
    role = f"{told['role']}: " if told["role"] else ""
    return f"{role}{steps}; {told['lacking']} needed, room for {told['fit']}"


def _changes(found: Findings) -> Sequence[Mapping[str, Any]]:
    return (found.advice or {}).get("changes") or ()


def _listed(label: str, texts: Sequence[str]) -> Iterator[str]:
    for at, text in enumerate(texts):
        yield _fact("" if at else label, text)


def _fact(label: str, text: str) -> str:
    return f"{label + ':' if label else '':<{_LABEL}}{text}"


def _around(found: Findings) -> Iterator[tuple[str, str]]:
    if found.job is not None:
        yield "Job", f"{key_of(found.job)}, {replicas(found.job)} pods in all"
    if found.group is not None:
        group = found.group
        phase = status(group).get("phase") or "no phase yet"
        needs = f"needs {int(spec(group).get('minMember') or 0)} pods at once"
        amounts = resources(_once(spec(group).get("minResources") or {}))
        more = f" ({amounts})" if amounts != NONE else ""
        yield "PodGroup", f"{name(group)}, {phase}, {needs}{more}"
    if found.hidden_group is not None:
        yield "PodGroup", f"{found.hidden_group.name}, not to be seen"
    if found.group is not None or found.job is not None:
        yield "Queue", _queue(found)
    network = (found.story or {}).get("network") or annotations(found.group or {}).get(ALLOCATED)
    if network:
        yield "Network", str(network)
    listed = ", ".join(f"{count} {word}" for word, count in counts(found.pods).items())
    yield "Pods", listed or "none yet"


def _once(amounts: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is there for quotas alone, under a second name, and the number of pods."""
    return {
        name: amount
        for name, amount in amounts.items()
        if name != PODS and not name.startswith((REQUESTS, COUNTED_PODS))
    }


def _queue(found: Findings) -> str:
    if found.queue is None:
        return f"{found.queue_name}, {'not found' if found.sees_queue else 'not to be seen'}"
    limit = resources(spec(found.queue).get("capability"))
    state = status(found.queue).get("state") or "no state yet"
    return f"{found.queue_name}, {state}, holds {resources(held(found.queue))}, capability {limit}"


def _numbers(reason: Mapping[str, Any]) -> Iterator[str]:
    word = available_word(str(reason.get("cause") or ""))
    for short in reason.get("shortfalls") or ():
        resource = short["resource"]
        asked, free = (amount_text(resource, short[key]) for key in ("asked", "free"))
        limit, real = short.get("limit"), short.get("stretched_from")
        of = f" of {amount_text(resource, limit)}" if limit is not None else ""
        if real is not None:
            idle = amount_text(resource, short.get("idle") or 0)
            of += f" ({amount_text(resource, real)} stretched by overcommit, {idle} idle)"
        if going := short.get("terminating"):
            of += f", {amount_text(resource, going)} terminating"
        yield f"{resource}: asked {asked}, {word} {free}{of}"
    for refused in reason.get("nodes") or ():
        yield f"{refused['nodes']} of {reason.get('total_nodes')} nodes: {refused['text']}"
    for holder in reason.get("holders") or ():
        amount = amount_text(holder["resource"], holder["amount"])
        yield f"{holder['who']} holds {holder['resource']} {amount}"


def _members(found: Findings) -> str:
    members = (found.story or {}).get("members") or ()
    if not members:
        return ""
    columns = [
        fitted("Pod", lambda member: member["pod"], gap=_GAP),
        fitted("Role", lambda member: member["role"] or "-", gap=_GAP),
        fitted("Stage", lambda member: member["stage"], gap=_GAP),
        fitted("Node", lambda member: member["node"] or "-", gap=_GAP),
        fitted("Gates", lambda member: ",".join(member["gates"]) or "-", gap=_GAP),
        fitted("Verdict", lambda member: member.get("verdict") or "-", gap=0),
    ]
    left = len(members) - _MEMBERS
    more = f"... and {left} more pods (-o json shows all)\n" if left > 0 else ""
    return "\n" + table(columns, members[:_MEMBERS]) + more


def _events(events: Sequence[Object], *, now: float) -> str:
    if not events:
        return ""
    columns = [
        fitted("Age", lambda event: event_age(event, now=now), gap=_GAP),
        fitted("Type", lambda event: event.get("type"), gap=_GAP),
        fitted("Reason", lambda event: event.get("reason"), gap=_GAP),
        fitted("Message", lambda event: str(event.get("message") or "").strip(), gap=0),
    ]
    return "\n" + table(columns, events[-_EVENTS:])


def _event(event: Object) -> Object:
    about = event.get("involvedObject") or {}
    return {
        "object": f"{str(about.get('kind') or '').lower()}/{about.get('name') or ''}",
        "type": event.get("type"),
        "reason": event.get("reason"),
        "message": event.get("message"),
        "count": event.get("count") or 1,
        "lastTimestamp": event.get("lastTimestamp") or metadata(event).get("creationTimestamp"),
    }
