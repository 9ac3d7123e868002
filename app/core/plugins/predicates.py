"""predicates: which of the node rules are on; the rules themselves are placement's."""

from app.core.arguments import Arguments
from app.core.placement.volume_rules import ReachByTable, VolumeRules
from app.core.policy import Hooks, OpenPlugin, Predicates, Session
from app.model.conf import PluginConf


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads the ``predicate.<Rule>Enable`` switches, all on by default.

    ``predicate.CacheEnable`` is checked only: what is remembered of nodes never changes an answer.
    """
    arguments = Arguments(conf)
    arguments.flag("predicate.CacheEnable", default=True)

    def switch(rule: str) -> bool:
        return arguments.flag(f"predicate.{rule}Enable", default=True)

    predicates = Predicates(
        node_affinity=switch("NodeAffinity"),
        node_ports=switch("NodePorts"),
        taints=switch("TaintToleration"),
        pod_affinity=switch("PodAffinity"),
        topology_spread=switch("PodTopologySpread"),
    )
    binding, zone = switch("VolumeBinding"), switch("VolumeZone")
    limits, reach = switch("NodeVolumeLimits"), ReachByTable()

    def open_(session: Session) -> Hooks:
        volumes = VolumeRules(
            session.ledger,
            reach.of(session.ledger.snapshot.table),
            binding=binding,
            zone=zone,
            limits=limits,
        )
        return Hooks(
            predicates=predicates,
            node_rules=volumes.rules or None,
            place_class=volumes.place_class,
        )

    return open_
