"""How many domains of the network are known, what is wrong with them, and which gangs are inside.

Worked out when a scrape asks. A replica that does not lead has none.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from app.api.leader_metrics import LeaderMetrics
from app.cache.gangs.views import topology_of
from app.model.ids import CLUSTER


class NetworkMetrics(LeaderMetrics):
    """Reads the cache."""

    def _families(self) -> Iterator[Metric]:
        network = self._cache.network
        domains = network.domains(self._cache.node_usage.table())
        tier_of = dict(zip(domains.names, map(str, domains.tiers.tolist()), strict=True))
        yield _counted(
            "pumice_domains",
            "Domains of the network by tier, without the whole cluster.",
            ("tier",),
            ((tier,) for name, tier in tier_of.items() if name != CLUSTER),
        )
        yield _counted(
            "pumice_hypernode_problems",
            "What is wrong with HyperNodes, by reason.",
            ("reason",),
            ((each.reason,) for found in network.problems().values() for each in found),
        )
        yield _counted(
            "pumice_gangs_in_domains",
            "Gangs that ask for a domain and have places, by the tier they reached and by mode.",
            ("tier", "mode"),
            self._placed(tier_of),
        )

    def _placed(self, tier_of: dict[str, str]) -> Iterator[tuple[str, str]]:
        """Tier and mode of each such gang, by the domain that its PodGroup tells."""
        for group in self._cache.groups.values():
            domain = "" if group.pod_group is None else group.pod_group.domain
            topology = topology_of(group) if domain in tier_of else None
            if topology is not None:
                yield tier_of[domain], topology.mode.value


def _counted(
    name: str, text: str, labels: tuple[str, ...], found: Iterable[tuple[str, ...]]
) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, count in sorted(Counter(found).items()):
        family.add_metric(values, count)
    return family
