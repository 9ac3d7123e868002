"""conformance: protects system pods from eviction; it has no say in placement.

The rule is :func:`app.core.protection.rules.is_of_the_system`. It holds in all tiers, and whether
or not the conf names this plugin: for the actions that evict and for the guard of the stock
preemption.
"""

from app.core.policy import Hooks, OpenPlugin, Session
from app.model.conf import PluginConf


def configure(_conf: PluginConf) -> OpenPlugin:
    """Open the plugin; it takes no arguments."""
    return _open


def _open(_session: Session) -> Hooks:
    return Hooks()
