"""``volcano-controller.conf``: YAML text -> which HyperNodes are discovered, and how.

Read as Volcano reads it (volcano.md §5.8): an entry that is not enabled is not looked at, and of a
source whose entry is there twice nothing can be meant. What has no effect ends up in ``warnings``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import yaml

from app.core.arguments import parse_bool
from app.kit.durations import parse_duration
from app.model.names import label_value_problems, qualified_problems, subdomain_problems
from app.wire import go_yaml
from app.wire.go_yaml import Placed
from app.wire.unstructured import Key

KEY: Final = "volcano-controller.conf"
LABEL: Final = "label"
UFM: Final = "ufm"
REST: Final = "rest"
SOURCES: Final = (LABEL, UFM, REST)

DEFAULT_INTERVAL_S: Final = 3600.0
SHORTEST_INTERVAL_S: Final = 1.0
_LONGEST_TYPE: Final = 20
"""Letters of the name of a topology, as in Volcano."""

_ROOT: Final = "networkTopologyDiscovery"
_ENTRY: Final = frozenset({"source", "enabled", "interval", "config", "credentials"})
_ADDRESS: Final = {UFM: "endpoint", REST: "url"}


class ControllerConfError(ValueError):
    """The configuration cannot be meant; the text tells the line and the key."""


@dataclass(frozen=True, slots=True)
class Level:
    """A tier of a topology: the label whose values are its domains, and what the tier is called."""

    label: str
    tier_name: str


@dataclass(frozen=True, slots=True)
class Topology:
    """Tiers from the widest to the narrowest.

    ``selector``: the labels of the nodes that it is for, which are then in no other topology; None:
    it is for all nodes that no topology with a selector is for.
    """

    name: str
    levels: tuple[Level, ...]
    selector: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that is asked for the topology every ``interval_s`` seconds.

    ``secret``: where user and password, or a token, and the server's authority are.
    """

    source: str
    url: str
    interval_s: float
    secret: Key | None
    insecure: bool


@dataclass(frozen=True, slots=True)
class Discovery:
    """``topologies``: what labels of nodes tell; None: labels are not to be used.

    ``unsupported`` are sources that are asked for and that there are not.
    """

    topologies: tuple[Topology, ...] | None = None
    servers: tuple[Server, ...] = ()
    unsupported: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that are to be used."""
        by_label = (LABEL,) if self.topologies is not None else ()
        return (*by_label, *(each.source for each in self.servers))

    def server(self, source: str) -> Server | None:
        """The server of ``source``, if it is to be asked."""
        return next((each for each in self.servers if each.source == source), None)


@dataclass(frozen=True, slots=True)
class _At:
    """A value, and the keys that lead to it."""

    placed: Placed
    path: str

    def wrong(self, why: str) -> ControllerConfError:
        return ControllerConfError(f"line {self.placed.line}: {self.path or 'the document'}: {why}")

    def fields(self) -> dict[str, "_At"]:
        """The fields of a mapping; none where it is null."""
        value = self.placed.value
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.wrong("is not a mapping")
        return {
            key: _At(each, f"{self.path}.{key}" if self.path else key)
            for key, each in value.items()
        }

    def items(self) -> "list[_At]":
        """The entries of a list; none where it is null."""
        value = self.placed.value
        if value is None:
            return []
        if not isinstance(value, tuple):
            raise self.wrong("is not a list")
        return [_At(each, f"{self.path}[{n}]") for n, each in enumerate(value)]

    def text(self) -> str:
        """Text that is not empty."""
        value = self.placed.value
        if not isinstance(value, str) or not value:
            raise self.wrong("is not text")
        return value

    def switch(self) -> bool:
        """True or false, as text too."""
        try:
            return parse_bool(self.placed.value)
        except ValueError as error:
            raise self.wrong(str(error)) from error

    def needed(self, key: str) -> "_At":
        """A field that has to be there."""
        found = self.fields().get(key)
        if found is None or found.placed.value is None:
            raise self.wrong(f"{key} is missing")
        return found


def parse_controller_conf(text: str) -> Discovery:
    """The part of ``volcano-controller.conf`` about topology; raises `ControllerConfError`."""
    root = _loaded(text)
    entries = root.fields().get(_ROOT) if root is not None else None
    if entries is None:
        return Discovery()
    return _Reading().discovery(entries.items())


def _loaded(text: str) -> _At | None:
    try:
        placed = go_yaml.load_placed(text)
    except yaml.YAMLError as error:
        raise ControllerConfError(f"not YAML: {go_yaml.problem(error)}") from error
    except RecursionError as error:
        raise ControllerConfError("not YAML: nested too deeply") from error
    return _At(placed, "") if placed is not None else None


class _Reading:
    def __init__(self) -> None:
        self._warnings: list[str] = []
        self._lines: dict[str, int] = {}

    def discovery(self, entries: Iterable[_At]) -> Discovery:
        topologies: tuple[Topology, ...] | None = None
        servers: list[Server] = []
        unsupported: set[str] = set()
        for entry in entries:
            fields = entry.fields()
            if "enabled" not in fields or not fields["enabled"].switch():
                continue
            source = entry.needed("source").text()
            if source not in SOURCES:
                unsupported.add(source)
                continue
            self._note(source, fields["source"])
            self._unknown(fields, _ENTRY)
            if source == LABEL:
                topologies = self._topologies(fields)
            else:
                servers.append(self._server(source, entry))
        return Discovery(
            topologies, tuple(servers), tuple(sorted(unsupported)), tuple(self._warnings)
        )

    def _note(self, source: str, at: _At) -> None:
        if source in self._lines:
            raise at.wrong(f"{source} is enabled in line {self._lines[source]} already")
        self._lines[source] = at.placed.line

    def _unknown(self, fields: Mapping[str, _At], known: Iterable[str]) -> None:
        self._warnings += [
            f"line {at.placed.line}: {at.path}: has no effect"
            for key, at in fields.items()
            if key not in known
        ]

    def _topologies(self, fields: Mapping[str, _At]) -> tuple[Topology, ...]:
        config = fields["config"].fields() if "config" in fields else {}
        self._unknown(config, {"networkTopologyTypes"})
        if "networkTopologyTypes" not in config:
            return ()
        types = config["networkTopologyTypes"].fields()
        return tuple(self._topology(name, at) for name, at in types.items())

    def _topology(self, name: str, at: _At) -> Topology:
        if not name or len(name) > _LONGEST_TYPE:
            raise at.wrong(f"the name has to have 1 to {_LONGEST_TYPE} letters")
        if not isinstance(at.placed.value, Mapping):
            return Topology(name, self._levels(at, named=False))
        fields = at.fields()
        self._unknown(fields, {"nodeSelector", "levels"})
        problems = label_value_problems(name)
        if problems:
            raise at.wrong(f"the name becomes a label: {problems[0]}")
        return Topology(name, self._levels(at.needed("levels"), named=True), self._selector(at))

    def _selector(self, at: _At) -> Mapping[str, str]:
        selector = at.needed("nodeSelector")
        self._unknown(selector.fields(), {"matchLabels"})
        labels = selector.needed("matchLabels")
        found = {key: each.text() for key, each in labels.fields().items()}
        if not found:
            raise labels.wrong("names no label")
        return found

    def _levels(self, at: _At, *, named: bool) -> tuple[Level, ...]:
        """All but the last, which stands for the node itself."""
        levels = [self._level(each, named=named) for each in at.items()]
        if len(levels) < 2:
            raise at.wrong("has no level above the last, which stands for the node itself")
        for number, each in enumerate(levels):
            if each.label in {other.label for other in levels[:number]}:
                raise at.items()[number].wrong(f"nodeLabel {each.label} is there already")
        return tuple(levels[:-1])

    def _level(self, at: _At, *, named: bool) -> Level:
        label = at.needed("nodeLabel")
        problems = qualified_problems(label.text())
        if problems:
            raise label.wrong(problems[0])
        fields = at.fields()
        self._unknown(fields, {"nodeLabel", "tierName"} if named else {"nodeLabel"})
        called = fields["tierName"].text() if named and "tierName" in fields else label.text()
        return Level(label.text(), called)

    def _server(self, source: str, entry: _At) -> Server:
        fields = entry.fields()
        config = entry.needed("config")
        self._unknown(config.fields(), {_ADDRESS[source], "insecureSkipVerify"})
        insecure = config.fields().get("insecureSkipVerify")
        secret = self._secret(fields.get("credentials"))
        if source == UFM and secret is None:
            raise entry.wrong("credentials is missing: UFM asks for a user or a token")
        return Server(
            source=source,
            url=_url(config.needed(_ADDRESS[source])),
            interval_s=_interval(fields.get("interval")),
            secret=secret,
            insecure=insecure.switch() if insecure is not None else False,
        )

    def _secret(self, credentials: _At | None) -> Key | None:
        if credentials is None or credentials.placed.value is None:
            return None
        self._unknown(credentials.fields(), {"secretRef"})
        reference = credentials.needed("secretRef")
        self._unknown(reference.fields(), {"name", "namespace"})
        parts = [reference.needed(key) for key in ("namespace", "name")]
        for part in parts:
            problems = subdomain_problems(part.text())
            if problems:
                raise part.wrong(problems[0])
        return Key(*(part.text() for part in parts))


def _interval(at: _At | None) -> float:
    if at is None or at.placed.value is None:
        return DEFAULT_INTERVAL_S
    try:
        seconds = parse_duration(at.text())
    except ValueError as error:
        raise at.wrong(str(error)) from error
    if seconds <= 0:
        return DEFAULT_INTERVAL_S
    if seconds < SHORTEST_INTERVAL_S:
        raise at.wrong(f"is shorter than {SHORTEST_INTERVAL_S:g} s")
    return seconds


def _url(at: _At) -> str:
    """With its scheme, which is https where none is given."""
    text = at.text()
    url = text if "://" in text else f"https://{text}"
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or any(each.isspace() for each in url):
        raise at.wrong(f"{text!r} is no http or https URL")
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise at.wrong("holds a user: name a Secret in credentials.secretRef instead")
    return url
