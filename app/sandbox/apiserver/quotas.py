"""ResourceQuotas: what they refuse, and their status.

The status is kept as the quota controller keeps it, only at once: what an object takes is counted
in the same step in which it is stored, ends or goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from app.sandbox.apiserver import errors, quota_usage
from app.sandbox.apiserver.quota_usage import (
    ONE,
    counted_kind,
    covers,
    is_of_pods,
    object_lines,
    pod_usage,
)
from app.sandbox.apiserver.registry import ResourceKind
from app.sandbox.apiserver.store import ChangeKind, Store, StoreChange
from app.sandbox.pod_resources import Amounts
from app.sandbox.quantities import parse_list, parse_milli, text
from app.wire.documents import Document, name_of, section

QUOTAS = "/resourcequotas"
_PODS = "/pods"
_IN_BYTES = ("memory", "storage", "hugepages")


def quota_errors(quota: Document) -> list[errors.FieldError]:
    """Lines and amounts that cannot be; 400 for what is no amount at all."""
    spec, found = section(quota, "spec"), []
    for line, amount in section(spec, "hard").items():
        try:
            milli = parse_milli(amount)
        except ValueError:
            raise errors.no_quantity("ResourceQuota") from None
        path = f"spec.hard[{line}]"
        if not quota_usage.is_line(line):
            for wanted in ("resource type or fully qualified", "resource for quota"):
                found.append(errors.invalid_value(path, line, f"must be a standard {wanted}"))
        if milli < 0:
            why = "must be greater than or equal to 0"
            found.append(errors.invalid_value(path, text(milli), why))
        elif milli % ONE and line in {quota_usage.PODS, *quota_usage.COUNTED}:
            found.append(errors.invalid_value(path, text(milli), "must be an integer"))
    scopes = spec.get("scopes") or []
    if any(not quota_usage.may_limit(each, section(spec, "hard")) for each in scopes):
        why = "unsupported scope applied to resource"
        found.append(errors.invalid_value("spec.scopes", scopes, why))
    return found


class Quotas:
    """Holds new objects against the quotas of their namespace, and keeps those up to date."""

    def __init__(self, store: Store) -> None:
        self._store = store
        store.on_change(self._changed)

    def check(self, kind: ResourceKind, document: Document) -> None:
        """Refuse a new object for which a quota has no room (403)."""
        if not kind.namespaced:
            return
        name = name_of(document)
        for quota in self._store.ordered(QUOTAS, name.namespace):
            why = _objection(quota, kind, document)
            if why:
                raise errors.forbidden(kind.plural, kind.group, name.name, why=why)

    def _changed(self, change: StoreChange) -> None:
        document, namespace = change.document, name_of(change.document).namespace
        if not namespace:
            return
        if change.storage == QUOTAS and change.kind is not ChangeKind.DELETED:
            self._refresh(document)
        for quota in self._store.ordered(QUOTAS, namespace):
            if _is_touched(quota, change):
                self._refresh(quota)

    def _refresh(self, quota: Document) -> None:
        hard, used = parse_list(section(quota, "spec", "hard")), self._used(quota)
        status = {
            "hard": {line: _text(line, amount) for line, amount in hard.items()},
            "used": {line: _text(line, amount) for line, amount in used.items()},
        }
        if quota.get("status") != status:
            self._store.put(QUOTAS, {**quota, "status": status})

    def _used(self, quota: Document) -> Amounts:
        """What is taken, by those lines of the quota that are counted at all."""
        namespace = name_of(quota).namespace
        of_pods: Counter[str] = Counter()
        for pod in self._store.ordered(_PODS, namespace):
            of_pods.update(_share(quota, pod))
        used: Amounts = {}
        for line in section(quota, "spec", "hard"):
            kind = counted_kind(line)
            if kind == _PODS or is_of_pods(line):
                used[line] = of_pods[line]
            elif kind:
                used[line] = ONE * len(self._store.ordered(kind, namespace))
        return used


def _share(quota: Document, pod: Document | None) -> Amounts:
    """What the pod takes of the quota."""
    return pod_usage(pod) if pod is not None and covers(quota, pod) else {}


def _is_touched(quota: Document, change: StoreChange) -> bool:
    """Whether a change may change what is used."""
    if change.storage == _PODS:
        now = None if change.kind is ChangeKind.DELETED else change.document
        return _share(quota, now) != _share(quota, change.previous)
    if change.kind is ChangeKind.MODIFIED:
        return False
    return any(counted_kind(line) == change.storage for line in section(quota, "spec", "hard"))


def _objection(quota: Document, kind: ResourceKind, document: Document) -> str:
    """Why the quota refuses a new object, in the words of the API server; empty: it does not."""
    name = quota["metadata"]["name"]
    hard = parse_list(section(quota, "status", "hard"))
    used = parse_list(section(quota, "status", "used"))
    asked = _asked(quota, kind, document)
    unsaid = quota_usage.unsaid(hard, document) if kind.key == _PODS and asked else ""
    if unsaid:
        return f"failed quota: {name}: must specify {unsaid}"
    over = [line for line in used if asked.get(line) and used[line] + asked[line] > hard[line]]
    if not over:
        return ""
    return (
        f"exceeded quota: {name}, requested: {_listed(asked, over)},"
        f" used: {_listed(used, over)}, limited: {_listed(hard, over)}"
    )


def _asked(quota: Document, kind: ResourceKind, document: Document) -> Amounts:
    if kind.key == _PODS:
        return _share(quota, document)
    return dict.fromkeys(object_lines(kind.plural, kind.group), ONE)


def _listed(amounts: Amounts, lines: Iterable[str]) -> str:
    return ",".join(f"{line}={_text(line, amounts[line])}" for line in sorted(lines))


def _text(line: str, milli: int) -> str:
    return text(milli, binary=any(word in line for word in _IN_BYTES))
