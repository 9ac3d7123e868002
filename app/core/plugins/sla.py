"""sla: a group that waited longer than its waiting time is admitted whatever lower tiers say.

It votes in the same way on whether a group has room enough once its victims have gone. No vote lets
pods go for a part of a minimum: that the whole one has places is proven besides.

The waiting time is the group's annotation, else the plugin's argument, else none. Groups are
ordered by the moment at which their waiting time ends; groups without one come last.
"""

from app.core.arguments import Arguments
from app.core.policy import ABSTAIN, PERMIT, Ballot, Hooks, OpenPlugin, Session
from app.kit.durations import parse_duration
from app.model.conf import PluginConf
from app.model.gang import Gang

_ARGUMENT = "sla-waiting-time"
_ANNOTATIONS = ("volcano.sh/sla-waiting-time", "sla-waiting-time")


def configure(conf: PluginConf) -> OpenPlugin:
    """Reads ``sla-waiting-time``, the waiting time of groups that do not set their own."""
    general = Arguments(conf).duration(_ARGUMENT)

    def open_(session: Session) -> Hooks:
        now = session.now

        def order(gang: Gang) -> tuple[bool, float]:
            due = _due(gang, general)
            return due is None, due or 0.0

        def vote(gang: Gang) -> Ballot:
            due = _due(gang, general)
            return ABSTAIN if due is None or now < due else PERMIT

        def patience(gang: Gang) -> float | None:
            return _own_wait(gang) or general

        return Hooks(
            gang_order=order,
            enqueueable=vote,
            pipelined=vote,
            patience=patience,
        )

    return open_


def _due(gang: Gang, general: float | None) -> float | None:
    wait = _own_wait(gang) or general
    return None if wait is None else gang.created + wait


def _own_wait(gang: Gang) -> float | None:
    """The first annotated waiting time that is a positive duration."""
    texts = (gang.annotations[key] for key in _ANNOTATIONS if key in gang.annotations)
    return next(filter(None, map(_positive, texts)), None)


def _positive(text: str) -> float | None:
    try:
        wait = parse_duration(text)
    except ValueError:
        return None
    return wait if wait > 0 else None
