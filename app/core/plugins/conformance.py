"""conformance: protects system pods from eviction; it has no say in who is placed.

The rule is :func:`app.core.protection.rules.is_of_the_system`, which the guard of the stock
preemption applies whether the conf names this plugin or not.
"""

from app.core.policy import Hooks, OpenPlugin, Session
from app.model.conf import PluginConf


def configure(_conf: PluginConf) -> OpenPlugin:
    """It takes no arguments."""
    return _open


def _open(_session: Session) -> Hooks:
    return Hooks()
