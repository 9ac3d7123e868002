"""predicates: which of the node rules are on; the rules themselves are placement's."""

from app.core.arguments import Arguments
from app.core.policy import Hooks, OpenPlugin, Predicates, Session
from app.model.conf import PluginConf


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads the ``predicate.<Rule>Enable`` switches, all on by default."""
    arguments = Arguments(conf)

    def switch(rule: str) -> bool:
        return arguments.flag(f"predicate.{rule}Enable", default=True)

    predicates = Predicates(
        node_affinity=switch("NodeAffinity"),
        node_ports=switch("NodePorts"),
        taints=switch("TaintToleration"),
        pod_affinity=switch("PodAffinity"),
        topology_spread=switch("PodTopologySpread"),
    )

    def open_(_session: Session) -> Hooks:
        return Hooks(predicates=predicates)

    return open_
