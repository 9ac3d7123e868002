"""The webhooks inside the sandbox: the same rules as functions of its admission.

The sandbox asks no webhook over HTTP. Its store tells of every write at once, so what is known is
what is stored, and nothing has to be read again.
"""

from app.sandbox.apiserver.admission import AdmissionRequest, Admitted, Denied
from app.sandbox.apiserver.store import ChangeKind, Store, StoreChange
from app.webhooks.admission import WEBHOOKS, Webhook, decide
from app.webhooks.cluster_facts import FOLLOWED, ClusterFacts
from app.webhooks.object_types import is_whole
from app.webhooks.world import Operation, Options, Request, World
from app.wire.kinds import Resource
from app.wire.unstructured import key_of

_OPERATIONS: dict[str, Operation] = {"CREATE": "CREATE", "UPDATE": "UPDATE", "DELETE": "DELETE"}


class EmbeddedWebhooks:
    """An admission function that completes and judges; :meth:`follow` the store it is for."""

    def __init__(self, options: Options) -> None:
        self._facts = ClusterFacts()
        self._world = World(self._facts, options)
        self._followed = {_storage(resource): resource for resource in FOLLOWED}
        self._webhooks: dict[str, list[Webhook]] = {}
        for webhook in sorted(WEBHOOKS, key=lambda webhook: webhook.mutate is None):
            self._webhooks.setdefault(_storage(webhook.resource), []).append(webhook)

    def follow(self, store: Store) -> None:
        """Know what is stored, now and from now on."""
        for storage, resource in self._followed.items():
            for document in store.values(storage):
                self._facts.put(resource, document)
        store.on_change(self._changed)

    def __call__(self, request: AdmissionRequest, /) -> Admitted | Denied | None:
        """The object completed, or why it is refused; None when it is nothing to us."""
        operation = _OPERATIONS.get(request.operation)
        webhooks = self._webhooks.get(f"{request.group}/{request.resource}", ())
        if operation is None or request.subresource or not _readable(request):
            return None
        document, warnings = request.object, list[str]()
        for webhook in webhooks:
            if operation not in webhook.operations:
                continue
            question = Request(
                operation=operation,
                item=document or {},
                old=request.old_object or {},
                namespace=request.namespace,
                name=request.name,
            )
            if webhook.mutate is not None:
                document = webhook.mutate(question, self._world)
                continue
            verdict = decide(webhook, question, self._world)
            if not verdict.allowed:
                text = f'admission webhook "{webhook.name}" denied the request: {verdict.message}'
                return Denied(text)
            warnings += verdict.warnings
        return Admitted(document, tuple(warnings))

    def _changed(self, change: StoreChange) -> None:
        resource = self._followed.get(change.storage)
        if resource is None:
            return
        if change.kind is ChangeKind.DELETED:
            self._facts.drop(resource, key_of(change.document))
        else:
            self._facts.put(resource, change.document)


def _storage(resource: Resource) -> str:
    return f"{resource.api_version.rpartition('/')[0]}/{resource.plural}"


def _readable(request: AdmissionRequest) -> bool:
    """Whether the parts are objects that rules take for such; the schema refuses others later."""
    return all(is_whole(document or {}) for document in (request.object, request.old_object))
