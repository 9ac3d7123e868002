"""The verbs create, get, list, replace, patch and delete, from a request to the store.

Order of a write: decode view -> schema (prune, default) -> rules' defaults -> admission -> identity
and status split -> rules -> validation -> quotas -> store -> garbage collection. Every operation
is one step of the event loop, so nothing else is seen in between: preconditions need no locks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from app.sandbox.apiserver import errors, patches, schema
from app.sandbox.apiserver.admission import Admission, AdmissionRequest, Admitted, Denied
from app.sandbox.apiserver.decoding import Decoded, Decoder
from app.sandbox.apiserver.identity import (
    check_applied,
    check_name,
    check_uid,
    desired,
    keep_identity,
    split_status,
    uid_errors,
)
from app.sandbox.apiserver.names import name_errors
from app.sandbox.apiserver.pod_updates import pod_status_errors
from app.sandbox.apiserver.quotas import Quotas
from app.sandbox.apiserver.registry import Registry, ResourceKind
from app.sandbox.apiserver.rules import Surroundings
from app.sandbox.apiserver.stock_fields import TypeOf, nothing_known
from app.sandbox.apiserver.stock_rules import rules_of
from app.sandbox.apiserver.store import Store
from app.sandbox.apiserver.strategic import apply_merge, strategic_merge
from app.sandbox.apiserver.target import Target
from app.sandbox.apiserver.validation import validate
from app.sandbox.clock import Clock, timestamp
from app.wire.copying import copied
from app.wire.documents import Document, ObjectName, items, name_of, section

_OWNER_TEXTS = {
    "apiVersion": "version must not be empty",
    "kind": "must not be empty",
    "name": "must not be empty",
    "uid": "must not be empty",
}
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Query parameters of a write."""

    dry_run: bool = False
    field_validation: str = "Warn"


def check_dry_run(options: str, said: Sequence[str]) -> None:
    """A dry run is one of everything; 422 for any other word. ``options`` is the kind of them."""
    if any(word != "All" for word in said):
        raise errors.bad_option(options, "dryRun", list(said), ["All"])


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of a write: the document as the request's version shows it."""

    document: Document
    warnings: tuple[str, ...] = ()
    created: bool = False


class Operations:
    """The API without HTTP; deletion and its consequences are in ``deletion``."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        *,
        clock: Clock,
        quotas: Quotas,
        admission: Sequence[Admission] = (),
        stock_types: TypeOf = nothing_known,
        seed: int | None = None,
    ) -> None:
        self.store = store
        self.decoder = Decoder(stock_types)
        self._quotas = quotas
        self.registry = registry
        self.clock = clock
        self._admission = tuple(admission)
        self._random = random.Random(seed)

    # Reading

    def get(self, target: Target) -> Document:
        """The object in the request's version; 404 where there is none."""
        return self.shown(target.kind, self.stored(target))

    def stored(self, target: Target) -> Document:
        """The shared document of the store, not to be changed; 404 where there is none."""
        found = self.store.get(target.kind.key, target.object_name)
        if found is None:
            raise target.missing()
        return found

    def shown(self, kind: ResourceKind, document: Document) -> Document:
        """The stored document as ``kind``'s version shows it."""
        if document.get("apiVersion") == kind.api_version:
            return document
        return {**kind.from_storage(document), "apiVersion": kind.api_version}

    # Creating

    def create(
        self, target: Target, body: Document, *, options: WriteOptions | None = None
    ) -> Written:
        """Store a new object; 409 where its name is taken, 422 where a rule is broken."""
        options = options or WriteOptions()
        kind, rules = target.kind, rules_of(target.kind.key)
        decoded = self.decoder.whole(kind, target.namespace, body)
        document = decoded.document
        self._check_namespace(target)
        warnings = self._shaped(kind, decoded, options)
        rules.defaults(document)
        self._name(document)
        target = replace(target, name=document["metadata"]["name"])
        self._refuse(target, name_errors(kind, target.name))
        document, told = self.admitted("CREATE", target, document, old=None, options=options)
        if kind.has_status and not rules.keeps_status_on_create:
            document.pop("status", None)
        self._stamp_new(document, counts=rules.counts_generations)
        problems = [*_owner_errors(document), *rules.create_errors(document)]
        self._refuse(target, [*problems, *self._schema_errors(kind, document)])
        self._quotas.check(kind, document)
        if self.store.get(kind.key, target.object_name) is not None:
            raise errors.already_exists(kind.plural, kind.group, target.name)
        rules.complete(document, Surroundings(self.store, self.clock.now()))
        stored = document if options.dry_run else self.store.put(kind.key, document)
        return Written(self.shown(kind, stored), (*warnings, *told), created=True)

    def _check_namespace(self, target: Target) -> None:
        if not target.kind.namespaced:
            return
        found = self.store.get("/namespaces", ObjectName("", target.namespace))
        if found is None:
            raise errors.not_found("namespaces", "", target.namespace)
        if found["metadata"].get("deletionTimestamp"):
            why = (
                f"unable to create new content in namespace {target.namespace} because it is"
                " being terminated"
            )
            raise errors.forbidden(target.kind.plural, target.kind.group, target.name, why=why)

    def _shaped(
        self, kind: ResourceKind, decoded: Decoded, options: WriteOptions
    ) -> tuple[str, ...]:
        """Prune and default a custom object; returns warnings about unknown fields of any."""
        paths = decoded.unknown
        if kind.schema is not None:
            paths = (*paths, *schema.prune(decoded.document, kind.schema))
            schema.apply_defaults(decoded.document, kind.schema)
        unknown = tuple(f'unknown field "{path}"' for path in paths)
        if unknown and options.field_validation == "Strict":
            text = f"strict decoding error: {', '.join(unknown)}"
            raise errors.unreadable(kind.kind, kind.version, text)
        return unknown if options.field_validation == "Warn" else ()

    def _name(self, document: Document) -> None:
        metadata = document["metadata"]
        if metadata.get("name"):
            return
        prefix = metadata.get("generateName")
        if not prefix:
            raise errors.invalid(
                document["kind"],
                document["apiVersion"].rpartition("/")[0],
                "",
                errors=[errors.required("metadata.name", "name or generateName is required")],
            )
        suffix = "".join(self._random.choices(_ALPHABET, k=5))
        metadata["name"] = f"{prefix[:58]}{suffix}"

    def _stamp_new(self, document: Document, *, counts: bool) -> None:
        metadata = document["metadata"]
        if metadata.pop("resourceVersion", None):
            raise errors.bad_request("resourceVersion should not be set on objects to be created")
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            metadata.pop(name, None)
        metadata["uid"] = str(UUID(int=self._random.getrandbits(128), version=4))
        metadata["creationTimestamp"] = timestamp(self.clock.now())
        if counts:
            metadata["generation"] = 1
        else:
            metadata.pop("generation", None)

    # Updating

    def replace(
        self, target: Target, body: Document, *, options: WriteOptions | None = None
    ) -> Written:
        """Store ``body`` in place of the object; 404 without one, 409 where it is out of date."""
        new = self.decoder.whole(target.kind, target.namespace, body)
        check_name(target, new.document)
        old = self.stored(target)
        check_uid(target, new.document, old)
        return self._update(target, new, old, options=options or WriteOptions())

    def patch(
        self,
        target: Target,
        body: Any,
        *,
        content_type: str,
        options: WriteOptions | None = None,
    ) -> Written:
        """Apply a patch to the object; 404 without one, unless a server-side apply creates it."""
        options = options or WriteOptions()
        old = self.store.get(target.kind.key, target.object_name)
        applied = content_type == patches.APPLY_PATCH and not target.subresource
        if old is None and not applied:
            raise target.missing()
        patches.check_patch(body, content_type)
        if content_type == patches.APPLY_PATCH:
            check_applied(target.kind, body)
        if old is None:
            metadata = {**section(body, "metadata"), "name": target.name}
            return self.create(target, {**body, "metadata": metadata}, options=options)
        new = self._patched(target.kind, self.shown(target.kind, old), body, content_type)
        decoded = self.decoder.patched(target.kind, target.namespace, new)
        check_name(target, decoded.document)
        return self._update(target, decoded, old, options=options)

    def _patched(
        self, kind: ResourceKind, current: Document, body: Any, content_type: str
    ) -> Document:
        match content_type:
            case patches.JSON_PATCH:
                return patches.json_patch(current, body)
            case patches.MERGE_PATCH:
                merged: Document = patches.merge_patch(current, body)
                return merged
            case patches.STRATEGIC_PATCH if not kind.custom:
                return strategic_merge(current, body)
            case patches.APPLY_PATCH:
                merge = patches.merge_patch if kind.custom else apply_merge
                applied: Document = merge(current, body)
                return applied
        accepted = [patches.JSON_PATCH, patches.MERGE_PATCH, patches.APPLY_PATCH]
        raise errors.unsupported_media_type(
            accepted if kind.custom else [*accepted, patches.STRATEGIC_PATCH]
        )

    def _update(
        self, target: Target, decoded: Decoded, old: Document, *, options: WriteOptions
    ) -> Written:
        kind, rules = target.kind, rules_of(target.kind.key)
        new = decoded.document
        self._check_revision(target, new, old)
        split_status(target, new, old)
        moved = uid_errors(new, old)
        keep_identity(new, old)
        warnings = self._shaped(kind, decoded, options)
        rules.defaults(new)
        new, told = self.admitted("UPDATE", target, new, old=old, options=options)
        warnings = (*warnings, *told)
        keep_identity(new, old)
        rules.prepare_update(new, old)
        if new == old and not moved:
            return Written(self.shown(kind, old), warnings)
        if rules.counts_generations and desired(kind, new) != desired(kind, old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        problems = (
            pod_status_errors(new, old)
            if target.subresource == "status" and kind.key == "/pods"
            else rules.update_errors(new, old)
        )
        self._refuse(
            target, [*moved, *_owner_errors(new), *problems, *self._schema_errors(kind, new)]
        )
        if options.dry_run:
            return Written(self.shown(kind, new), warnings)
        return Written(self.shown(kind, self.settle(kind, new)), warnings)

    def settle(self, kind: ResourceKind, document: Document) -> Document:
        """Store an update, or remove the object when nothing holds it back any more.

        As with the stock server, an update that lets an object go is answered and never stored:
        watches show the object as it was before.
        """
        metadata = document["metadata"]
        waiting = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
        held = kind.key == "/namespaces" and document.get("spec", {}).get("finalizers")
        if metadata.get("deletionTimestamp") and not waiting and not held:
            self.store.remove(kind.key, name_of(document))
            return document
        return self.store.put(kind.key, document)

    def _check_revision(self, target: Target, new: Document, old: Document) -> None:
        kind, metadata = target.kind, new["metadata"]
        revision = metadata.get("resourceVersion")
        if revision and revision != old["metadata"]["resourceVersion"]:
            raise errors.modified(kind.plural, kind.group, target.name)
        if not revision and kind.custom:
            problem = errors.invalid_value(
                "metadata.resourceVersion", 0, "must be specified for an update"
            )
            raise errors.invalid(kind.plural, kind.group, target.name, errors=[problem])

    # Shared

    def admitted(
        self,
        operation: str,
        target: Target,
        document: Document | None,
        *,
        old: Document | None,
        options: WriteOptions,
    ) -> tuple[Document, tuple[str, ...]]:
        """The document after all hooks, and their warnings; raises where one denies."""
        kind = target.kind
        warnings: list[str] = []
        for hook in self._admission:
            answer = hook(
                AdmissionRequest(
                    operation=operation,
                    group=kind.group,
                    version=kind.version,
                    kind=kind.kind,
                    resource=kind.plural,
                    subresource=target.subresource,
                    namespace=target.object_name.namespace,
                    name=target.name,
                    object=document,
                    old_object=old,
                    dry_run=options.dry_run,
                )
            )
            if isinstance(answer, Denied):
                raise errors.ApiError(answer.code, answer.reason, answer.message)
            if isinstance(answer, Admitted):
                warnings += answer.warnings
                answer = answer.document
            if answer is not None:
                document = copied(answer)
        return document or {}, tuple(warnings)

    def _refuse(self, target: Target, problems: list[errors.FieldError]) -> None:
        if problems:
            kind = target.kind
            raise errors.invalid(kind.kind, kind.group, target.name, errors=problems)

    def _schema_errors(self, kind: ResourceKind, document: Document) -> list[errors.FieldError]:
        return list(validate(document, kind.schema)) if kind.schema is not None else []


def _owner_errors(document: Document) -> Iterator[errors.FieldError]:
    """What is missing in the references of an object; kube-apiserver does not say in which.

    A reference that names no owner would have its object collected at once.
    """
    for owner in items(document, "metadata", "ownerReferences"):
        for name, text in _OWNER_TEXTS.items():
            if not owner.get(name):
                yield errors.invalid_value(f"metadata.ownerReferences.{name}", "", text)
