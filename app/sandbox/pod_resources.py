"""What a pod asks for, in thousandths: its containers together, or what it says for the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from app.sandbox.quantities import parse_list
from app.wire.documents import Document, items, section

Amounts = dict[str, int]


def requests_of(spec: Document) -> Amounts:
    """Requests; a limit is one where none is given, as the API server defaults it."""
    total = contained_requests(spec)
    whole = section(spec, "resources")
    own = {name: value for name, value in section(whole, "limits").items() if name not in total}
    return _with_overhead({**total, **parse_list({**own, **section(whole, "requests")})}, spec)


def limits_of(spec: Document) -> Amounts:
    """Limits and overhead; a limit of the whole pod stands for those of its containers."""
    total = _summed(spec, _limits)
    return _with_overhead({**total, **parse_list(section(spec, "resources", "limits"))}, spec)


def contained_requests(spec: Document) -> Amounts:
    """What the containers ask for, whatever the pod says for the whole of them."""
    return _summed(spec, _requests)


def says_for_the_whole(spec: Document) -> bool:
    """Whether the pod has resources of its own, which stand for those of its containers."""
    whole = section(spec, "resources")
    return bool(section(whole, "requests") or section(whole, "limits"))


def _with_overhead(total: Amounts, spec: Document) -> Amounts:
    counted = Counter(total)
    counted.update(parse_list(section(spec, "overhead")))
    return dict(counted)


def _summed(spec: Document, amounts_of: Callable[[Document], Amounts]) -> Amounts:
    """Containers together, or the greatest init container where that is more."""
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
    return dict(total)


def _requests(container: Document) -> Amounts:
    resources = section(container, "resources")
    return parse_list({**section(resources, "limits"), **section(resources, "requests")})


def _limits(container: Document) -> Amounts:
    return parse_list(section(container, "resources", "limits"))
