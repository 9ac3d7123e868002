"""Whether two values mean the same to Kubernetes, however they are written.

A client that reads a job into types and writes it back leaves out what is empty, adds empty objects
of its own, and writes ``1000m`` as ``1`` and ``5m`` as ``5m0s``. None of that is a change. Of false
and 0 it leaves out those whose type has no other word for nothing; elsewhere they say something.
"""

from typing import Any, Final

from app.kit.durations import parse_duration
from app.wire.reading import amount

_AMOUNTS: Final = frozenset({"requests", "limits", "overhead"})
"""Maps from resources to quantities."""

_BY_NAME: Final = frozenset({"plugins", "labels", "annotations", "nodeSelector", "matchLabels"})
"""Maps whose keys mean something even without a value."""

_QUANTITIES: Final = frozenset({"sizeLimit", "divisor", "storage"})
_DURATIONS: Final = frozenset({"timeout", "runningEstimate"})

_ZERO_IS_NOTHING: Final = frozenset(
    {
        # PodSpec and Container
        *("hostNetwork", "hostPID", "hostIPC", "stdin", "stdinOnce", "tty"),
        *("containerPort", "hostPort", "divisor", "seconds"),
        # Probe
        *("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "port"),
        *("successThreshold", "failureThreshold"),
        # Affinity and TopologySpreadConstraint
        *("weight", "maxSkew"),
        # VolumeMount and volumes
        *("readOnly", "partition", "lun"),
        *("chapAuthDiscovery", "chapAuthSession", "sslEnabled"),
        # JobSpec, TaskSpec and PartitionPolicySpec
        *("minAvailable", "maxRetry", "replicas"),
        *("totalPartitions", "partitionSize", "minPartitions"),
    }
)
"""Fields of a job that are no pointers in Go: of pod templates (k8s.io/api v0.36), and ours."""

_POINTERS: Final = frozenset({("azureDisk", "readOnly"), ("csi", "readOnly"), ("fc", "lun")})
"""Fields of the same names that are."""


def is_same(one: object, other: object) -> bool:
    """Whether there is no difference that means something."""
    return bool(_canonical(one, "") == _canonical(other, ""))


def _canonical(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        inside = {
            name: _quantity(each) if key in _AMOUNTS else _canonical(each, name)
            for name, each in value.items()
        }
        if key in _AMOUNTS or key in _BY_NAME:
            return {name: each or None for name, each in inside.items()}
        return {name: each for name, each in inside.items() if not _is_nothing(each, key, name)}
    if isinstance(value, list):
        return [_canonical(each, "") for each in value]
    if key in _QUANTITIES:
        return _quantity(value)
    if key in _DURATIONS and isinstance(value, str):
        return _seconds(value)
    return value


def _is_nothing(value: object, holder: str, name: str) -> bool:
    """Whether a field is as good as not there."""
    if isinstance(value, int | float) and not value:
        return name in _ZERO_IS_NOTHING and (holder, name) not in _POINTERS
    return not value


def _quantity(value: Any) -> Any:
    number = amount("cpu", value)
    return value if number is None else number


def _seconds(text: str) -> float | str:
    try:
        return parse_duration(text)
    except ValueError:
        return text
