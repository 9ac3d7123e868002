"""``pumice queue preview``: what a queue would give up, asked of the extender, as text."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from app.cli.endings import Code, CommandFailed
from app.cli.tables import fitted, resources, table
from app.kit.quantities import amount_text
from app.kube.web_url import is_loopback
from app.model.workload import EVICT_OVER_CAPABILITY

Preview = Mapping[str, Any]
"""The extender's answer (:class:`app.api.preview.QueuePreview`)."""

_DEADLINE_S: Final = 30.0
_WIDTH: Final = 18
_KINDS: Final = {
    "surplus": "beyond the minimum of its group",
    "single": "of use by itself",
    "gang": "of a gang that goes whole",
}
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def ask_preview(url: str, queue: str, capability: Mapping[str, str]) -> Preview:
    """The extender's answer; CommandFailed when it gives none."""
    # Only this needs it, and it takes a while to load.
    import httpx2

    asked = ",".join(f"{resource}={amount}" for resource, amount in capability.items())
    try:
        answer = httpx2.get(
            f"{url.rstrip('/')}/preview/queue/{quote(queue, safe='')}",
            params={"capability": asked} if asked else {},
            timeout=_DEADLINE_S,
            trust_env=not is_loopback(url),  # where proxies stand
        )
        if answer.status_code == httpx2.codes.OK:
            return _decode(answer.content)
    except (httpx2.HTTPError, httpx2.InvalidURL, msgspec.DecodeError, ImportError, ValueError) as e:
        why = f"the extender at {url} does not tell: {e}"
        raise CommandFailed(Code.UNREACHABLE, why) from e
    code = {404: Code.NOT_FOUND, 400: Code.USAGE}.get(answer.status_code, Code.UNREACHABLE)
    raise CommandFailed(code, answer.text[:500])


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
