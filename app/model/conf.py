"""The scheduler configuration (``volcano-scheduler.conf``, volcano.md §3.2) as a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.model.load import MetricsConf


@dataclass(frozen=True, slots=True, eq=False)
class PluginConf:
    """One plugin of a tier: its switches by yaml key (absent: on) and its arguments."""

    name: str
    switches: Mapping[str, bool] = field(default_factory=dict)
    arguments: Mapping[str, object] = field(default_factory=dict)

    def enabled(self, switch: str) -> bool:
        """Whether the extension point is on (only ``enableHierarchy`` is off by default)."""
        return self.switches.get(switch, switch != "enableHierarchy")


@dataclass(frozen=True, slots=True, eq=False)
class SchedulerConf:
    """``actions`` in their order, plugin ``tiers``, arguments per action, and what was odd in it.

    ``warnings`` name things that are read but have no effect here.
    """

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginConf, ...], ...]
    action_arguments: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    metrics: MetricsConf | None = None
    """What is asked how busy nodes are; None: nothing is."""
    warnings: tuple[str, ...] = ()

    def plugin(self, name: str) -> PluginConf | None:
        """The first configuration of the plugin ``name``."""
        return next((p for tier in self.tiers for p in tier if p.name == name), None)
