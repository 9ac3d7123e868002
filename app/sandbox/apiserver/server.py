"""The API server put together: store, kinds, rules and the HTTP face."""

from __future__ import annotations

from collections.abc import Sequence

from app.sandbox.apiserver.admission import Admission
from app.sandbox.apiserver.builtin import builtin_kinds
from app.sandbox.apiserver.custom_kinds import CustomKinds
from app.sandbox.apiserver.deletion import DeleteOptions, Deletion
from app.sandbox.apiserver.disruption import Disruption
from app.sandbox.apiserver.http import HttpApi
from app.sandbox.apiserver.operations import Operations
from app.sandbox.apiserver.patches import MERGE_PATCH
from app.sandbox.apiserver.quotas import Quotas
from app.sandbox.apiserver.registry import Registry
from app.sandbox.apiserver.resources import Resources
from app.sandbox.apiserver.stock_fields import TypeOf, nothing_known
from app.sandbox.apiserver.stock_rules import SEEDS
from app.sandbox.apiserver.store import Store
from app.sandbox.apiserver.target import Target
from app.sandbox.clock import Clock
from app.wire.documents import Document, ObjectName


class ApiServer:
    """One in-memory API server. ``app`` is the ASGI application.

    The methods are the same operations for callers in this process, addressed by storage key
    (``/pods``, ``scheduling.volcano.sh/podgroups``).
    """

    def __init__(
        self,
        *,
        clock: Clock,
        crds: Sequence[Document] = (),
        admission: Sequence[Admission] = (),
        stock_types: TypeOf = nothing_known,
        seed: int | None = None,
    ) -> None:
        self.store = Store()
        self.registry = Registry(builtin_kinds())
        CustomKinds(self.store, self.registry)
        self.operations = Operations(
            self.store,
            self.registry,
            clock=clock,
            quotas=Quotas(self.store),
            admission=admission,
            stock_types=stock_types,
            seed=seed,
        )
        self.deletion = Deletion(self.operations)
        self.disruption = Disruption(self.store, self.registry, clock=clock)
        self.app = HttpApi(
            self.operations,
            Resources(self.operations, deletion=self.deletion, disruption=self.disruption),
        )
        for document in (*SEEDS, *crds):
            self.create(document)

    def create(self, document: Document) -> Document:
        """Create an object wherever its ``apiVersion``, ``kind`` and namespace say."""
        group, _, version = document["apiVersion"].rpartition("/")
        for kind in self.registry.of_group(group, version):
            if kind.kind == document["kind"]:
                namespace = document["metadata"].get("namespace") or "default"
                target = Target(kind=kind, namespace=namespace if kind.namespaced else "")
                created = self.operations.create(target, document).document
                self.deletion.collect()
                return created
        raise LookupError(f"{document['apiVersion']} {document['kind']} is not served")

    def patch(
        self, storage: str, name: ObjectName, patch: Document, *, subresource: str = ""
    ) -> Document:
        """A merge patch."""
        target = self.target(storage, name, subresource=subresource)
        written = self.operations.patch(target, patch, content_type=MERGE_PATCH)
        self.deletion.collect()
        return written.document

    def delete(self, storage: str, name: ObjectName, options: DeleteOptions | None = None) -> None:
        """Delete an object and what goes with it; raises ApiError where that is refused."""
        self.deletion.delete(self.target(storage, name), options or DeleteOptions())

    def target(self, storage: str, name: ObjectName, *, subresource: str = "") -> Target:
        """The address of one object; KeyError where the storage key is unknown."""
        return Target(
            kind=self.registry.of_storage(storage),
            namespace=name.namespace,
            name=name.name,
            subresource=subresource,
        )

    def close(self) -> None:
        """End all watches, so that an HTTP server can stop at once."""
        self.store.close()
