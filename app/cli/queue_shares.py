"""How much of what it is entitled to each queue holds, as a tree.

A queue is entitled to what it deserves; of resources for which that is not said, to its part by
weight of what its parent is entitled to, up to its capability. The root is entitled to the whole
cluster; of nodes that are cordoned or not ready that is what runs there. A share is the largest
part that is held of any resource.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from app.cli.queue_rows import held
from app.cli.tables import Column, fitted, resources, table
from app.kit.quantities import amount_text
from app.webhooks.requests import added
from app.wire import quantity
from app.wire.errors import DecodeError
from app.wire.unstructured import Object, name, spec, status

ROOT = "root"
_UNCOUNTED = {"pods"}
_ALWAYS = ("cpu", "memory")
_BAR = 10
_GAP = 2
_BARS = re.compile(r"\[#*\.*\] +(\d+)%")
_FULL, _NEARLY = 100, 80
_WHOLE_CORES = 100
"""From this many cores on an amount is shown without a fraction."""

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One queue of the tree; ``share`` is None when nothing is known to compare with."""

    name: str
    depth: int
    state: str
    weight: int
    allocated: Amounts
    entitled: Amounts
    deserved: Amounts
    capability: Amounts
    share: float | None
    resource: str


class _Part(NamedTuple):
    """A queue with its ``part`` of what the one above it is entitled to."""

    queue: Object
    entitled: Amounts
    part: float
    depth: int


def shares(queues: Sequence[Object], cluster: Amounts) -> list[Share]:
    """Parents before their children, those by name."""
    names = {name(queue) for queue in queues}
    children: dict[str, list[Object]] = {}
    for queue in sorted(queues, key=name):
        children.setdefault(_parent(queue, names), []).append(queue)
    found = list(_walk(children, entitled=cluster))
    reached = {share.name for share in found}
    # Queues that are each other's parents hang nowhere; they are shown all the same.
    lost = [queue for queue in queues if name(queue) not in reached]
    return [*found, *(_share(queue, {}, part=0, depth=0) for queue in lost)]


def takes_pods(node: Object) -> bool:
    """Whether the node is ready, as far as it says, and not cordoned."""
    conditions = status(node).get("conditions") or ()
    is_ready = all(c.get("status") == "True" for c in conditions if c.get("type") == "Ready")
    return is_ready and not spec(node).get("unschedulable")


def cluster_total(nodes: Iterable[Object], elsewhere: Iterable[Amounts] = ()) -> Amounts:
    """What the nodes offer that take pods, and what pods ``elsewhere``, on other nodes, have."""
    offers = [readable(status(node).get("allocatable")) for node in nodes if takes_pods(node)]
    total: dict[str, int] = {}
    for amounts in (*offers, *elsewhere):
        total = added(total, amounts)
    return total


def rows(found: Sequence[Share]) -> str:
    """The table of ``top queues``."""
    lines = [_line(share) for share in found]
    return table(_COLUMNS, lines)


def values(found: Sequence[Share]) -> list[Object]:
    """The shares for programs."""
    return [
        {
            "name": share.name,
            "depth": share.depth,
            "state": share.state,
            "weight": share.weight,
            "share": share.share,
            "resource": share.resource,
            "allocated": texts(share.allocated),
            "deserved": texts(share.deserved),
            "entitled": texts(share.entitled),
            "capability": texts(share.capability),
        }
        for share in found
    ]


def bar(share: float | None) -> str:
    """``[####......]  40%``."""
    if share is None:
        return "-"
    full = min(_BAR, round(share * _BAR))
    return f"[{'#' * full}{'.' * (_BAR - full)}] {share:4.0%}"


def bars(text: str) -> Iterator[tuple[int, int, str]]:
    """Where bars stand in ``text``, begin and end, and in which colour.

    Green, from 80 % yellow, from 100 % red.
    """
    for found in _BARS.finditer(text):
        percent = int(found[1])
        colour = "red" if percent >= _FULL else "yellow" if percent >= _NEARLY else "green"
        yield *found.span(), colour


def _walk(children: Mapping[str, Sequence[Object]], *, entitled: Amounts) -> Iterator[Share]:
    """Each queue behind the one above it; ``entitled`` is what there is for those at the top."""

    def below(name: str, entitled: Amounts, depth: int) -> list[_Part]:
        siblings = children.get(name, ())
        weights = sum(_weight(queue) for queue in siblings) or 1
        parts = [_Part(each, entitled, _weight(each) / weights, depth) for each in siblings]
        return parts[::-1]

    ahead = below("", entitled, 0)
    while ahead:
        queue, of, part, depth = ahead.pop()
        share = _share(queue, of, part=part, depth=depth)
        yield share
        ahead += below(share.name, share.entitled, depth + 1)


def _share(queue: Object, above: Amounts, *, part: float, depth: int) -> Share:
    wanted = spec(queue)
    deserved = _read(wanted.get("deserved"))
    capability = _read(wanted.get("capability"))
    allocated = _read(held(queue))
    by_weight = {
        resource: min(int(amount * part), capability.get(resource, amount))
        for resource, amount in above.items()
    }
    entitled = {**capability, **by_weight, **deserved}
    parts = {
        resource: amount / entitled[resource]
        for resource, amount in allocated.items()
        if entitled.get(resource)
    }
    dominant = max(parts, key=lambda resource: (parts[resource], resource), default="")
    known = set(_ALWAYS) | set(allocated) | set(deserved) | set(capability)
    return Share(
        name=name(queue),
        depth=depth,
        state=str(status(queue).get("state") or ""),
        weight=_weight(queue),
        allocated=allocated,
        entitled={key: amount for key, amount in entitled.items() if key in known},
        deserved=deserved,
        capability=capability,
        share=parts[dominant] if dominant else (0.0 if entitled else None),
        resource=dominant,
    )


def _parent(queue: Object, names: set[str]) -> str:
    """The queue above; those whose parent does not exist stand at the top."""
    if name(queue) == ROOT:
        return ""
    parent = str(spec(queue).get("parent") or ROOT)
    return parent if parent in names and parent != name(queue) else ""


def _weight(queue: Object) -> int:
    return int(spec(queue).get("weight") or 1)


def _read(amounts: Any) -> Amounts:
    found = readable(amounts)
    return {resource: amount for resource, amount in found.items() if resource not in _UNCOUNTED}


def readable(amounts: Any) -> dict[str, int]:
    """The amounts of a list; a list with an unreadable amount is empty, as with the scheduler."""
    try:
        return quantity.read(amounts, "")
    except DecodeError:
        return {}


def texts(amounts: Amounts) -> dict[str, str]:
    """The amounts as Kubernetes writes them, by name."""
    return {key: quantity.text(key, amount) for key, amount in sorted(amounts.items())}


def rounded_texts(amounts: Amounts) -> dict[str, str]:
    """The amounts in few digits, by name."""
    return {key: rounded(key, amount) for key, amount in amounts.items()}


def _line(share: Share) -> Object:
    return {
        "name": "  " * share.depth + share.name,
        "state": share.state,
        "weight": share.weight,
        "share": bar(share.share),
        "resource": share.resource or "-",
        "allocated": resources(rounded_texts(share.allocated)),
        "deserved": resources(entitlement(share)),
        "capability": resources(rounded_texts(share.capability)),
    }


def entitlement(share: Share) -> dict[str, str]:
    """What the queue is entitled to; ``~`` marks a part by weight, which its spec does not say."""
    texts = rounded_texts(share.entitled)
    return {key: text if key in share.deserved else f"~{text}" for key, text in texts.items()}


def _column(title: str, key: str) -> Column:
    return fitted(title, lambda line: line[key], gap=_GAP)


_COLUMNS = (
    _column("Name", "name"),
    _column("State", "state"),
    _column("Weight", "weight"),
    _column("Share", "share"),
    _column("Of", "resource"),
    _column("Allocated", "allocated"),
    _column("Deserved", "deserved"),
    _column("Capability", "capability"),
)


def rounded(resource: str, amount: int) -> str:
    """``amount`` base units in three digits or so: cores of cpu, bytes with a binary unit."""
    if resource != "cpu" or amount % 1000 == 0:
        return amount_text(resource, amount)
    cores = amount / 1000
    return f"{cores:.0f}" if abs(cores) >= _WHOLE_CORES else f"{cores:.3g}"
