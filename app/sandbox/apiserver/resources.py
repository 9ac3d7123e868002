"""HTTP methods on objects and collections -> operations -> replies."""

from __future__ import annotations

from dataclasses import replace

from app.sandbox.apiserver import errors, lists, scale
from app.sandbox.apiserver.binding import bind
from app.sandbox.apiserver.builtin import KEPT_APART, NOT_SIMULATED, POSTED_ONLY, UNTENDED
from app.sandbox.apiserver.deletion import DeleteOptions, Deletion, parse_delete_options
from app.sandbox.apiserver.disruption import Disruption
from app.sandbox.apiserver.eviction import evict
from app.sandbox.apiserver.messages import Reply, Request, json_reply, text_reply
from app.sandbox.apiserver.numbers import whole_number
from app.sandbox.apiserver.operations import Operations, Written
from app.sandbox.apiserver.patches import APPLY_PATCH
from app.sandbox.apiserver.pod_logs import log_text
from app.sandbox.apiserver.reviews import answered, is_review
from app.sandbox.apiserver.tables import table
from app.sandbox.apiserver.target import Target
from app.wire.documents import Document


class Resources:
    """Everything but watches and discovery."""

    def __init__(
        self, operations: Operations, *, deletion: Deletion, disruption: Disruption
    ) -> None:
        self._operations = operations
        self._deletion = deletion
        self._disruption = disruption

    def answer(self, request: Request, target: Target) -> Reply:
        """The reply to one request; raises ApiError where the request is refused."""
        if target.subresource in NOT_SIMULATED:
            raise errors.not_simulated(self._operations.stored(target), target.subresource)
        if target.subresource == "scale":
            return self._scale(request, target)
        if request.method == "POST":
            return self._post(request, target)
        if target.kind.plural in POSTED_ONLY:
            raise errors.method_not_allowed()
        return self._found(request, target)

    def _found(self, request: Request, target: Target) -> Reply:
        """What is asked of objects that are there."""
        match request.method, bool(target.name):
            case "GET", True:
                return self._get(request, target)
            case "GET", False:
                return self._list(request, target)
            case "PUT", True:
                return self._written(
                    self._operations.replace(
                        target, request.document(), options=request.write_options
                    )
                )
            case "PATCH", True:
                return self._patch(request, target)
            case "DELETE", True:
                return self._delete(request, target)
            case "DELETE", False if target.kind.key not in KEPT_APART:
                return self._delete_collection(request, target)
            case _:
                raise errors.method_not_allowed()

    def _get(self, request: Request, target: Target) -> Reply:
        if target.subresource == "log":
            tail = request.query.get("tailLines")
            text = log_text(
                self._operations.stored(target),
                container=request.query.get("container", ""),
                tail=whole_number(tail) if tail else None,
            )
            return text_reply(text)
        document = self._operations.get(target)
        if request.wants_table:
            revision = {"resourceVersion": document["metadata"]["resourceVersion"]}
            return json_reply(self.table(request, target, [document], metadata=revision))
        return json_reply(document)

    def _list(self, request: Request, target: Target) -> Reply:
        page = lists.list_page(self._operations, target, request.query)
        if request.wants_table:
            return json_reply(self.table(request, target, page.documents, metadata=page.metadata))
        return json_reply(lists.list_document(target, page))

    def table(
        self, request: Request, target: Target, documents: list[Document], *, metadata: Document
    ) -> Document:
        """The Table that ``kubectl get`` prints; ages are as of the sandbox's clock."""
        return table(
            target.kind,
            documents,
            metadata=metadata,
            now=self._operations.clock.now(),
            include=request.query.get("includeObject") or "Metadata",
        )

    def _post(self, request: Request, target: Target) -> Reply:
        body = request.document()
        if is_review(target.kind):
            kind = target.kind
            read = self._operations.decoder.message
            question = read(kind.api_version, kind.kind, target.namespace, body)
            return json_reply(answered(kind, question), code=201)
        match target.subresource:
            case "eviction":
                return json_reply(self._evicted(request, target, body), code=201)
            case "binding":
                return json_reply(self._bound(request, target, body), code=201)
            case "" if target.kind.plural == "bindings":
                return json_reply(self._bound(request, target, body), code=201)
            case "" if not target.name:
                return self._created(request, target, body)
        raise errors.method_not_allowed()

    def _bound(self, request: Request, target: Target, body: Document) -> Document:
        binding = self._operations.decoder.message("v1", "Binding", target.namespace, body)
        if target.kind.plural == "bindings":
            target = self._bound_pod(target, binding)
        dry_run = request.write_options.dry_run
        return bind(self._operations, target, binding, dry_run=dry_run)

    def _evicted(self, request: Request, target: Target, body: Document) -> Document:
        read = self._operations.decoder.message
        return evict(
            self._operations,
            target,
            read("policy/v1", "Eviction", target.namespace, body),
            deletion=self._deletion,
            disruption=self._disruption,
            dry_run=request.write_options.dry_run,
        )

    def _created(self, request: Request, target: Target, body: Document) -> Reply:
        written = self._operations.create(target, body, options=request.write_options)
        if target.kind.key in UNTENDED:
            warning = (
                f"the embedded sandbox stores {target.kind.plural}, but makes no pods of them:"
                " --control-plane real does"
            )
            written = replace(written, warnings=(*written.warnings, warning))
        return self._written(written)

    def _scale(self, request: Request, target: Target) -> Reply:
        match request.method:
            case "GET":
                return json_reply(scale.scale_of(target.kind, self._operations.get(target)))
            case "PUT":
                read = self._operations.decoder.message
                wanted = read("autoscaling/v1", "Scale", target.namespace, request.document())
            case "PATCH":
                wanted = scale.patched(
                    self._operations, target, request.document(), request.media_type
                )
            case _:
                raise errors.method_not_allowed()
        options = request.write_options
        return json_reply(scale.write(self._operations, target, wanted, options=options))

    def _bound_pod(self, target: Target, body: Document) -> Target:
        pods = self._operations.registry.of_storage("/pods")
        name = (body.get("metadata") or {}).get("name") or ""
        return Target(kind=pods, namespace=target.namespace, name=name, subresource="binding")

    def _patch(self, request: Request, target: Target) -> Reply:
        if request.media_type == APPLY_PATCH and not request.query.get("fieldManager"):
            problem = errors.required("fieldManager", "is required for apply patch")
            raise errors.bad_options("PatchOptions", problem)
        written = self._operations.patch(
            target,
            request.document(),
            content_type=request.media_type,
            options=request.write_options,
        )
        return self._written(written)

    def _written(self, written: Written) -> Reply:
        self._deletion.collect()
        code = 201 if written.created else 200
        return json_reply(written.document, code=code, warnings=written.warnings)

    def _delete(self, request: Request, target: Target) -> Reply:
        options = self._delete_options(request)
        deleted = self._deletion.delete(target, options)
        document, kind = deleted.document, target.kind
        if not deleted.is_gone or kind.plural == "pods":
            shown = self._operations.shown(kind, document)
            return json_reply(shown, warnings=deleted.warnings)
        details = {"name": target.name, "kind": kind.plural, "uid": document["metadata"]["uid"]}
        if kind.group:
            details["group"] = kind.group
        return json_reply(
            {
                "kind": "Status",
                "apiVersion": "v1",
                "metadata": {},
                "status": "Success",
                "details": details,
            },
            warnings=deleted.warnings,
        )

    def _delete_options(self, request: Request) -> DeleteOptions:
        body = self._operations.decoder.delete_options(request.document())
        return parse_delete_options(body, dict(request.query))

    def _delete_collection(self, request: Request, target: Target) -> Reply:
        options = self._delete_options(request)
        page = lists.list_page(self._operations, target, request.query)
        for document in page.documents:
            metadata = document["metadata"]
            one = Target(
                kind=target.kind,
                namespace=metadata.get("namespace") or "",
                name=metadata["name"],
            )
            self._deletion.delete(one, options)
        return json_reply(lists.list_document(target, page))
