"""Deleting: grace periods, finalizers, preconditions, and what goes with its owner.

A pod that a kubelet may run stays with ``deletionTimestamp`` until it is deleted with grace 0; an
object with finalizers stays until they are gone; a namespace stays until it is empty. The
``Collector`` watches the store: when the last owner of an object goes, the object goes too.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass

from app.sandbox.apiserver import errors
from app.sandbox.apiserver.numbers import whole_number
from app.sandbox.apiserver.operations import Operations, WriteOptions, check_dry_run
from app.sandbox.apiserver.registry import Registry
from app.sandbox.apiserver.store import ChangeKind, Store, StoreChange
from app.sandbox.apiserver.target import Target
from app.sandbox.clock import timestamp
from app.wire.documents import Document, ObjectName, is_terminal, name_of, section, uid_of

FOREGROUND = "foregroundDeletion"
PODS = "/pods"
_POLICIES = ("Foreground", "Background", "Orphan")
_KEPT_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """``metav1.DeleteOptions``, as far as it is obeyed."""

    grace_seconds: int | None = None
    propagation: str = "Background"
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


def parse_delete_options(body: Document, query: Document) -> DeleteOptions:
    """Options from the body, else from the query."""
    grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    conditions = body.get("preconditions") or {}
    dry_run = body.get("dryRun") or ([query["dryRun"]] if "dryRun" in query else [])
    check_dry_run("DeleteOptions", dry_run)
    return DeleteOptions(
        grace_seconds=whole_number(str(grace)) if grace is not None else None,
        propagation=_propagation(body, query),
        uid=conditions.get("uid") or "",
        resource_version=conditions.get("resourceVersion") or "",
        dry_run=bool(dry_run),
    )


def check_preconditions(
    document: Document, options: DeleteOptions, *, kind: str, group: str
) -> None:
    """Raise a conflict where the object is not the one that is meant."""
    metadata = document["metadata"]
    for word, wanted, found, since in (
        ("UID", options.uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, metadata["resourceVersion"], "modified"),
    ):
        if wanted and wanted != found:
            why = (
                f"the {word} in the precondition ({wanted}) does not match the {word} in record"
                f" ({found}). The object might have been {since}"
            )
            raise errors.conflict(kind, group, metadata["name"], why=why)


def _propagation(body: Document, query: Document) -> str:
    orphan = body.get("orphanDependents", query.get("orphanDependents"))
    policy = body.get("propagationPolicy") or query.get("propagationPolicy")
    if policy and orphan is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        problem = errors.invalid_value("propagationPolicy", policy, text)
        raise errors.bad_options("DeleteOptions", problem)
    if policy and policy not in _POLICIES:
        allowed = (*_POLICIES, "nil")
        raise errors.bad_option("DeleteOptions", "propagationPolicy", policy, allowed)
    return policy or ("Orphan" if orphan in {True, "true"} else "Background")


@dataclass(frozen=True, slots=True)
class Deleted:
    """The document, whether it is gone, and what the client is told besides."""

    document: Document
    is_gone: bool
    warnings: tuple[str, ...] = ()


class Deletion:
    """The verb delete, and the garbage collection that follows any write."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._store = operations.store
        self._collector = Collector(self._store, operations.registry)

    def delete(self, target: Target, options: DeleteOptions) -> Deleted:
        """Delete the object, or begin to; raises where that is refused."""
        document = self._operations.stored(target)
        self._check(target, document, options)
        _, warnings = self._operations.admitted(
            "DELETE", target, None, old=document, options=WriteOptions(dry_run=options.dry_run)
        )
        if options.dry_run:
            return Deleted(document, True, warnings)
        document, is_gone = self._delete(target, document, options)
        self.collect()
        return Deleted(document, is_gone, warnings)

    def collect(self) -> None:
        """Follow every deletion to its end; called after each write."""
        while found := self._collector.next_orphan():
            storage, name = found
            document = self._store.get(storage, name)
            if document is None:
                continue
            kind = self._operations.registry.of_storage(storage)
            target = Target(kind=kind, namespace=name.namespace, name=name.name)
            if self._collector.is_finished(document):
                self._release(target, document)
            elif not document["metadata"].get("deletionTimestamp"):
                self._delete(target, document, DeleteOptions())

    def _check(self, target: Target, document: Document, options: DeleteOptions) -> None:
        kind = target.kind
        if kind.key == "/namespaces" and target.name in _KEPT_NAMESPACES:
            raise errors.forbidden(
                kind.plural, kind.group, target.name, why="this namespace may not be deleted"
            )
        check_preconditions(document, options, kind=kind.kind, group=kind.group)

    def _delete(
        self, target: Target, document: Document, options: DeleteOptions
    ) -> tuple[Document, bool]:
        kind = target.kind
        finalizers = list(document["metadata"].get("finalizers") or [])
        uid = uid_of(document)
        if options.propagation == "Orphan":
            self._orphan_dependents(uid)
        if options.propagation == "Foreground" and self._collector.dependents(uid):
            finalizers = [*(one for one in finalizers if one != FOREGROUND), FOREGROUND]
        grace = self._grace(target, document, options)
        is_namespace = kind.key == "/namespaces"
        marked = self._marked(document, grace=grace, finalizers=finalizers)
        if not finalizers and not grace and not is_namespace:
            if kind.key == PODS:
                # A kind with grace periods is always marked first, and watches show that.
                self._store.put(kind.key, marked)
            return self._store.remove(kind.key, name_of(document)) or document, True
        if is_namespace:
            marked["status"] = {"phase": "Terminating"}
        stored = self._store.put(kind.key, marked)
        self._collector.deletion_started(stored)
        return stored, False

    def _grace(self, target: Target, document: Document, options: DeleteOptions) -> int:
        """Only a pod on a node that has not ended needs time to stop."""
        if target.kind.key != PODS:
            return 0
        if not section(document, "spec").get("nodeName") or is_terminal(document):
            return 0
        if options.grace_seconds is not None:
            return max(0, options.grace_seconds)
        return int(document["spec"].get("terminationGracePeriodSeconds") or 0)

    def _marked(self, document: Document, *, grace: int, finalizers: list[str]) -> Document:
        metadata = dict(document["metadata"])
        before = metadata.get("deletionGracePeriodSeconds")
        if finalizers:
            metadata["finalizers"] = finalizers
        if before is None or grace < before:
            metadata["deletionGracePeriodSeconds"] = grace
            due = self._operations.clock.now() + _as_go_adds(grace)
            metadata["deletionTimestamp"] = timestamp(due)
            if "generation" in metadata and before is None:
                metadata["generation"] += 1
        return {**document, "metadata": metadata}

    def _orphan_dependents(self, uid: str) -> None:
        for storage, name in self._collector.dependents(uid):
            document = self._store.get(storage, name)
            if document is not None:
                owners = document["metadata"].get("ownerReferences") or []
                left = [one for one in owners if one.get("uid") != uid]
                metadata = {**document["metadata"], "ownerReferences": left}
                if not left:
                    del metadata["ownerReferences"]
                self._store.put(storage, {**document, "metadata": metadata})

    def _release(self, target: Target, document: Document) -> None:
        """Nothing depends on the object any more: take the last hold away."""
        metadata = dict(document["metadata"])
        left = [one for one in metadata.get("finalizers") or [] if one != FOREGROUND]
        metadata["finalizers"] = left
        if not left:
            del metadata["finalizers"]
        released = {**document, "metadata": metadata}
        if target.kind.key == "/namespaces":
            released["spec"] = {}
        self._operations.settle(target.kind, released)


class Collector:
    """Knows owners and dependents by UID, and what a change leaves to be deleted or released."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._store = store
        self._registry = registry
        self._alive: dict[str, tuple[str, ObjectName]] = {}
        self._dependents: dict[str, set[tuple[str, ObjectName]]] = defaultdict(set)
        self._pending: deque[tuple[str, ObjectName]] = deque()
        store.on_change(self._changed)

    def dependents(self, uid: str) -> list[tuple[str, ObjectName]]:
        """Storage key and name of each object that names ``uid`` as an owner, sorted."""
        return sorted(self._dependents.get(uid, ()))

    def next_orphan(self) -> tuple[str, ObjectName] | None:
        """Take the next object to delete or release, as storage key and name; None: all is done."""
        return self._pending.popleft() if self._pending else None

    def is_finished(self, document: Document) -> bool:
        """Whether an object under deletion waits for dependents (or content) no longer."""
        metadata = document["metadata"]
        if not metadata.get("deletionTimestamp"):
            return False
        if document.get("kind") == "Namespace":
            return not self._content(metadata["name"])
        waits = FOREGROUND in (metadata.get("finalizers") or [])
        return waits and not self._dependents.get(metadata["uid"])

    def deletion_started(self, document: Document) -> None:
        """What must go with an object that is waiting to go."""
        if document.get("kind") == "Namespace":
            self._pending.extend(self._content(document["metadata"]["name"]))
            self._pending.append(("/namespaces", name_of(document)))
        elif FOREGROUND in (document["metadata"].get("finalizers") or []):
            self._pending.extend(self.dependents(uid_of(document)))

    def _content(self, namespace: str) -> list[tuple[str, ObjectName]]:
        return [
            (kind.key, name_of(document))
            for kind in self._registry.stored()
            if kind.namespaced
            for document in self._store.ordered(kind.key, namespace)
        ]

    def _changed(self, change: StoreChange) -> None:
        document, here = change.document, (change.storage, name_of(change.document))
        before = _owners(change.previous) if change.previous is not None else set()
        gone = change.kind is ChangeKind.DELETED
        after = set() if gone else _owners(document)
        for owner in before - after:
            self._dependents[owner].discard(here)
            if not self._dependents[owner]:
                del self._dependents[owner]
                self._look_again(owner)
        for owner in after - before:
            self._dependents[owner].add(here)
        if gone:
            self._forget(change)
        else:
            self._alive[uid_of(document)] = here
            if after and not any(owner in self._alive for owner in after):
                self._pending.append(here)

    def _look_again(self, owner: str) -> None:
        """An owner that waits for its dependents may go; any other stays without them."""
        found = self._store.get(*self._alive[owner]) if owner in self._alive else None
        if found is not None and found["metadata"].get("deletionTimestamp"):
            self._pending.append(self._alive[owner])

    def _forget(self, change: StoreChange) -> None:
        uid, namespace = uid_of(change.document), name_of(change.document).namespace
        self._alive.pop(uid, None)
        for dependent in self.dependents(uid):
            found = self._store.get(*dependent)
            if found is not None and not any(owner in self._alive for owner in _owners(found)):
                self._pending.append(dependent)
        home = self._store.get("/namespaces", ObjectName("", namespace)) if namespace else None
        if home is not None and home["metadata"].get("deletionTimestamp"):
            self._pending.append(("/namespaces", ObjectName("", namespace)))


def _owners(document: Document) -> set[str]:
    return {one.get("uid", "") for one in document["metadata"].get("ownerReferences") or []}


def _as_go_adds(seconds: int) -> float:
    """What comes of the seconds when they are added to a time: nanoseconds wrap at 64 bits."""
    return ((seconds * 10**9 + (1 << 63)) % (1 << 64) - (1 << 63)) / 10**9
