"""What the containers of a pod ask for together, in thousandths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from app.sandbox.documents import Document, items, section
from app.sandbox.quantities import parse_list

Amounts = dict[str, int]


def requests_of(spec: Document) -> Amounts:
    """Requests; a limit is one where none is given, as the API server defaults it."""
    return _summed(spec, _requests)


def limits_of(spec: Document) -> Amounts:
    return _summed(spec, _limits)


def _summed(spec: Document, amounts_of: Callable[[Document], Amounts]) -> Amounts:
    """Containers together, or the greatest init container where that is more; plus overhead."""
    total: Counter[str] = Counter()
    sidecars: Counter[str] = Counter()
    peak: Amounts = {}
    for container in items(spec, "containers"):
        total.update(amounts_of(container))
    for container in items(spec, "initContainers"):
        asked = Counter(amounts_of(container))
        if container.get("restartPolicy") == "Always":
            sidecars.update(asked)
            total.update(asked)
            asked = Counter(sidecars)
        else:
            asked.update(sidecars)
        for name, amount in asked.items():
            peak[name] = max(peak.get(name, 0), amount)
    for name, amount in peak.items():
        total[name] = max(total[name], amount)
    total.update(parse_list(section(spec, "overhead")))
    return dict(total)


def _requests(container: Document) -> Amounts:
    resources = section(container, "resources")
    return parse_list({**section(resources, "limits"), **section(resources, "requests")})


def _limits(container: Document) -> Amounts:
    return parse_list(section(container, "resources", "limits"))
