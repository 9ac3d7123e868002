"""Strategic merge patch, and server-side apply as a merge by keys of its own.

Lists of objects whose field name has a key merge item by item; the directives ``$patch``,
``$retainKeys``, ``$deleteFromPrimitiveList/…`` and ``$setElementOrder/…`` are obeyed. A list whose
field has several possible keys (``ports``) takes the first key that all its items have.

The keys of a strategic merge patch do not tell all items apart: a port may be there twice, for TCP
and for UDP. Of such items the first is meant, as with the real server. The keys of an apply do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.sandbox.apiserver import errors
from app.wire.copying import copied
from app.wire.documents import Document

_MERGE_KEYS: Mapping[str, tuple[str, ...]] = {
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
_APPLY_KEYS: Mapping[str, tuple[str, ...]] = {
    **_MERGE_KEYS,
    "ports": ("containerPort protocol", "port protocol"),
    "topologySpreadConstraints": ("topologyKey whenUnsatisfiable",),
}
"""Fields that make up a key together are parted by a space."""

_DEFAULTS: Mapping[str, str] = {"protocol": "TCP"}
_MERGED_SETS = frozenset({"finalizers"})
_DELETE_PRIMITIVES = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"


def strategic_merge(target: Any, patch: Document) -> Document:
    """``patch`` merged into ``target``; neither is changed."""
    return _Merging(_MERGE_KEYS).object(target, patch)


def apply_merge(target: Any, applied: Document) -> Document:
    """Merge ``applied`` into ``target``; fields that it does not name stay, of all appliers."""
    return _Merging(_APPLY_KEYS).object(target, applied)


@dataclass(frozen=True, slots=True)
class _Merging:
    """Merges by the keys of one kind of patch."""

    keys: Mapping[str, tuple[str, ...]]

    def object(self, target: Any, patch: Document) -> Document:
        if patch.get("$patch") == "replace":
            return {key: copied(value) for key, value in patch.items() if key != "$patch"}
        merged: Document = dict(target) if isinstance(target, dict) else {}
        if "$retainKeys" in patch:
            retained = _listed(patch, "$retainKeys")
            merged = {key: value for key, value in merged.items() if key in retained}
        for key, value in patch.items():
            if not key.startswith("$"):
                self._field(merged, key, value)
        for key in patch:
            if key.startswith(_DELETE_PRIMITIVES):
                name, gone = key[len(_DELETE_PRIMITIVES) :], _listed(patch, key)
                merged[name] = [one for one in merged.get(name) or [] if one not in gone]
            elif key.startswith(_ORDER):
                self._reorder(merged, key[len(_ORDER) :], _listed(patch, key))
        return merged

    def _field(self, merged: Document, key: str, value: Any) -> None:
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            if value.get("$patch") == "delete":
                merged.pop(key, None)
            else:
                merged[key] = self.object(merged.get(key), value)
        elif isinstance(value, list):
            merged[key] = self._list(key, merged.get(key) or [], value)
        else:
            merged[key] = value

    def _list(self, field: str, target: list[Any], patch: list[Any]) -> list[Any]:
        if field in _MERGED_SETS:
            return [*target, *(one for one in patch if one not in target)]
        key = self._key(field, [*target, *patch])
        if key is None:
            self._check_keyed(self._key(field, target) if target else None, patch)
            return [copied(one) for one in patch]
        if any(one.get("$patch") == "replace" for one in patch):
            return [copied(one) for one in patch if "$patch" not in one]
        kept, merged = list(target), list[Any]()
        for one in patch:
            alike = [other for other in kept if _identity(other, key) == _identity(one, key)]
            gone = alike if one.get("$patch") == "delete" else alike[:1]
            kept = [other for other in kept if not any(other is each for each in gone)]
            if one.get("$patch") != "delete":
                merged.append(self.object(alike[0] if alike else None, one))
        order = list(dict.fromkeys(_identity(one, key) for one in target))
        return _interleaved(merged, kept, order=order, key=key)

    def _check_keyed(self, key: str | None, patch: list[Any]) -> None:
        """Items without a key must not replace items that have one."""
        for one in patch:
            _identity(one, key)

    def _key(self, field: str, values: Sequence[Any]) -> str | None:
        for key in self.keys.get(field, ()):
            first = key.partition(" ")[0]
            if all(isinstance(one, dict) and (first in one or "$patch" in one) for one in values):
                return key
        return None

    def _reorder(self, merged: Document, field: str, order: list[Any]) -> None:
        """Items named in ``order`` come in that order, the others keep to the end."""
        values = merged.get(field)
        if not isinstance(values, list):
            return
        key = self._key(field, values)
        ranks = {
            _identity(one, key): rank
            for rank, one in enumerate(order)
            if not isinstance(one, dict) or (key and key.partition(" ")[0] in one)
        }
        merged[field] = sorted(values, key=lambda one: ranks.get(_identity(one, key), len(ranks)))


def _identity(one: Any, key: str | None) -> Hashable:
    """What tells an item of a list from others; 400 where it does not say."""
    if key is None or not isinstance(one, dict):
        found: tuple[Any, ...] = (one,)
    else:
        first, *more = key.split()
        if first not in one:
            text = f"map: {one} does not contain declared merge key: {first}"
            raise errors.bad_request(text)
        found = (one[first], *(one.get(name) or _DEFAULTS.get(name) for name in more))
    return tuple(str(part) if isinstance(part, dict | list) else part for part in found)


def _listed(patch: Document, directive: str) -> list[Any]:
    found = patch[directive]
    if not isinstance(found, list):
        raise errors.bad_request(f"invalid patch format of {directive.strip('$')}")
    return found


def _interleaved(
    patched: list[Any], kept: list[Any], *, order: list[Hashable], key: str
) -> list[Any]:
    """Both lists keep their order; between them the live order decides, new items go first."""
    ranks = {identity: rank for rank, identity in enumerate(order)}
    result: list[Any] = []
    left, right = deque(patched), deque(kept)
    while left and right:
        first = ranks.get(_identity(left[0], key), -1) <= ranks[_identity(right[0], key)]
        result.append(left.popleft() if first else right.popleft())
    return [*result, *left, *right]
