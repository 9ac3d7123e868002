"""Claims of pods, as kube-controller-manager's resourceclaim controller keeps them.

A pod whose entry names a template gets a claim of its own, which goes with the pod. A pod that is
over or gone uses no claim any more, and a claim that no pod uses loses its devices.
"""

from __future__ import annotations

from app.sandbox.apiserver.deletion import DeleteOptions
from app.sandbox.apiserver.server import ApiServer
from app.sandbox.apiserver.store import StoreChange
from app.sandbox.relooking import Relooking
from app.wire.documents import Document, ObjectName, is_terminal, items, name_of, section, uid_of
from app.wire.objects.device_claims import ENTRY

CLAIMS = "resource.k8s.io/resourceclaims"
TEMPLATES = "resource.k8s.io/resourceclaimtemplates"
_PODS = "/pods"


class ClaimController:
    """Looks at pods with claims, and at claims, whenever one of them changed."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._store = server.store
        self._relooking = Relooking(self._store, concern=_concerns, look=self._look, kept="claims")

    async def run(self) -> None:
        """Look until cancelled."""
        await self._relooking.run()

    def _look(self) -> None:
        users: set[str] = set()
        for pod in self._store.ordered(_PODS):
            if items(pod, "spec", "resourceClaims"):
                if is_terminal(pod):
                    self._take_own(pod)
                else:
                    users.add(uid_of(pod))
                    self._make(pod)
        for claim in self._store.ordered(CLAIMS):
            self._release(claim, users)

    def _make(self, pod: Document) -> None:
        """Make the claims that the pod's templates describe."""
        made = {each["name"]: each for each in items(pod, "status", "resourceClaimStatuses")}
        for entry in items(pod, "spec", "resourceClaims"):
            template = entry.get("resourceClaimTemplateName")
            if not template or entry["name"] in made or pod["metadata"].get("deletionTimestamp"):
                continue
            name = ObjectName(name_of(pod).namespace, template)
            described = self._store.get(TEMPLATES, name)
            if described is not None:
                claim = self._server.create(_claim_of(pod, entry["name"], described))
                told = {"name": entry["name"], "resourceClaimName": name_of(claim).name}
                made[entry["name"]] = told
                self._server.patch(
                    _PODS,
                    name_of(pod),
                    {"status": {"resourceClaimStatuses": list(made.values())}},
                    subresource="status",
                )

    def _take_own(self, pod: Document) -> None:
        """Delete the claims that were made for a pod that is over."""
        for each in items(pod, "status", "resourceClaimStatuses"):
            name = ObjectName(name_of(pod).namespace, each.get("resourceClaimName") or "")
            if self._store.get(CLAIMS, name) is not None:
                self._server.delete(CLAIMS, name, DeleteOptions())

    def _release(self, claim: Document, users: set[str]) -> None:
        reserved = items(claim, "status", "reservedFor")
        left = [each for each in reserved if each.get("uid") in users]
        if left == reserved and (left or not section(claim, "status", "allocation")):
            return
        status: Document = {"reservedFor": left or None}
        if not left:
            status["allocation"] = None
        self._server.patch(CLAIMS, name_of(claim), {"status": status}, subresource="status")


def _claim_of(pod: Document, entry: str, template: Document) -> Document:
    name, spec = name_of(pod), section(template, "spec")
    metadata = section(spec, "metadata")
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": name.name,
        "uid": uid_of(pod),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": f"{name.name}-{entry}-",
            "namespace": name.namespace,
            "labels": dict(metadata.get("labels") or {}),
            "annotations": {**(metadata.get("annotations") or {}), ENTRY: entry},
            "ownerReferences": [owner],
        },
        "spec": dict(spec.get("spec") or {}),
    }


def _concerns(change: StoreChange) -> bool:
    return change.storage in {CLAIMS, TEMPLATES} or (
        change.storage == _PODS and bool(items(change.document, "spec", "resourceClaims"))
    )
