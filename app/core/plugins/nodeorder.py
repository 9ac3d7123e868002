"""nodeorder: scores nodes by the rules of the stock kube-scheduler, each with a weight."""

from app.core.arguments import Arguments
from app.core.policy import Hooks, OpenPlugin, Scoring, Session
from app.model.conf import PluginConf


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads the ``<rule>.weight`` arguments."""
    arguments = Arguments(conf)
    scoring = Scoring(
        least_requested=arguments.integer("leastrequested.weight", 1),
        most_requested=arguments.integer("mostrequested.weight", 0),
        balanced=arguments.integer("balancedresource.weight", 1),
        node_affinity=arguments.integer("nodeaffinity.weight", 2),
        pod_affinity=arguments.integer("podaffinity.weight", 2),
        taint_toleration=arguments.integer("tainttoleration.weight", 3),
        image_locality=arguments.integer("imagelocality.weight", 1),
        topology_spread=arguments.integer("podtopologyspread.weight", 2),
    )

    def open_(_session: Session) -> Hooks:
        return Hooks(scoring=scoring)

    return open_
