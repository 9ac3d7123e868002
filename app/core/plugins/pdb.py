"""pdb: PodDisruptionBudgets protect pods from eviction.

They do so in all tiers, and whether or not the conf names this plugin
(:mod:`app.core.protection.disruptions`): the API server would refuse the eviction. Unlike in
Volcano, pods without labels are not protected by that alone.
"""

from app.core.policy import Hooks, OpenPlugin, Session
from app.model.conf import PluginConf


def configure(_conf: PluginConf) -> OpenPlugin:
    """Open the plugin; it takes no arguments."""
    return _open


def _open(_session: Session) -> Hooks:
    return Hooks()
