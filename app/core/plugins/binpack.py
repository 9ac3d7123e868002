"""binpack: prefers nodes that are full already, with a weight for each resource and one for all.

``binpack.resources`` names the resources beyond cpu and memory that count, whose weights stand
elsewhere. The negative weight of a resource is taken as 1; with a negative ``binpack.weight`` nodes
are preferred that are empty, and 0 turns the plugin off.
"""

from app.core.arguments import Arguments
from app.core.policy import Hooks, OpenPlugin, Scoring, Session
from app.model.amounts import CPU, MEMORY
from app.model.conf import PluginConf


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``binpack.weight``, ``.cpu``, ``.memory``, ``.resources`` and ``.resources.<name>``."""
    arguments = Arguments(conf)

    def weight(key: str) -> int:
        given = arguments.integer(key, 1)
        return 1 if given < 0 else given

    weights = {CPU: weight("binpack.cpu"), MEMORY: weight("binpack.memory")}
    for name in arguments.text("binpack.resources").split(","):
        resource = name.strip()
        if resource and resource not in weights:
            weights[resource] = weight(f"binpack.resources.{resource}")
    overall = arguments.integer("binpack.weight", 1)
    scoring = Scoring(binpack_weight=overall, binpack=weights) if overall else None

    def open_(_session: Session) -> Hooks:
        return Hooks(scoring=scoring)

    return open_
