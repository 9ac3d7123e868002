"""Recordings under other names: namespaces, pods, groups, queues, nodes and values of labels.

The planner walks in orders that end in names, so a new name stands where the old one stood among
all others, and the same things are decided. A number at the end of a name stays, as members are
ordered by it. What stays as it is: names of resources, keys of labels, taints and annotations,
numbers, what the configuration names, the names that the planner knows, and notes about devices. Of
the configuration only the URL of the plugin extender goes.
"""

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

from app.core.plugins.extender import URL_PREFIX
from app.core.protection.rules import SYSTEM_CLASSES, SYSTEM_NAMESPACE
from app.model import device_families, devices
from app.model.booleans import boolean
from app.model.conf import SchedulerConf
from app.model.eviction import PipelinedPlace
from app.model.ids import CLUSTER, DEFAULT_QUEUE, ROOT_QUEUE
from app.model.integers import int64
from app.model.plan import Placement, Plan
from app.model.reason import Refusal
from app.model.recorded import Recording

_KNOWN: Final = frozenset(
    {"", CLUSTER, ROOT_QUEUE, DEFAULT_QUEUE, SYSTEM_NAMESPACE, *SYSTEM_CLASSES}
)
_KEPT_MODULES: Final = frozenset({device_families.__name__, devices.__name__})
_KEPT: Final = frozenset(
    {
        *("Pod.phase", "Pod.scheduler", "Pod.gates", "Owner.api_version", "Owner.kind"),
        *("Requirement.key", "Toleration.key", "Toleration.effect", "Taint.key", "Taint.effect"),
        *("PodTerm.topology_key", "Spread.topology_key", "SubGroupPolicy.keys"),
        *("HostPort.ip", "HostPort.protocol", "DevicesTaken.family", "NodeDevices.family"),
        *("ResourceAxis.names", "ResourceAxis.index", "VictimPod.rule", "PodClaim.entry"),
    }
)
"""Fields whose texts are no names of the cluster."""
_OF_GROUPS: Final = frozenset({"NodeDevices", "DevicesTaken"})
"""Notes about devices that name groups."""
_NUMBERS: Final = frozenset({"Gang.owed", "Gang.reached"})
_KEYED: Final = frozenset({"labels"})
"""Fields that map keys, which stay, to values."""
_NUMBER: Final = re.compile(r".*(-[0-9]+)", re.ASCII | re.DOTALL)
_AMOUNT: Final = re.compile(r"[0-9.]+(%|ms|s|m|h|d|[kKMGTPE]i?)?", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
_HIERARCHY: Final = "volcano.sh/hierarchy"
_OURS: Final = ("volcano.sh/", "pumice.sh/", "kueue.x-k8s.io/")
_ADDRESS: Final = "http://redacted"
_PAIR: Final = 2


def redacted(recording: Recording) -> tuple[Recording, Mapping[str, str]]:
    """The recording under other names, and these by the old ones.

    The plans are those of before: they are to be made anew. Certificates are left out.
    """
    recording = dataclasses.replace(
        recording,
        entries=tuple(
            dataclasses.replace(entry, conf=_without_address(entry.conf))
            for entry in recording.entries
        ),
    )
    seen = _Walk(None)
    for entry in recording.entries:
        seen.keep(_words(entry.conf))
        seen.walk(entry.snapshot)
        seen.walk(entry.key)
    names = _new_names(seen.names - seen.kept, anchors=seen.names & seen.kept)
    walk = _Walk(names)
    entries = tuple(
        dataclasses.replace(entry, snapshot=walk.walk(entry.snapshot), key=walk.walk(entry.key))
        for entry in recording.entries
    )
    return dataclasses.replace(recording, entries=entries, redacted=True), names


def decided(plan: Plan, names: Mapping[str, str]) -> Any:
    """What a plan decides under other ``names``, to be compared: all but words and proofs."""
    told = _Told(names)
    return (
        told(plan.admitted),
        [(told(each.gang), each.whole, *map(told.place, each.placements)) for each in plan.placed],
        sorted((told(key), *_numbers(why)) for key, why in plan.refused.items()),
        sorted(told(tuple(plan.shown))),
        sorted(told(tuple(plan.set_aside))),
        sorted(told(tuple(plan.unplaced_claims))),
        [
            (told(each.gang), *((told(node), held.tolist()) for node, held in each.nodes))
            for each in plan.collected
        ],
        sorted(
            (told(key), told(loan.borrowed_from), loan.amount.tolist())
            for key, loan in plan.loans.items()
        ),
        [
            (
                (each.action, told(each.preemptor), each.admits),
                [told((v.uid, v.namespace, v.name, v.node, v.gang, v.queue)) for v in each.victims],
                [told.place(place) for place in each.places],
            )
            for each in plan.evictions
        ],
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Told:
    """Texts under other names."""

    names: Mapping[str, str]

    def __call__(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.names.get(value, value)
        return [self(each) for each in value]

    def place(self, place: Placement | PipelinedPlace) -> Any:
        return self((place.task.uid, place.task.role, place.node))


def _numbers(why: Refusal) -> tuple[Any, ...]:
    shortfalls = [(each.resource, each.asked, each.free) for each in why.shortfalls]
    return why.cause, str(why.never), shortfalls, why.total_nodes, why.lacking


class _Walk:
    """Goes through values: collects their names, or makes the values anew under others."""

    def __init__(self, new: Mapping[str, str] | None) -> None:
        """``new`` None: names are collected."""
        self.names: set[str] = set()
        self.kept: set[str] = set(_KNOWN)
        self._new = new
        self._made: dict[int, Any] = {}
        self._alive: list[object] = []

    def keep(self, texts: Iterable[str]) -> None:
        """These texts are no names."""
        self.kept.update(texts)

    def walk(self, value: Any) -> Any:
        """The value, in which every text is a name unless something says otherwise."""
        if isinstance(value, str) and not isinstance(value, Enum):
            return self._name(value)
        if value is None or isinstance(value, Enum | int | float | bytes):
            return value
        made = self._made.get(id(value))
        if made is None:
            made = self._made[id(value)] = self._anew(value)
            self._alive.append(value)
        return made

    def _anew(self, value: Any) -> Any:
        kind = type(value)
        if dataclasses.is_dataclass(kind):
            return self._object(value, kind)
        if isinstance(value, Mapping):
            items = ((self.walk(key), self.walk(each)) for key, each in value.items())
            return Counter(dict(items)) if kind is Counter else dict(items)
        if kind is tuple and len(value) == _PAIR and _is_amount(value):
            self.kept.add(value[0])
            return value
        if isinstance(value, tuple):
            parts = [self.walk(each) for each in value]
            return tuple(parts) if kind is tuple else kind(*parts)
        if isinstance(value, frozenset | set | list):
            return kind(self.walk(each) for each in value)
        return value

    def _object(self, value: Any, kind: type) -> Any:
        if kind.__module__ in _KEPT_MODULES and kind.__name__ not in _OF_GROUPS:
            return value
        made: Any = object.__new__(kind)
        for field in dataclasses.fields(kind):
            told = self._field(kind.__name__, field.name, getattr(value, field.name))
            object.__setattr__(made, field.name, told)
        return made

    def _field(self, kind: str, name: str, value: Any) -> Any:
        where = f"{kind}.{name}"
        if where in _KEPT:
            self.kept.update(_texts(value))
            return value
        if where == "EvictionPlan.certificate":
            return {}
        if where in _NUMBERS:
            return Counter({self._of_part(key): count for key, count in value.items()})
        if where == "PodShape.node_selector":
            return self._pairs(value)
        if where == "PodShape.spread_identity" and value is not None:
            return self.walk(value[0]), self._pairs(value[1])
        if name in _KEYED and isinstance(value, Mapping):
            self.kept.update(value)
            return {key: self.walk(each) for key, each in value.items()}
        if name == "annotations" and isinstance(value, Mapping):
            self.kept.update(value)
            return {key: self._annotation(key, each) for key, each in value.items()}
        return self.walk(value)

    def _of_part(self, key: str) -> str:
        """Numbers of a minimum are by a word and a name (:mod:`app.model.reached`)."""
        word, slash, name = key.partition("/")
        return f"{word}/{self._name(name)}" if slash else key

    def _pairs(self, value: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        pairs = tuple(value)
        self.kept.update(key for key, _ in pairs)
        return tuple((key, self._name(each)) for key, each in pairs)

    def _annotation(self, key: str, value: str) -> str:
        """Of our own ones names in it are replaced, of others all of it."""
        if not any(ours in key for ours in _OURS):
            return self._name(value)
        parts = re.split(r"([/,;\s]+)", value)
        if key == _HIERARCHY:
            return "".join(part if at % 2 else self._name(part) for at, part in enumerate(parts))
        new = self._new or {}
        return "".join(new.get(part, part) for part in parts)

    def _name(self, text: str) -> str:
        if self._new is not None:
            return self._new.get(text, text)
        self.names.add(text)
        if int64(text) is not None or boolean(text) is not None or _AMOUNT.fullmatch(text):
            self.kept.add(text)
        return text


def _new_names(names: Iterable[str], *, anchors: Iterable[str]) -> dict[str, str]:
    """New names in the order of the old ones, also beside those that stay (``anchors``)."""
    found: dict[str, str] = {}
    stays = set(anchors)
    before = ""
    for number, name in enumerate(sorted({*names, *stays})):
        if name in stays:
            before = name
            continue
        last = _NUMBER.fullmatch(name)
        found[name] = f"{before}!{number:08d}{last[1] if last else ''}"
    return found


def _is_amount(value: tuple[Any, ...]) -> bool:
    name, amount = value
    return isinstance(name, str) and type(amount) is int


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | tuple | list | frozenset):
        for each in value:
            yield from _texts(each)


def _without_address(conf: SchedulerConf) -> SchedulerConf:
    """The configuration with another URL of the server that decides too, which no plan asks."""
    tiers = tuple(
        tuple(
            dataclasses.replace(plugin, arguments={**plugin.arguments, URL_PREFIX: _ADDRESS})
            if URL_PREFIX in plugin.arguments
            else plugin
            for plugin in tier
        )
        for tier in conf.tiers
    )
    return dataclasses.replace(conf, tiers=tiers)


def _words(value: Any) -> Iterator[str]:
    """Everything in a configuration that may be a name."""
    if isinstance(value, str):
        for word in _WORD.findall(value):
            yield word
            yield from word.split(".")
            yield from word.split("/")
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _words(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for item in value.items():
            yield from _words(item)
    elif isinstance(value, tuple | list | frozenset):
        for each in value:
            yield from _words(each)
