"""What objects take of a ResourceQuota, by the names of its lines, in thousandths.

Counted are pods, by what they ask for, and objects of any kind, by number. Storage, node ports and
load balancers are not: a quota of those is stored and limits nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from app.sandbox.apiserver.pods import quality_of_service
from app.sandbox.pod_resources import Amounts, limits_of, requests_of, says_for_the_whole
from app.wire.documents import Document, is_terminal, items, section

ONE = 1000
PODS = "pods"
COUNTED = frozenset(
    {"configmaps", "persistentvolumeclaims", "resourcequotas", "secrets", "services"}
)
"""Kinds of the core group whose number has a line of its own, besides ``count/<plural>``."""

_UNCOUNTED = frozenset({"replicationcontrollers", "services.loadbalancers", "services.nodeports"})
_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})
_TO_BE_SAID = frozenset(
    f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in ("cpu", "memory")
)
"""Lines of which every container has to say its share."""


def object_lines(plural: str, group: str) -> tuple[str, ...]:
    """The lines that count objects of a kind."""
    count = f"count/{plural}.{group}" if group else f"count/{plural}"
    return (count, plural) if not group and plural in COUNTED else (count,)


def counted_kind(line: str) -> str:
    """The storage key of the kind whose objects the line counts; empty: it sums something."""
    if line in COUNTED:
        return f"/{line}"
    plural, _, group = line.removeprefix("count/").partition(".")
    return f"{group}/{plural}" if line.startswith("count/") else ""


def is_line(line: str) -> bool:
    """Whether a quota may have such a line at all."""
    known = line in COUNTED or line in _UNCOUNTED or line in {"storage", "requests.storage"}
    plain = line.removeprefix("requests.").removeprefix("limits.")
    return "/" in line or known or line == PODS or plain in _STANDARD or "hugepages-" in line


def is_of_pods(line: str) -> bool:
    """Whether the line sums something that pods ask for, or that there are."""
    if "storage" in line:
        return line.endswith("ephemeral-storage")
    return line == PODS or line in _STANDARD or line.startswith(("requests.", "limits."))


def pod_usage(pod: Document) -> Amounts:
    """What a pod takes: once it has ended it is only an object like others."""
    usage: Amounts = {f"count/{PODS}": ONE}
    if is_terminal(pod):
        return usage
    usage[PODS] = ONE
    spec = section(pod, "spec")
    for name, amount in requests_of(spec).items():
        usage[f"requests.{name}"] = amount
        if name in _STANDARD:
            usage[name] = amount
    for name, amount in limits_of(spec).items():
        if name in _STANDARD:
            usage[f"limits.{name}"] = amount
    return usage


def covers(quota: Document, pod: Document) -> bool:
    """Whether the quota is about such pods."""
    spec = section(quota, "spec")
    if not all(_SCOPES[scope](pod) for scope in spec.get("scopes") or () if scope in _SCOPES):
        return False
    return all(_matches(each, pod) for each in items(spec, "scopeSelector", "matchExpressions"))


def may_limit(scope: str, lines: Iterable[str]) -> bool:
    """Whether a quota of that scope may have these lines."""
    allowed = {PODS} if scope == "BestEffort" else {PODS, *_TO_BE_SAID}
    return allowed.issuperset(lines)


def unsaid(lines: Iterable[str], pod: Document) -> str:
    """What containers of the pod would have to say, in the words of the API server."""
    spec = section(pod, "spec")
    if says_for_the_whole(spec):
        return ""
    containers = [*items(spec, "containers"), *items(spec, "initContainers")]
    found = []
    for line in sorted(_TO_BE_SAID.intersection(lines)):
        names = sorted(str(each.get("name")) for each in containers if not _says(each, line))
        if names:
            found.append(f"{line} for: {','.join(names)}")
    return "; ".join(found)


def _says(container: Document, line: str) -> bool:
    side, _, name = line.rpartition(".")
    return name in section(container, "resources", side or "requests")


def _matches(expression: Document, pod: Document) -> bool:
    scope, operator = expression.get("scopeName") or "", expression.get("operator")
    if scope != "PriorityClass":
        return scope not in _SCOPES or _SCOPES[scope](pod)
    named = section(pod, "spec").get("priorityClassName") or ""
    values = expression.get("values") or ()
    match operator:
        case "In":
            return named in values
        case "NotIn":
            return named not in values
        case "DoesNotExist":
            return not named
    return bool(named)


def _ends_by_itself(pod: Document) -> bool:
    return section(pod, "spec").get("activeDeadlineSeconds") is not None


def _is_best_effort(pod: Document) -> bool:
    return quality_of_service(section(pod, "spec")) == "BestEffort"


_SCOPES: Mapping[str, Callable[[Document], bool]] = {
    "Terminating": _ends_by_itself,
    "NotTerminating": lambda pod: not _ends_by_itself(pod),
    "BestEffort": _is_best_effort,
    "NotBestEffort": lambda pod: not _is_best_effort(pod),
}
