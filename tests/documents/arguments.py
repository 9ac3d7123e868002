"""The plugins of `volcano-scheduler.conf`, each with the arguments that it reads."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pytest

from app.core.arguments import Arguments
from app.core.plugins.catalogue import PLUGINS
from app.model.conf import PluginConf

_KINDS: Final = {
    "integer": "whole number",
    "number": "number",
    "flag": "true or false",
    "quantity": "quantity",
    "text": "text",
    "duration": "duration",
}
"""How an argument is read -> what it is."""
PAGE_OF: Final[Mapping[str, str]] = {
    "deviceshare": "[Devices](devices.md)",
    "extender": "[A server that decides too](extender-plugin.md)",
    "group-topology-affinity": "[Network topology](network-topology.md)",
    "network-topology-aware": "[Network topology](network-topology.md)",
    "nodegroup": "[Node groups](node-groups.md)",
    "numa-aware": "[NUMA](numa.md)",
    "predicates": "[Volumes](volumes.md)",
    "rescheduling": "[Rescheduling](rescheduling.md)",
    "task-topology": "[Tasks that belong together](task-topology.md)",
    "tdm": "[Revocable zones](tdm.md)",
    "usage": "[Busy nodes](usage.md)",
}
"""Plugin -> the page that tells more."""
EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "binpack": ("binpack",),
    "capacity": ("queues/tree.yaml", "queues/tree-jobs.yaml"),
    "cdp": ("scheduling/cooldown.yaml",),
    "conformance": ("conformance",),
    "deviceshare": ("scheduling/shared-gpus.yaml",),
    "drf": (
        "scheduling/fair-share-cpu.yaml",
        "scheduling/fair-share-memory.yaml",
        "scheduling/fair-share-small.yaml",
    ),
    "extender": ("extender",),
    "gang": ("scheduling/gang.yaml", "scheduling/gang-mpi.yaml"),
    "group-topology-affinity": ("scheduling/topology-affinity.yaml",),
    "network-topology-aware": ("scheduling/network-topology.yaml",),
    "nodegroup": ("queues/node-groups.yaml", "queues/node-groups-jobs.yaml"),
    "nodeorder": ("nodeorder",),
    "numa-aware": ("scheduling/numa.yaml",),
    "overcommit": ("overcommit",),
    "pdb": ("pdb",),
    "predicates": ("scheduling/node-selector.yaml", "scheduling/volumes.yaml"),
    "priority": ("scheduling/priority-high.yaml", "scheduling/priority-job.yaml"),
    "proportion": ("proportion",),
    "rescheduling": ("scheduling/rescheduling.yaml",),
    "resource-strategy-fit": ("resource-strategy-fit",),
    "resourcequota": ("resourcequota",),
    "sla": ("scheduling/waiting-time.yaml",),
    "task-topology": ("scheduling/task-topology.yaml",),
    "tdm": ("scheduling/revocable.yaml",),
    "usage": ("usage",),
}
"""Plugin -> files and folders below `examples/` that show it."""
_MEANT: Final[Mapping[str, str]] = {
    "borrowing.patience": "60s",
    "deviceshare.KnownGeometriesCMName": "volcano-vgpu-device-config",
    "deviceshare.KnownGeometriesCMNamespace": "kube-system",
    "estimator.be_cpu": "250m",
    "estimator.be_mem": "200Mi",
    "extender.httpTimeout": "1s",
    "interval": "5m",
    "metricsPeriod": "5m",
    "resources.cpu.type": "LeastAllocated",
    "resources.memory.type": "LeastAllocated",
    "tdm.evict.period": "1m",
    "volumebinding.bindTimeoutSeconds": "--prebind-timeout",
    "tdm.timezone": "UTC",
}
"""Argument -> its default as a user writes it, where the plugin puts it in after reading."""
_BESIDE: Final[Mapping[str, tuple[tuple[str, str, str], ...]]] = {
    "binpack": (("binpack.resources.<name>", "whole number", "`1`"),),
    "deviceshare": (("deviceshare.GPUExclusiveRules", "list of mappings", "none"),),
    "extender": (("extender.managedResources", "list or text", "all pods"),),
    "network-topology-aware": (("hypernode.binpack.resources.<name>", "whole number", "`1`"),),
    "predicates": (("volumebinding.shape", "list of mappings", "none"),),
    "rescheduling": (("strategies", "list of mappings", "none"),),
    "resource-strategy-fit": (
        ("resources.<name>.type", "text", "`LeastAllocated`"),
        ("resources.<name>.weight", "whole number", "`1`"),
        ("sra.weight", "whole number", "`0`"),
        ("sra.resourceWeight.<name>", "whole number", "`1`"),
        ("proportional.resources", "text", "none"),
        ("proportional.resourceProportion.<name>.cpu", "number", "`1`"),
        ("proportional.resourceProportion.<name>.memory", "number", "`1`"),
    ),
    "tdm": (("tdm.revocable-zone.<name>", "text", "none"),),
}
"""Plugin -> (argument, what it is, default) of those that are read only where others are given."""
_SHARES: Final = "[Preemption and fairness](fairness.md)"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument as a plugin reads it; no default: it is told as none."""

    key: str
    kind: str
    default: object

    @property
    def told(self) -> str:
        """The default in words or code."""
        if self.key in _MEANT:
            return f"`{_MEANT[self.key]}`"
        if self.default is None:
            return "none"
        if isinstance(self.default, bool):
            return f"`{str(self.default).lower()}`"
        return f"`{self.default:g}`" if isinstance(self.default, float) else f"`{self.default}`"


@cache
def arguments_of(plugin: str) -> tuple[Argument, ...]:
    """What a plugin reads of a configuration that has no arguments, by name."""
    read: dict[str, Argument] = {}
    with pytest.MonkeyPatch.context() as patch:
        for method, kind in _KINDS.items():
            patch.setattr(Arguments, method, _reading(getattr(Arguments, method), kind, read))
        PLUGINS[plugin](PluginConf(plugin))
    return tuple(sorted(read.values(), key=lambda each: each.key))


def _reading(method: Any, kind: str, read: dict[str, Argument]) -> Any:
    def noted(arguments: Arguments, key: str, *defaults: Any, **named: Any) -> Any:
        default = next(iter((*defaults, *named.values())), None)
        read[key] = Argument(key, kind, default)
        return method(arguments, key, *defaults, **named)

    return noted


def sections() -> Iterator[str]:
    """One section for each plugin: what it does, and its arguments."""
    for plugin, configure in sorted(PLUGINS.items()):
        yield f"## {plugin}"
        yield f"{_purpose(configure)}{_more(plugin)}"
        yield _examples(plugin)
        rows = [(each.key, each.kind, each.told) for each in arguments_of(plugin)]
        rows += _BESIDE.get(plugin, ())
        if not rows:
            continue
        yield "| argument | | default |"
        yield "|---|---|---|"
        for key, kind, told in sorted(rows):
            yield f"| `{key}` | {kind} | {told} |"


def _purpose(configure: object) -> str:
    """The first sentence of the plugin's module, without its name and its markup."""
    module = inspect.getmodule(configure)
    text = " ".join((inspect.getdoc(module) or "").partition("\n\n")[0].split())
    said = re.sub(r"``(.*?)``", r"`\1`", text.partition(": ")[2])
    return said[:1].upper() + said[1:]


def _examples(plugin: str) -> str:
    named = [f"`examples/{each}`" for each in EXAMPLES[plugin]]
    return f"{'Example' if len(named) == 1 else 'Examples'}: {', '.join(named)}."


def _more(plugin: str) -> str:
    page = PAGE_OF.get(plugin) or (_SHARES if "borrowing" in _keys(plugin) else "")
    return f" More: {page}." if page else ""


def _keys(plugin: str) -> set[str]:
    return {each.key for each in arguments_of(plugin)}
