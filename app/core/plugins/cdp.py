"""cdp: a pod is not evicted before its cooldown time is over.

The time is the pod's label, else its annotation, ``volcano.sh/cooldown-time``; it counts from the
start of the pod, and a pod that has not started is protected. Times that cannot be read protect
nothing. A queue may say the same for all its pods, with this plugin or without
(:mod:`app.core.protection.run_time`).
"""

from app.core.policy import Hooks, OpenPlugin, Session
from app.core.victim_rules import Candidate, EvictionRule, Preemptor
from app.kit.durations import parse_duration
from app.model.conf import PluginConf
from app.model.pod import COOLDOWN_TIME, Pod


def configure(_conf: PluginConf) -> OpenPlugin:
    """Open the plugin; it takes no arguments."""
    return _open


def _open(session: Session) -> Hooks:
    now = session.now

    def may_go(_preemptor: Preemptor, candidate: Candidate) -> bool | None:
        pod = candidate.pod
        least = _cooldown_of(pod)
        has_run = max(now - pod.started, 0.0) if pod.started else 0.0
        return False if has_run < least else None

    rule = EvictionRule("cdp", may_go, "in their cooldown time", by_pod=True)
    return Hooks(preemptable=rule, reclaimable=rule, unified_evictable=rule)


def _cooldown_of(pod: Pod) -> float:
    """Seconds; 0 where the pod says nothing that can be read."""
    said = pod.labels.get(COOLDOWN_TIME, pod.annotations.get(COOLDOWN_TIME))
    if said is None:
        return 0.0
    try:
        return parse_duration(said)
    except ValueError:
        return 0.0
