"""priority: higher first, among groups and among the members of a group."""

from app.core.policy import Hooks, OpenPlugin, Session
from app.model.conf import PluginConf
from app.model.gang import Gang, Task


def configure(_conf: PluginConf) -> OpenPlugin:
    """It takes no arguments."""
    return _open


def _open(_session: Session) -> Hooks:
    return Hooks(gang_order=_gang_key, task_order=_task_key)


def _gang_key(gang: Gang) -> int:
    return -gang.priority


def _task_key(task: Task) -> int:
    return -task.priority
