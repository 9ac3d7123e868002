"""The admission configuration file: resource groups of pods (volcano.md §6.5).

::

    resourceGroups:
      - resourceGroup: management
        object: {key: namespace, value: [mng-ns-1]}
        schedulerName: default-scheduler
        labels: {volcano.sh/nodetype: management}
        tolerations: [{key: mng-taint-1, operator: Exists, effect: NoSchedule}]
        affinity: '{"nodeAffinity": {…}}'

Values of ``key: annotation`` are pairs written as YAML, ``volcano.sh/resource-group: cpu``.
"""

from collections.abc import Mapping
from typing import Any

import yaml

from app.webhooks.resource_groups import GROUP_ANNOTATION, ResourceGroup
from app.wire import go_yaml
from app.wire.reading import mapping

Source = Mapping[str, Any]


class ConfError(ValueError):
    """The text is no admission configuration; the message says where."""


def parse(text: str) -> tuple[ResourceGroup, ...]:
    """The groups of a file in their order; raises `ConfError`."""
    document = _yaml(text, "the file")
    if document is None:
        return ()
    if not isinstance(document, dict):
        raise ConfError("the file holds no mapping")
    entries = document.get("resourceGroups") or []
    if not isinstance(entries, list):
        raise ConfError("resourceGroups: not a list")
    return tuple(_group(entry, f"resourceGroups[{n}]") for n, entry in enumerate(entries))


def _group(entry: object, at: str) -> ResourceGroup:
    if not isinstance(entry, dict):
        raise ConfError(f"{at}: not a mapping")
    name = entry.get("resourceGroup")
    if not isinstance(name, str) or not name:
        raise ConfError(f"{at}.resourceGroup: a name is required")
    scheduler = entry.get("schedulerName") or ""
    if not isinstance(scheduler, str):
        raise ConfError(f"{at}.schedulerName: not a text")
    namespaces, annotations = _object(entry.get("object"), f"{at}.object", group=name)
    return ResourceGroup(
        name=name,
        namespaces=namespaces,
        annotations=annotations,
        scheduler_name=scheduler,
        labels=_texts(entry.get("labels"), f"{at}.labels"),
        tolerations=_tolerations(entry.get("tolerations"), f"{at}.tolerations"),
        affinity=_affinity(entry.get("affinity"), f"{at}.affinity"),
    )


def _object(
    given: object, at: str, *, group: str
) -> tuple[frozenset[str] | None, tuple[tuple[str, str], ...] | None]:
    """The namespaces or the annotations that it names; neither: the default.

    Values without a key are annotations that count beside the default.
    """
    if given is not None and not isinstance(given, dict):
        raise ConfError(f"{at}: not a mapping")
    key, values = mapping(given).get("key") or "", mapping(given).get("value") or []
    if not isinstance(values, list):
        raise ConfError(f"{at}.value: not a list")
    if key == "namespace":
        return _namespaces(values, f"{at}.value"), None
    if key == "annotation":
        return None, _annotations(values, f"{at}.value")
    if key:
        raise ConfError(f"{at}.key: {key} is neither namespace nor annotation")
    if values:
        return None, (*_annotations(values, f"{at}.value"), (GROUP_ANNOTATION, group))
    return None, None


def _namespaces(values: list[Any], at: str) -> frozenset[str]:
    if not all(isinstance(value, str) for value in values):
        raise ConfError(f"{at}: not a list of names")
    return frozenset(values)


def _annotations(values: list[Any], at: str) -> tuple[tuple[str, str], ...]:
    pairs: list[tuple[str, str]] = []
    for index, value in enumerate(values):
        read = _yaml(value, f"{at}[{index}]") if isinstance(value, str) else value
        pairs += _texts(read, f"{at}[{index}]").items()
    return tuple(pairs)


def _texts(given: object, at: str) -> Mapping[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ConfError(f"{at}: not a mapping")
    if not all(isinstance(each, str) for pair in given.items() for each in pair):
        raise ConfError(f"{at}: keys and values must be texts")
    return given


def _tolerations(given: object, at: str) -> tuple[Source, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise ConfError(f"{at}: not a list of tolerations")
    return tuple(given)


def _affinity(given: object, at: str) -> Source:
    """JSON text, of which YAML is a superset; a mapping is taken as it is."""
    read = _yaml(given, at) if isinstance(given, str) else given
    if read is None:
        return {}
    if not isinstance(read, dict):
        raise ConfError(f"{at}: not an affinity")
    return read


def _yaml(text: str, at: str) -> Any:
    try:
        return go_yaml.load(text)
    except yaml.YAMLError as error:
        raise ConfError(f"{at}: not YAML: {go_yaml.problem(error)}") from error
    except RecursionError as error:
        raise ConfError(f"{at}: not YAML: nested too deeply") from error
