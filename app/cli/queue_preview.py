"""``pumice queue preview``: what a queue would give up, asked of the extender, as text."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from app.cli.asking import Answer, ask_extender
from app.cli.tables import fitted, resources, table
from app.kit.quantities import amount_text
from app.model.workload import EVICT_OVER_CAPABILITY

Preview = Answer
"""The extender's answer (:class:`app.api.preview.QueuePreview`)."""

_WIDTH: Final = 18
_KINDS: Final = {
    "surplus": "beyond the minimum of its group",
    "single": "of use by itself",
    "gang": "of a gang that goes whole",
}


def ask_preview(url: str, queue: str, capability: Mapping[str, str]) -> Preview:
    """The extender's answer; CommandFailed when it gives none."""
    asked = ",".join(f"{resource}={amount}" for resource, amount in capability.items())
    path = f"/preview/queue/{quote(queue, safe='')}"
    return ask_extender(url, path, params={"capability": asked} if asked else {})


def page(found: Preview) -> str:
    """The answer for people."""
    pods = found["pods"]
    lines = [
        ("Queue", found["queue"]),
        ("Capability", _amounts(found["capability"])),
        ("Holds", _amounts(found["holds"])),
        ("Beyond it", _amounts(found["over"])),
        ("Would evict", _summed(pods)),
    ]
    if found["kept"]:
        lines.append(("Would stay beyond", _amounts(found["kept"])))
    if found["spared"]:
        counts = sorted(found["spared"].items())
        lines.append(("May not go", ", ".join(f"{count} {why}" for why, count in counts)))
    lines.append(("Annotation", found["problem"] or _advice(found)))
    head = "".join(f"{f'{title}:':<{_WIDTH + 1}}{text}\n" for title, text in lines)
    return f"{head}\n{_table(pods)}" if pods else head


def _advice(found: Preview) -> str:
    if found["evicts"]:
        return f"{EVICT_OVER_CAPABILITY} is set: what is beyond the capability is evicted"
    return (
        f"{EVICT_OVER_CAPABILITY} is not set: no pod is evicted. To evict: kubectl annotate queue "
        f"{found['queue']} {EVICT_OVER_CAPABILITY}=true"
    )


def _summed(pods: list[Any]) -> str:
    if not pods:
        return "no pod"
    counts = Counter(pod["kind"] for pod in pods)
    parts = [f"{counts[kind]} {text}" for kind, text in _KINDS.items() if counts[kind]]
    return f"{len(pods)} pod{'' if len(pods) == 1 else 's'}: {', '.join(parts)}"


def _table(pods: list[Any]) -> str:
    columns = [
        fitted("POD", lambda pod: pod["pod"], gap=3),
        fitted("NODE", lambda pod: pod["node"], gap=3),
        fitted("GROUP", lambda pod: pod["group"], gap=3),
        fitted("QUEUE", lambda pod: pod["queue"], gap=3),
        fitted("GOES AS", lambda pod: pod["kind"], gap=3),
        fitted("PRIORITY", lambda pod: pod["priority"], gap=3),
        fitted("REQUESTS", lambda pod: _amounts(pod["request"]), gap=0),
    ]
    lines = table(columns, pods).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _amounts(amounts: Mapping[str, int]) -> str:
    return resources({name: amount_text(name, amount) for name, amount in amounts.items()})
