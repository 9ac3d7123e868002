"""conformance: protects system pods from eviction; it has no say in who is placed."""

from app.core.policy import Hooks, OpenPlugin, Session
from app.model.conf import PluginConf


def configure(_conf: PluginConf) -> OpenPlugin:
    """It takes no arguments."""
    return _open


def _open(_session: Session) -> Hooks:
    return Hooks()
