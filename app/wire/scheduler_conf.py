"""``volcano-scheduler.conf``: YAML text -> :class:`SchedulerConf`.

Read as Volcano reads it, and more forgiving where tools rewrite the ConfigMap (volcano.md §11):
switches and arguments may have become text, the action list may have lost its blanks. Unknown
plugins and keys, and what has no effect, end up in ``warnings``; what cannot be meant is a
:class:`ConfError` that says where. Values of arguments are checked by the plugins
(:func:`app.core.tiers.build`).
"""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import yaml

from app.core.arguments import parse_bool
from app.core.conf_error import ConfError
from app.core.plugins import catalogue
from app.kit.durations import parse_duration
from app.kit.likeness import meant
from app.model.conf import PluginConf, SchedulerConf
from app.model.load import ADDRESSED, Index, MetricsConf, MetricsType
from app.wire import go_yaml

DEFAULT_CONF = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
"""What is in force when no configuration is given."""

_INTERVAL_S = 30.0
_INSECURE = "tls.insecureSkipVerify"
_ELASTIC = "elasticsearch."
_INDEX_KEYS = {
    f"{_ELASTIC}index": "pattern",
    f"{_ELASTIC}hostnameFieldName": "host_field",
    f"{_ELASTIC}username": "username",
    f"{_ELASTIC}password": "password",
}
"""Keys of ``metrics``, and the fields of :class:`~app.model.load.Index` that they set."""
_KEYS = frozenset({"actions", "tiers", "configurations", "metrics"})


def parse_scheduler_conf(text: str) -> SchedulerConf:
    """The configuration in ``text``; raises :class:`ConfError`."""
    first, more_follows = _load(text)
    document = _mapping(first, where="the configuration")
    warnings = [_no_effect(key) for key in _text_keys(document) if key not in _KEYS]
    if more_follows:
        warnings.append("only the first document is read: what follows `---` has no effect")
    actions = _actions(document.get("actions"))
    tiers = tuple(
        _tier(tier, number=number, warnings=warnings)
        for number, tier in enumerate(_items(document.get("tiers"), where="tiers"), start=1)
    )
    action_arguments = _action_arguments(document.get("configurations"), warnings)
    return SchedulerConf(
        actions=actions,
        tiers=tiers,
        action_arguments=action_arguments,
        metrics=_metrics(document.get("metrics"), warnings),
        warnings=tuple(warnings),
    )


def _load(text: str) -> tuple[Any, bool]:
    try:
        return go_yaml.load_first(text)
    except yaml.YAMLError as err:
        raise ConfError(f"not valid YAML: {go_yaml.problem(err)}") from err
    except RecursionError as err:
        raise ConfError("not valid YAML: nested too deeply") from err


def _actions(value: Any) -> tuple[str, ...]:
    if value is None:
        raise ConfError(f"actions: missing, known are {catalogue.known_actions()}")
    if not isinstance(value, str):
        raise ConfError(f"actions: must be text such as 'enqueue, allocate', not {_kind(value)}")
    names = tuple(name.strip() for name in value.split(","))
    for name in names:
        if name not in catalogue.ACTIONS:
            known = catalogue.known_actions()
            raise ConfError(f"actions: unknown action {name!r}, known are {known}")
    return names


def _tier(value: Any, *, number: int, warnings: list[str]) -> tuple[PluginConf, ...]:
    tier = _mapping(value, where=f"tier {number}")
    plugins = _items(tier.get("plugins"), where=f"tier {number}: plugins")
    return tuple(
        _plugin(plugin, tier=number, position=position, warnings=warnings)
        for position, plugin in enumerate(plugins, start=1)
    )


def _plugin(value: Any, *, tier: int, position: int, warnings: list[str]) -> PluginConf:
    where = f"tier {tier}, plugin {position}"
    given = _mapping(value, where=where)
    name = _name(given, where=where)
    if name not in catalogue.PLUGINS:
        warnings.append(_unknown_plugin(name))
    where = f"{where} ({name})"
    warnings += [
        f"{where}: {_no_effect(key)}"
        for key in _text_keys(given)
        if key not in catalogue.SWITCHES and key not in {"name", "arguments"}
    ]
    return PluginConf(
        name=name,
        switches={
            key: _switch(given[key], where=f"{where}: {key}")
            for key in given
            if key in catalogue.SWITCHES and given[key] is not None
        },
        arguments=_arguments(given, where=where),
    )


def _action_arguments(value: Any, warnings: list[str]) -> dict[str, dict[str, object]]:
    """Arguments by action; as in Volcano the first entry of an action counts."""
    found: dict[str, dict[str, object]] = {}
    for position, item in enumerate(_items(value, where="configurations"), start=1):
        where = f"configurations, entry {position}"
        given = _mapping(item, where=where)
        name = _name(given, where=where)
        if name not in catalogue.ACTIONS:
            warnings.append(f"{where}: there is no action {name}: it has no effect")
        where = f"{where} ({name})"
        arguments = _arguments(given, where=where)
        known = catalogue.arguments_of_action(name) if name not in found else ()
        if name in catalogue.ACTIONS:
            warnings += [
                f"{where}: argument {key} has no effect" for key in arguments if key not in known
            ]
        found.setdefault(name, arguments)
    return found


def _metrics(value: Any, warnings: list[str]) -> MetricsConf | None:
    """What is asked for loads of nodes; keys such as those of ``tls`` may be nested or dotted."""
    if not value:
        return None
    given = _flattened(_mapping(value, where="metrics"))
    said = given.get("type") or MetricsType.PROMETHEUS.value
    if said not in list(MetricsType):
        known = ", ".join(MetricsType)
        warnings.append(f"metrics: nothing is asked of {said!r}, known are {known}")
        return None
    kind = MetricsType(said)
    known_keys = {"type", "address", "interval", _INSECURE}
    if kind is MetricsType.ELASTICSEARCH:
        known_keys |= _INDEX_KEYS.keys()
    warnings += [f"metrics: {_no_effect(key)}" for key in given if key not in known_keys]
    insecure = given.get(_INSECURE)
    return MetricsConf(
        kind,
        address=_address(given.get("address")) if kind in ADDRESSED else "",
        interval_s=_interval(given.get("interval")),
        insecure=insecure is not None and _switch(insecure, where=f"metrics: {_INSECURE}"),
        index=_index(given) if kind is MetricsType.ELASTICSEARCH else Index(),
    )


def _index(given: Mapping[str, Any]) -> Index:
    """Keys that are absent, null or empty text keep their defaults; numbers become text."""
    said: dict[str, str] = {}
    for key, name in _INDEX_KEYS.items():
        value = given.get(key)
        if isinstance(value, bool) or not isinstance(value, str | int | None):
            raise ConfError(f"metrics: {key}: {_kind(value)} is not text")
        if value not in {None, ""}:
            said[name] = str(value)
    found = Index(**said)
    if any(each in found.pattern for each in "/?# "):
        raise ConfError(f"metrics: {_ELASTIC}index: {found.pattern!r} is no name of an index")
    return found


def _flattened(given: Mapping[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in given.items():
        nested = value if isinstance(value, dict) else None
        below = nested.items() if nested is not None else [("", value)]
        found |= {f"{key}.{each}" if each else str(key): inner for each, inner in below}
    return found


def _address(value: Any) -> str:
    parts = urlsplit(value) if isinstance(value, str) else None
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfError(f"metrics: address: {value!r} is no http or https URL")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfError("metrics: address: only scheme, host, port and path may be given")
    return str(value).rstrip("/")


def _interval(value: Any) -> float:
    if value is None:
        return _INTERVAL_S
    try:
        seconds = parse_duration(value) if isinstance(value, str) else 0.0
    except ValueError:
        seconds = 0.0
    if seconds < 1:
        raise ConfError(f"metrics: interval: {value!r} is not a duration of 1s or more")
    return seconds


def _name(given: Mapping[Any, Any], *, where: str) -> str:
    name = given.get("name")
    if not isinstance(name, str) or not name:
        raise ConfError(f"{where}: name is missing or not text")
    return name


def _arguments(given: Mapping[Any, Any], *, where: str) -> dict[str, object]:
    arguments = given.get("arguments")
    if arguments is None:
        return {}
    return {str(k): v for k, v in _mapping(arguments, where=f"{where}: arguments").items()}


def _switch(value: Any, *, where: str) -> bool:
    try:
        return parse_bool(value)
    except ValueError as err:
        raise ConfError(f"{where}: {err}") from err


def _mapping(value: Any, *, where: str) -> Mapping[Any, Any]:
    if not isinstance(value, dict):
        raise ConfError(f"{where} must be a mapping, not {_kind(value)}")
    return value


def _items(value: Any, *, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ConfError(f"{where} must be a list, not {_kind(value)}")
    return value


def _text_keys(given: Mapping[Any, Any]) -> Iterable[str]:
    return (str(key) for key in given)


def _no_effect(key: str) -> str:
    return f"key {key} is unknown: it has no effect"


def _unknown_plugin(name: str) -> str:
    """Volcano goes without plugins that it has not loaded: many are made by others."""
    return f"plugin {name} is unknown{meant(name, catalogue.PLUGINS)}: it has no effect"


def _kind(value: Any) -> str:
    match value:
        case None:
            return "empty"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            return "text"
    return repr(value)
