"""The arguments of plugins that share the cluster: whether shares are strict, and how long to wait.

``borrowing`` (default true): a queue may hold more than its share while no entitled gang can use
the room; false is Volcano's strict share. ``borrowing.patience`` (default 60s): how long an
entitled gang waits before room is collected for it.
"""

from app.core.arguments import Arguments
from app.core.policy import Borrowing
from app.model.conf import PluginConf

_BORROWING = "borrowing"
_PATIENCE = "borrowing.patience"


def borrowing_of(conf: PluginConf) -> Borrowing:
    """The terms that the arguments of ``conf`` set; raises ``ConfError``."""
    arguments = Arguments(conf)
    return Borrowing(
        enabled=arguments.flag(_BORROWING, default=True),
        patience_s=arguments.duration(_PATIENCE),
    )
