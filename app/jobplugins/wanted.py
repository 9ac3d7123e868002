"""Objects a job wants, and what to do about what is there.

An object is created when it is missing. Content that follows the job (lists of hosts) is kept up to
date key by key; content that is made once (keys) is made again only when it is gone, and is not
made before it is known to be missing. Whatever else an object holds is its own.

An object of that name which an earlier job of the same name has left behind would be collected
together with that job, under the feet of this one: it is removed first. An object that has no
owner or another one is not the job's: it is neither changed nor removed, and is in the way.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.wire.kinds import SECRETS, Resource
from app.wire.unstructured import Key, Object, is_deleting, key_of, owner_of, uid

Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Create:
    """Create this object."""

    item: Object


@dataclass(frozen=True, slots=True)
class Writing:
    """Merge this patch into the object."""

    patch: Object


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete the object with this UID, an earlier job's, and look again."""

    uid: str


@dataclass(frozen=True, slots=True)
class Wait:
    """The object is going; look again when it is gone."""


@dataclass(frozen=True, slots=True)
class Leave:
    """The object is not the job's, which cannot have its own as long as it is there."""


Step = Create | Writing | Remove | Wait | Leave


@dataclass(frozen=True, slots=True)
class Once:
    """Content under ``names`` that is made by ``make``, which may be slow."""

    names: frozenset[str]
    make: Callable[[], Texts]


@dataclass(frozen=True, slots=True)
class Wanted:
    """An object as it is created but for its data: ``follows`` the job, or made ``once``."""

    resource: Resource
    item: Object
    follows: Texts = field(default_factory=dict)
    once: Once | None = None

    @property
    def key(self) -> Key:
        """The key of the object."""
        return key_of(self.item)

    def step(self, stored: Object | None) -> Step | None:
        """What to do next; None: nothing."""
        if stored is None:
            return Create(self._whole())
        if self._is_left_over(stored):
            return Remove(uid(stored))
        if not self.is_ours(stored):
            return Wait() if is_deleting(stored) else Leave()
        if is_deleting(stored):
            return Wait()
        changed = self._changed(stored.get("data") or {})
        return Writing({"data": changed}) if changed else None

    def is_ours(self, stored: Object) -> bool:
        """Whether ``stored`` is this job's, to be deleted when the job is killed."""
        owner = owner_of(stored)
        return owner is not None and owner.uid == self._owner_uid

    def _whole(self) -> Object:
        made = {} if self.once is None else self.once.make()
        data = self._stored_form({**made, **self.follows})
        return {**self.item, "data": data} if data else dict(self.item)

    def _changed(self, there: Mapping[str, Any]) -> dict[str, str]:
        wanted = self._stored_form(self.follows)
        if self.once is not None and not self.once.names <= there.keys():
            wanted |= self._stored_form(self.once.make())
        return {name: value for name, value in wanted.items() if there.get(name) != value}

    def _stored_form(self, content: Texts) -> dict[str, str]:
        if self.resource is not SECRETS:
            return dict(content)
        return {name: b64encode(text.encode()).decode() for name, text in content.items()}

    def _is_left_over(self, stored: Object) -> bool:
        ours, theirs = owner_of(self.item), owner_of(stored)
        if ours is None or theirs is None or theirs.uid == ours.uid:
            return False
        return (theirs.api_version, theirs.kind, theirs.name) == (
            ours.api_version,
            ours.kind,
            ours.name,
        )

    @property
    def _owner_uid(self) -> str:
        owner = owner_of(self.item)
        return owner.uid if owner is not None else ""
