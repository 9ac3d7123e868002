"""The scheduler configuration in force, and what became of the last text.

A text that cannot be used changes nothing: the previous configuration stays, and the reason is kept
for ``/readyz``, the log and a metric until a good text comes.
"""

import logging
from dataclasses import dataclass, field, replace

from app.core.conf_error import ConfError
from app.core.plugins import extender, predicates, rescheduling, usage
from app.core.plugins.deviceshare import config_map_of, setting_of
from app.core.plugins.network_topology import tiers_of
from app.core.policy import Policies, Predicates
from app.core.shares import limits
from app.core.tiers import build
from app.model.device_claims import CountedClaims
from app.model.device_families import DeviceSetting
from app.model.eviction import EvictionAction
from app.model.http_extender import HttpExtenderConf
from app.model.load import MetricsConf
from app.telemetry import metrics
from app.wire.scheduler_conf import DEFAULT_CONF, parse_scheduler_conf

log = logging.getLogger(__name__)

_PREEMPTING = (EvictionAction.PREEMPT, EvictionAction.GANG_PREEMPT)


def policies_of(text: str) -> Policies:
    """The policies that ``text`` describes; raises ConfError."""
    return build(parse_scheduler_conf(text))


def evicting(policies: Policies) -> bool:
    """Whether some action of ``policies`` evicts pods."""
    return any(action.value in policies.conf.actions for action in EvictionAction)


@dataclass(slots=True, eq=False)
class Configuration:
    """``policies`` in force; ``problem`` is why the newest text is not, else empty."""

    policies: Policies = field(default_factory=lambda: policies_of(DEFAULT_CONF))
    problem: str = ""

    def load(self, text: str) -> bool:
        """Take ``text`` into force if it is good; returns whether it did."""
        try:
            self.policies = policies_of(text)
        except ConfError as error:
            self.problem = " ".join(str(error).split())
            metrics.CONFIGURATION_RELOADS.labels("refused").inc()
            log.error("scheduler configuration refused", extra={"reason": self.problem})
            return False
        self.problem = ""
        metrics.CONFIGURATION_RELOADS.labels("loaded").inc()
        for warning in self.policies.conf.warnings:
            log.warning("scheduler configuration", extra={"warning": warning})
        return True

    def notices(self) -> tuple[str, ...]:
        """What an operator should know."""
        refused = (f"scheduler configuration refused: {self.problem}",) if self.problem else ()
        conf = self.policies.conf
        blind = conf.plugin(usage.NAME) is not None and conf.metrics is None
        said = (
            (f"plugin {usage.NAME} has no effect: metrics names nothing to ask",) if blind else ()
        )
        return refused + said + conf.warnings

    @property
    def evicts(self) -> bool:
        """Whether some action evicts pods."""
        return evicting(self.policies)

    @property
    def shuffles(self) -> bool:
        """Whether pods are moved though no group waits."""
        return EvictionAction.SHUFFLE in self.policies.conf.actions

    @property
    def revokes(self) -> bool:
        """Whether pods leave nodes by the clock, though no group waits."""
        preempts = EvictionAction.PREEMPT in self.policies.conf.actions
        return preempts and self.policies.conf.plugin("tdm") is not None

    @property
    def preempts(self) -> bool:
        """Whether the planner makes room inside queues, so that kube-scheduler is not to."""
        return any(action.value in self.policies.conf.actions for action in _PREEMPTING)

    @property
    def network_labels(self) -> tuple[str, ...]:
        """The labels of nodes that are the network's tiers without HyperNodes, the widest first."""
        conf = self.policies.conf.plugin("network-topology-aware")
        return () if conf is None else tiers_of(conf)

    @property
    def heeds_numa(self) -> bool:
        """Whether pods are sent only where their kubelet takes them with their cpus."""
        return self.policies.conf.plugin("numa-aware") is not None

    @property
    def devices(self) -> DeviceSetting:
        """The settings for devices that pods share; none count without the plugin."""
        conf = self.policies.conf.plugin("deviceshare")
        return DeviceSetting() if conf is None else setting_of(conf)

    @property
    def device_config_map(self) -> tuple[str, str] | None:
        """Namespace and name of the ConfigMap of the device plugins; None: nothing needs it."""
        conf = self.policies.conf.plugin("deviceshare")
        return None if conf is None else config_map_of(conf)

    @property
    def metrics(self) -> MetricsConf | None:
        """What is to be asked how busy nodes are; None: no plugin looks at that."""
        conf = self.policies.conf
        if conf.metrics is None or not self.load_plugins:
            return None
        moves = conf.plugin(rescheduling.NAME)
        period_s = None if moves is None else rescheduling.period_of(moves)
        return conf.metrics if period_s is None else replace(conf.metrics, window_s=period_s)

    @property
    def load_plugins(self) -> tuple[str, ...]:
        """The plugins that look at how busy nodes are."""
        conf = self.policies.conf
        moves = conf.plugin(rescheduling.NAME)
        found = (usage.NAME,) if conf.plugin(usage.NAME) is not None else ()
        if moves is not None and rescheduling.period_of(moves) is not None:
            found = (*found, rescheduling.NAME)
        return found

    @property
    def http_extender(self) -> HttpExtenderConf | None:
        """The server that is asked about groups, nodes and victims; None: none is."""
        plugin = self.policies.conf.plugin(extender.NAME)
        conf = None if plugin is None else extender.conf_of(plugin)
        return conf if conf is not None and conf.verbs else None

    @property
    def predicates(self) -> Predicates:
        """Which rules about nodes are on."""
        conf = self.policies.conf.plugin("predicates")
        if conf is None or not conf.enabled("enablePredicate"):
            return Predicates(enabled=False)
        return predicates.rules_of(conf)

    @property
    def bind_timeout_s(self) -> float | None:
        """How long kube-scheduler may take to bind volumes; None: it is not said."""
        conf = self.policies.conf.plugin("predicates")
        return None if conf is None else predicates.bind_timeout_of(conf)

    @property
    def counted_claims(self) -> CountedClaims:
        """What of the devices that pods claim counts as room of their queue."""
        conf = self.policies.conf.plugin("capacity")
        return CountedClaims() if conf is None else limits.counted_claims_of(conf)

    @property
    def packs(self) -> bool:
        """Whether full nodes are preferred to empty ones."""
        return self.policies.conf.plugin("binpack") is not None
