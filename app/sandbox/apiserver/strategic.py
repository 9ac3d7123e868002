"""Strategic merge patch, and server-side apply as a merge by the same keys.

Lists of objects whose field name has a merge key merge item by item; the directives ``$patch``,
``$retainKeys``, ``$deleteFromPrimitiveList/…`` and ``$setElementOrder/…`` are obeyed. A list whose
field has several possible keys (``ports``) takes the first key that all its items have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from app.sandbox.apiserver import errors
from app.sandbox.documents import Document, copied

MERGE_KEYS: Mapping[str, tuple[str, ...]] = {
    "addresses": ("type",),
    "conditions": ("type",),
    "containers": ("name",),
    "containerStatuses": (),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "ports": ("containerPort", "port"),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "secrets": ("name",),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
    "volumesAttached": ("name",),
    "webhooks": ("name",),
    "validations": ("expression",),
}
_MERGED_SETS = frozenset({"finalizers"})
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def strategic_merge(target: Any, patch: Document) -> Document:
    """``patch`` merged into ``target``; neither is changed."""
    if patch.get("$patch") == "replace":
        return {key: copied(value) for key, value in patch.items() if key != "$patch"}
    merged: Document = dict(target) if isinstance(target, dict) else {}
    if "$retainKeys" in patch:
        retained = set(_listed(patch, "$retainKeys"))
        merged = {key: value for key, value in merged.items() if key in retained}
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_field(merged, key, value)
    for key in patch:
        if key.startswith(_DELETE_PRIMITIVES):
            name = key[len(_DELETE_PRIMITIVES) :]
            gone = _listed(patch, key)
            merged[name] = [one for one in merged.get(name) or [] if one not in gone]
        elif key.startswith(_ORDER):
            _reorder(merged, key[len(_ORDER) :], _listed(patch, key))
    return merged


def _listed(patch: Document, directive: str) -> list[Any]:
    found = patch[directive]
    if not isinstance(found, list):
        raise errors.bad_request(f"invalid patch format of {directive.strip('$')}")
    return found


def _merge_field(merged: Document, key: str, value: Any) -> None:
    if value is None:
        merged.pop(key, None)
    elif isinstance(value, dict):
        if value.get("$patch") == "delete":
            merged.pop(key, None)
        else:
            merged[key] = strategic_merge(merged.get(key), value)
    elif isinstance(value, list):
        merged[key] = _merge_list(key, merged.get(key) or [], value)
    else:
        merged[key] = value


def _merge_list(field: str, target: list[Any], patch: list[Any]) -> list[Any]:
    if field in _MERGED_SETS:
        return [*target, *(one for one in patch if one not in target)]
    merge_key = _merge_key(field, [*target, *patch])
    if merge_key is None:
        return [copied(one) for one in patch]
    if any(one.get("$patch") == "replace" for one in patch):
        return [copied(one) for one in patch if "$patch" not in one]
    live = {one[merge_key]: one for one in target}
    merged: list[Any] = []
    for one in patch:
        identity = one[merge_key]
        if one.get("$patch") != "delete":
            merged.append(strategic_merge(live.get(identity), one))
    named = {one[merge_key] for one in patch}
    kept = [one for one in target if one[merge_key] not in named]
    return _interleaved(merged, kept, order=list(live), key=merge_key)


def _interleaved(patched: list[Any], kept: list[Any], *, order: list[Any], key: str) -> list[Any]:
    """Both lists keep their order; between them the live order decides, new items go first."""
    ranks = {identity: rank for rank, identity in enumerate(order)}
    result: list[Any] = []
    left, right = deque(patched), deque(kept)
    while left and right:
        first = ranks.get(left[0][key], -1) < ranks[right[0][key]]
        result.append(left.popleft() if first else right.popleft())
    return [*result, *left, *right]


def _merge_key(field: str, values: Sequence[Any]) -> str | None:
    for key in MERGE_KEYS.get(field, ()):
        if all(isinstance(one, dict) and (key in one or "$patch" in one) for one in values):
            return key
    return None


def _reorder(merged: Document, field: str, order: list[Any]) -> None:
    """Items named in ``order`` come in that order, the others keep to the end."""
    values = merged.get(field)
    if not isinstance(values, list):
        return
    key = _merge_key(field, values)
    ranks = {
        (one[key] if key and isinstance(one, dict) else one): rank
        for rank, one in enumerate(order)
        if not isinstance(one, dict) or (key and key in one)
    }
    merged[field] = sorted(values, key=lambda one: ranks.get(one[key] if key else one, len(ranks)))
