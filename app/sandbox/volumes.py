"""Volumes that are there, as kube-controller-manager's persistentvolume-binder keeps them.

A volume without a claim is Available. One that is kept for a claim is bound to it, and so is one
that a claim names. No volume is looked for here, and none is made or deleted.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.sandbox.apiserver.server import ApiServer
from app.sandbox.apiserver.store import StoreChange
from app.sandbox.relooking import Relooking
from app.sandbox.scheduler.claims import STORAGE as CLAIMS
from app.sandbox.scheduler.claims import VOLUMES
from app.wire.documents import Document, ObjectName, name_of, section, uid_of

_COMPLETED = "pv.kubernetes.io/bind-completed"


class VolumeController:
    """Looks at all volumes whenever one of them, or a claim, changed."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._store = server.store
        self._relooking = Relooking(self._store, concern=_concerns, look=self._look, kept="volumes")

    async def run(self) -> None:
        """Look until cancelled."""
        await self._relooking.run()

    def _look(self) -> None:
        volumes = self._store.ordered(VOLUMES)
        if not volumes:
            return
        named = {
            section(claim, "spec").get("volumeName"): claim for claim in self._store.ordered(CLAIMS)
        }
        for volume in volumes:
            if not volume["metadata"].get("deletionTimestamp"):
                self._tend(volume, named)

    def _tend(self, volume: Document, named: Mapping[str | None, Document]) -> None:
        name = name_of(volume).name
        kept = section(volume, "spec", "claimRef")
        claim = named.get(name)
        if kept:
            claim = self._store.get(
                CLAIMS, ObjectName(kept.get("namespace") or "", kept.get("name") or "")
            )
        if kept.get("uid") and (claim is None or uid_of(claim) != kept["uid"]):
            self._set_phase(volume, "Released")
        elif claim is None or section(claim, "spec").get("volumeName") not in {None, "", name}:
            self._set_phase(volume, "Available")
        else:
            self._bind(volume, claim)

    def _bind(self, volume: Document, claim: Document) -> None:
        if not section(volume, "spec", "claimRef").get("uid"):
            at = name_of(claim)
            reference = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": at.namespace,
                "name": at.name,
                "uid": uid_of(claim),
            }
            change: Document = {"spec": {"claimRef": reference}}
            self._server.patch(VOLUMES, name_of(volume), change)
        self._set_phase(volume, "Bound")
        done = (claim["metadata"].get("annotations") or {}).get(_COMPLETED)
        if not done:
            change = {
                "metadata": {"annotations": {_COMPLETED: "yes"}},
                "spec": {"volumeName": name_of(volume).name},
            }
            self._server.patch(CLAIMS, name_of(claim), change)
        if section(claim, "status").get("phase") != "Bound":
            spec = section(volume, "spec")
            status = {
                "phase": "Bound",
                "accessModes": list(spec.get("accessModes") or ()),
                "capacity": dict(spec.get("capacity") or {}),
            }
            self._server.patch(CLAIMS, name_of(claim), {"status": status}, subresource="status")

    def _set_phase(self, volume: Document, phase: str) -> None:
        if section(volume, "status").get("phase") != phase:
            change = {"status": {"phase": phase}}
            self._server.patch(VOLUMES, name_of(volume), change, subresource="status")


def _concerns(change: StoreChange) -> bool:
    return change.storage in {CLAIMS, VOLUMES}
